"""What code can tell of a rewrite, before a judge is asked: parts that were lost, changed or brought in.

Each check gives the first fault it finds, or None. A fault's text goes back to the agent that wrote the rewrite.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from evaluation.probing.permutation import speaks_of_others
from evaluation.probing.quantities import Quantity, quantities, same, units

LEAST_LENGTH = 60
"""Characters that any text may grow to, whatever ``max_growth`` says: a short option has no shorter paraphrase."""

_FUNCTION_WORDS = {
    "English": "the of and to in is that what which are for on with does how was from by it",
    "German": "der die das und ist nicht welche ein eine von mit auf dem den was wird zu sich",
    "French": "le la les des est une dans quel quelle que pour qui sur du et avec sont",
    "Spanish": "el los las una que es cuál en por con para del se como qué y",
    "Italian": "il gli che una della è di quale per con sono nel del e",
    "Portuguese": "os uma que da do não qual em com para é dos mais e",
}
_WORDS_OF = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
_FORMULA = re.compile(r"(?:(?:\b(?:True|False|not|and|or)\b|[()])[ \t]*){3,}")
_LIST = re.compile(r"\bList:[ \t]*(\S.*)")
_NAME = re.compile(r"(?<![.!?:\"“\n] )(?<![\w'’\"“])(?<!^)(?<!\n)[A-Z][a-z]+(?:['’]s)?(?!\w)")
_ANSWERS = re.compile(
    r"\b(?:the|correct|right|best)\s+answer\b(?:\s+(?:is|was|would|must|to)\b|\s*[:,])", re.IGNORECASE
)
_LABEL_LINE = re.compile(r"^[^\w\n]*\([A-Z]\)[^\w\n]*$", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]{3,}")


class Fault(NamedTuple):
    """kind: a short name for counting; text: what is wrong, for the agent and the record."""

    kind: str
    text: str


def check_question(before: str, after: str, *, exact: bool, max_growth: float, key: str = "") -> Fault | None:
    """Principle p1. exact: every name stands, too (a question whose entities and slots are what is asked for).

    key: the answer's text, which the question mustn't give away
    """
    if key and _tells(after, key) and not _tells(before, key):
        return Fault("key given away", "the question names the answer")
    return (
        _check_text(before, after, max_growth)
        or check_answers(before, after)
        or (Fault("unchanged", "it is the same as before") if _plain(before) == _plain(after) else None)
        or check_protected(before, after)
        or check_numbers(before, after)
        or (check_names(before, after) if exact else None)
    )


def check_context(question: str, context: str, *, key: str, numeric: bool, max_growth: float) -> Fault | None:
    """Principle p4. key: the answer's text, which the context mustn't give away.

    numeric: the question is answered by calculating, so that a further number would be taken for a part of it
    """
    joined = f"{context} {question}"
    if fault := _check_text(question, context, max_growth) or check_answers(question, context):
        return fault
    if _plain(question) in _plain(context):
        return Fault("unchanged", "it repeats the question; only the background is wanted")
    if _tells(context, key) and not _tells(question, key):
        return Fault("key given away", "the background names the answer")
    if numeric and (new := _new_number(question, context)):
        return Fault("new number", f"the background brings in the number {new}, which could be taken for a part of it")
    if "?" in context:
        return Fault("new question", "the background asks a question of its own")
    return _check_language(question, joined)


def check_choices(before: Sequence[str], after: Sequence[str], *, answer: int, max_growth: float) -> Fault | None:
    """Principle p2. answer: the key's index, the same before and after."""
    if len(after) != len(before):
        return Fault("option count", f"there must be {len(before)} options, and there are {len(after)}")
    if fault := check_unique(after, before):
        return fault
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        name = f"option {i + 1}"
        others = {_plain(other) for j, other in enumerate(before) if j != i and _plain(other) != _plain(old)}
        if _plain(new) in others:
            kind = "key lost" if i == answer else "options moved"
            return Fault(kind, f"{name} has the text of another option; each must stay in its place")
        if fixed(old, len(before)) and _plain(new) != _plain(old):
            return Fault("fixed option", f"{name} ({old!r:.40}) can't be said differently and must stay as it is")
        if fault := _check_length(old, new, max_growth) or check_numbers(old, new):
            return Fault(fault.kind, f"{name}: {fault.text}")
    if fault := _check_language(" ".join(before), " ".join(after)):
        return fault
    if all(_plain(x) == _plain(y) for x, y in zip(before, after, strict=True)) and not may_stay(before):
        return Fault("unchanged", "no option was reworded")
    return None


def check_new_choice(choices: Sequence[str], new: str, *, max_growth: float) -> Fault | None:
    """Principle p5: one more option. Those that were there stay as they are, by code."""
    longest = max(choices, key=len)
    if fault := _check_text(longest, new, max_growth) or check_answers(" ".join(choices), new):
        return fault
    if _plain(new) in {_plain(choice) for choice in choices}:
        return Fault("duplicate option", "there is such an option already")
    if speaks_of_others(new, len(choices) + 1):
        return Fault("refers to others", "an option mustn't speak of other options")
    return None


def check_answers(before: str, after: str) -> Fault | None:
    """Nothing speaks of the answer, or ends in an option's label: weak agents answer instead of rewriting."""
    if _ANSWERS.search(after) and not _ANSWERS.search(before):
        return Fault("answers", "it speaks of the answer; write only what was asked for, and don't answer")
    if _LABEL_LINE.search(after) and not _LABEL_LINE.search(before):
        return Fault("answers", "a line of it is an option's label alone")
    return None


