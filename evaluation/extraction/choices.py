"""Reading a chosen option out of a model's free reply. It never guesses.

A reply names an option, names none, or names several; only the first is an answer. What counts as naming one: the
letter alone (``B``, ``(B)``, ``b.``, ``**B**``), a line that begins with it (``B. text``, ``(B) text``), a phrase that
announces it (``Answer: B``, ``The answer is B because ...``, ``答案是B``, ``\\boxed{B}``), or a reply (or what follows
such a phrase) that is word for word one option's text. Two different options, or a letter beside another option's text,
are no answer; nor is one that is only denied (``Option B is wrong``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from evaluation.items import LETTERS

# Zero-width after the phrase, so that a second announcement in the same line is found too.
_ANNOUNCED = re.compile(
    r"(?:\b(?i:(?:answer|option|choice)(?:\s+(?:is|was|would\s+be|must\s+be|should\s+be))?)\b"
    # C-Eval's: "答案是B", "正确答案为 B", "因此选B"
    r"|答案(?:应该|应当|应)?[是为选]?|[应故此以该题,]选择?|^选择?)[\s*_]{0,9}[:=]?"
    r"(?=(?P<said>[^\n;]{0,400}))",
    re.MULTILINE,
)
# "B because A melts" and "B, not C" name B: what follows such a word is no longer the answer.
_TURNS = re.compile(r"\b(?i:because|since|as|not|rather|instead|while|whereas)\b")

_DENIED = re.compile(
    r"[(\[*_\"'`]*[A-Z][)\]*_\"'`]*(?:\s*\([^()\n]{0,80}\))?\s+(?:(?:is|was|does|ca|could|would)n['’]t|cannot"
    r"|(?:can|could|would|does)\s+(?:not|be\s+(?:ruled|excluded|eliminated))"
    r"|(?:is|was|seems|looks)\s+(?:\w+\s+)?(?:not|wrong|incorrect|false|out|ruled|excluded|eliminated|impossible))\b"
)

_QUOTES = " \"'`*"


def extract_choice(text: str, choices: Sequence[str]) -> str | None:
    """The letter that the reply names, or None where it names no option or more than one.

    Only letters of the item's own options count: ``E`` is no answer to a question with four.
    """
    said = unicodedata.normalize("NFKC", text).strip()
    letters = LETTERS[: len(choices)]
    named = _alone(said, letters)
    if named is None:
        found = {
            *_line_starts(_without_echo(said, choices), letters, choices),
            *_announced(said, letters, choices),
            *_option_texts(said, choices),
        }
        named = found.pop() if len(found) == 1 else None
    return named


def normalise(text: str) -> str:
    """For exact matches: NFKC, case folded, white space collapsed, quotes and a full stop at the ends removed."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return folded.strip(_QUOTES).rstrip(".").strip(_QUOTES)


def _alone(said: str, letters: str) -> str | None:
    match = re.fullmatch(rf"[\s(\[*_\"'`]*([{letters}{letters.lower()}])[\s)\]*_\"'`.:。]*", said)
    return match[1].upper() if match else None


def _without_echo(said: str, choices: Sequence[str]) -> str:
    """The reply without the lines that repeat the question's list of options, if it repeats all of them.

    Small models do that before they answer. A list of some options is kept: it may be the answer.
    """
    listed = {normalise(f"{LETTERS[i]}. {choice}"): i for i, choice in enumerate(choices)}
    lines = said.split("\n")
    echoed = [listed.get(normalise(line)) for line in lines]
    if len({i for i in echoed if i is not None}) < len(choices):
        return said
    return "\n".join(line for line, i in zip(lines, echoed, strict=True) if i is None)


def _line_starts(said: str, letters: str, choices: Sequence[str]) -> Iterator[str]:
    """Letters that a line begins with, each with a mark of its own: ``B. text`` names B, ``A cat`` names nothing."""
    for match in re.finditer(rf"^[ \t(\[*_\"'`]*([{letters}])([)\].:*_]+|[ \t]+[-–—]|$)(.*)$", said, re.MULTILINE):
        yield match[1]
        yield from _second_letter(match[3], letters)
        yield from _contradiction(match[1], match[3], choices)


def _announced(said: str, letters: str, choices: Sequence[str]) -> Iterator[str]:
    yield from re.findall(rf"\\boxed\{{(?:\\text\{{)?\(?([{letters}])\)?\}}", said)
    for match in _ANNOUNCED.finditer(said):
        if _DENIED.match(match["said"].lstrip()):
            continue
        yield from _option_texts(match["said"], choices)
        clause = _TURNS.split(match["said"])[0].strip()
        alone = _alone(clause.rstrip(","), letters)
        if alone is not None:
            yield alone
        elif lead := re.match(rf"[(\[*_\"'`]*([{letters}])([)\].,:*_/&。、]+\s*|\s+)(.*)", clause):
            letter, mark, rest = lead.groups()
            second = list(_second_letter(rest, letters))
            text = _option_texts(rest, choices)
            clash = _contradiction(letter, rest, choices)
            # "The answer is A good question" holds an article, not a letter.
            if mark.strip() or second or text or letter not in "AI":
                yield from (letter, *second, *clash)


def _second_letter(rest: str, letters: str) -> Iterator[str]:
    """The other letter of ``B or C``, ``B, C`` or ``B/C``: ``rest`` is what follows the first."""
    match = re.match(rf"\s*(?:(?:or|and|[/,&])\s*\(?([{letters}])\b|\(?([{letters}])[).]*\s*(?:$|,|or\b|and\b))", rest)
    if match:
        yield match[1] or match[2]


def _contradiction(letter: str, rest: str, choices: Sequence[str]) -> list[str]:
    """The options whose text stands beside another one's letter; two options may read alike."""
    texts = _option_texts(rest, choices)
    return [] if letter in texts else texts


def _option_texts(said: str, choices: Sequence[str]) -> list[str]:
    """The letter of the option whose text this is, word for word."""
    text = normalise(said)
    return [LETTERS[i] for i, choice in enumerate(choices) if text and normalise(choice) == text]
