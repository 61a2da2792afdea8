"""Reading an open question's answer that is no number: the label of an option in the question, a word, some words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from evaluation.extraction.choices import extract_choice, normalise
from evaluation.items import LETTERS, Item

# Answers that are one of two words, where the question lists no options.
PAIRS = (("yes", "no"), ("true", "false"), ("valid", "invalid"))

_LABELLED = re.compile(r"^[ \t]*\(([A-Z])\)[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_DASHED = re.compile(r"^[ \t]*-[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
# Zero-width after the phrase, so that a second announcement in the same line is found too.
_ANNOUNCED = re.compile(
    r"\banswer(?:[*_]{0,2}[ \t]?:[*_]{0,2}|[ \t]is[ \t]?:?(?![ \t]{0,9}not\b))(?=[ \t]{0,9}(?P<said>[^\n]{0,600}))"
    r"|\\boxed\{(?:\\text\{)?(?P<box>[^{}\n]{0,400})\}",
    re.IGNORECASE,
)
# A full stop ends the answer when a sentence follows, but not behind an abbreviation: "St. Paul".
_SENTENCE_END = re.compile(r"(?<=[^\W_]{4})[.!]\s+(?=[A-Z])|(?<=[\"')\]*`])[.!]\s+(?=[A-Z])")
_LIST_MARK = re.compile(r"^[ \t]*(?:\d{1,3}[.)]|[-*•])[ \t]+", re.MULTILINE)
_LEAD = re.compile(r"^(?:output|result|sorted(?: [a-z]+){0,2})\s*:\s*", re.IGNORECASE)
_MOST_WORDS = 3


def extract_label(reply: str, question: str) -> str | None:
    """The label, ``(B)``, of the option of the question's list that the reply names; None for none or several."""
    listed = _LABELLED.findall(question.rpartition("Options:")[2])
    if [label for label, _ in listed] == list(LETTERS[: len(listed)]) and listed:
        letter = extract_choice(reply, [text for _, text in listed])
    else:
        letter = extract_choice(reply, [""] * len(LETTERS))
    return f"({letter})" if letter else None


def extract_words(reply: str, item: Item) -> str | None:
    """The answer that a reply gives in words; None where it gives none, or two different ones.

    Where only certain words can be the answer (the question lists them, or it is yes or no), the one that the reply
    names. Else what follows ``answer:`` or ``the answer is``, else a reply of one line or a list.
    """
    said = unicodedata.normalize("NFKC", reply).strip()
    members = _members(item)
    if members:
        found = set(_named(said, members))
        return found.pop() if len(found) == 1 else None
    announced = [_trimmed(text, item.question) for text in dict.fromkeys(_announcements(said))]
    different = {_bare(text): text for text in announced if _bare(text)}
    if different:
        return next(iter(different.values())) if len(different) == 1 else None
    return _plain(said)


def same_words(said: str, answer: str) -> bool:
    """Equal after ``normalise``, with commas and list marks apart; brackets and other signs without their spaces."""
    return _bare(said) == _bare(answer)


def _members(item: Item) -> Sequence[str]:
    """The words that can be the answer: listed with dashes after ``Options:``, or a known pair; else none."""
    block = item.question.rpartition("Options:")
    listed = [text.strip() for text in _DASHED.findall(block[2])] if block[1] else []
    if len(listed) > 1:
        return listed
    pair = next((pair for pair in PAIRS if normalise(item.answer) in pair), ())
    return [word.capitalize() for word in pair] if item.answer[:1].isupper() else pair


def _named(said: str, members: Sequence[str]) -> Iterator[str]:
    """Every member that the reply gives as its answer. A single word in passing ("a valid point") is not one."""
    one = "|".join(re.escape(member) for member in sorted(members, key=len, reverse=True))
    exact = {normalise(member): member for member in members}
    whole = re.compile(rf"[\s\"'`*(\[-]*({one})(?![\w'-])", re.IGNORECASE)
    announced = []
    for text in _announcements(said):
        match = whole.match(text)
        if match:
            announced.append(match[1])
            announced += re.findall(rf"^\s*(?:or|and|/|,)\s*({one})(?![\w'-])", text[match.end() :], re.IGNORECASE)
    bare = [normalise(line) for line in _LIST_MARK.sub("", said).split("\n")]
    lines = [line for line in bare if line in exact]
    lead = re.match(rf"[\s\"'`*(\[]*({one})(?=[\"'`*)\]]*(?:[.,;:!\n]|\s+(?:or|and)\s|\s*$))", said, re.IGNORECASE)
    found = [*announced, *lines, *([lead[1]] if lead else [])]
    if lead:
        found += re.findall(rf"^\W*(?:or|and)\s+({one})(?![\w'-])", said[lead.end() :], re.IGNORECASE)
    if not announced:
        # "is valid", "are valid or invalid", "= True", "evaluates to True"; "is not valid" is neither.
        stated = (
            rf"(?:\b(?:is|are|be|to)\s+(?:also\s+|deductively\s+)?|=\s*)\**({one})(?![\w'-])(?:\**\s+or\s+({one})\b)?"
        )
        found += [word for pair in re.findall(stated, said, re.IGNORECASE) for word in pair if word]
    for text in found:
        yield exact[normalise(text)]


def _announcements(said: str) -> Iterator[str]:
    for match in _ANNOUNCED.finditer(said):
        text = match["said"] if match["said"] is not None else match["box"]
        if text.strip(" *_:."):
            yield text.strip()


def _trimmed(text: str, question: str) -> str:
    """An announced answer without the sentence or the reason that follows it."""
    text = _SENTENCE_END.split(text, maxsplit=1)[0]
    if "because" not in question.casefold():
        text = re.split(r",?\s+because\b", text, maxsplit=1)[0]
    return text.strip()


def _plain(said: str) -> str | None:
    """A reply that is nothing but its answer: one line, or a list of short ones; a line "Here it is:" may lead it."""
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    if len(lines) > 1 and lines[0].endswith(":"):
        lines = lines[1:]
    if not lines:
        return None
    if len(lines) == 1:
        return _LEAD.sub("", lines[0]) or None
    short = all(len(_bare(line).split()) <= _MOST_WORDS for line in lines)
    return "\n".join(lines) if short else None


def _bare(text: str) -> str:
    unmarked = _LIST_MARK.sub("", text)
    words = normalise(re.sub(r"[,;](?=\s)", " ", unmarked))
    return words if any(c.isalnum() for c in words) else "".join(words.split())