def check_unique(choices: Sequence[str], before: Sequence[str] = ()) -> Fault | None:
    """Options that are empty, or the same twice (unless they were so ``before``)."""
    empty = next((i for i, choice in enumerate(choices) if not choice.strip()), None)
    if empty is not None:
        return Fault("empty", f"option {empty + 1} is empty")
    counts = Counter(map(_plain, choices))
    former = Counter(map(_plain, before))
    twice = next((choice for choice in choices if counts[_plain(choice)] > max(1, former[_plain(choice)])), None)
    return None if twice is None else Fault("duplicate option", f"the option {twice!r:.60} stands there twice")


def check_numbers(before: str, after: str) -> Fault | None:
    """Every number stays, in digits or words, with its unit; no other one comes in."""
    then, now = (list(dict.fromkeys(quantities(text))) for text in (before, after))
    for wanted in then:
        if wanted.weak:
            continue
        found = [other for other in now if same(wanted, other)]
        if not found:
            return Fault("number changed", f"the number {wanted} is missing")
        if wanted.unit and not _has_unit(wanted, found, after):
            return Fault("unit changed", f"{wanted} lost its unit")
    new = _new_number(before, after)
    return Fault("new number", f"the number {new} was not there before") if new else None


def check_protected(before: str, after: str) -> Fault | None:
    """Formulas of True and False and lists of words to be sorted stand as they were, letter for letter."""
    kept = " ".join(after.split())
    spans = [match.group() for match in _FORMULA.finditer(before) if re.search("True|False", match.group())]
    spans += [match[1] for match in _LIST.finditer(before)]
    lost = next((span for span in spans if " ".join(span.split()) not in kept), None)
    return None if lost is None else Fault("part lost", f"the part {' '.join(lost.split())!r:.120} must stay as it is")


def check_names(before: str, after: str) -> Fault | None:
    """Every proper name (a capitalised word inside a sentence) stays, and no other comes in.

    A name may be written out (``Jan`` as ``January``).
    """
    then, now = names(before), names(after)
    lost = sorted(name for name in then if not re.search(rf"\b{name}" if len(name) > 2 else rf"\b{name}\b", after))
    if lost:
        return Fault("name lost", f"the name {lost[0]} is missing")
    short = tuple(name for name in then if len(name) > 2)
    new = sorted(
        name for name in now if not re.search(rf"\b{name}\b", before, re.IGNORECASE) and not name.startswith(short)
    )
    return Fault("new name", f"the name {new[0]} was not there before") if new else None


def names(text: str) -> set[str]:
    """Capitalised words that do not begin a sentence or a line."""
    return {re.sub("['’]s$", "", match.group()) for match in _NAME.finditer(text)}


def fixed(choice: str, options: int) -> bool:
    """Whether an option can't be said differently: no word in it, or it speaks of other options."""
    return not _WORD.search(choice) or speaks_of_others(choice, options)


def may_stay(choices: Sequence[str]) -> bool:
    """Whether all options are so short (two words) that none need have another wording."""
    return all(len(choice.split()) <= 2 for choice in choices)


def _check_text(before: str, after: str, max_growth: float) -> Fault | None:
    if not after.strip():
        return Fault("empty", "there is no text")
    return _check_length(before, after, max_growth) or _check_language(before, after)


def _check_length(before: str, after: str, max_growth: float) -> Fault | None:
    allowed = max(LEAST_LENGTH, round(max_growth * len(before)))
    if len(after) <= allowed:
        return None
    return Fault("too long", f"it has {len(after)} characters, and {allowed} are allowed")


def _check_language(before: str, after: str) -> Fault | None:
    """The dominant script stays; so does a European language, told by its function words, where that is clear."""
    then, now = _script(before), _script(after)
    if then and now and then != now:
        return Fault("language changed", f"it is written in {now} letters, the original in {then}")
    first, second = _language(before), _language(after)
    if first and second and first != second:
        return Fault("language changed", f"it is in {second}, the original in {first}")
    return None


def _script(text: str) -> str:
    """The commonest script among the letters: the first word of their Unicode names; "" without letters."""
    found = Counter(unicodedata.name(c, "?").split(" ")[0].split("-")[0] for c in text if c.isalpha())
    return found.most_common(1)[0][0] if found else ""


def _language(text: str) -> str:
    """The language with the most function words, at least 3 and twice as many as the next; else ""."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = {name: sum(word in known for word in words) for name, known in _WORDS_OF.items()}
    (best, most), (_, next_most) = sorted(counts.items(), key=lambda pair: -pair[1])[:2]
    return best if most >= 3 and most >= 2 * next_most else ""


def _has_unit(wanted: Quantity, found: Sequence[Quantity], after: str) -> bool:
    if any(other.unit == wanted.unit for other in found) or (wanted.unit == "%" and any(not q.unit for q in found)):
        return True
    return any(not other.unit for other in found) and wanted.unit in units(after)


def _new_number(before: str, after: str) -> Quantity | None:
    then = list(dict.fromkeys(quantities(before)))
    return next(
        (new for new in dict.fromkeys(quantities(after)) if not new.weak and not any(same(new, old) for old in then)),
        None,
    )


def _tells(text: str, key: str) -> bool:
    return bool(_plain(key)) and re.search(rf"(?<!\w){re.escape(_plain(key))}(?!\w)", _plain(text)) is not None


def _plain(text: str) -> str:
    """For comparing: case, white space and final marks aside."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split()).strip(" .!?\"'“”")
