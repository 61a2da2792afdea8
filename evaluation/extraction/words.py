"""Reading an open question's answer that is no number: the label of an option in the question, a word, some words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from evaluation.extraction.announcements import announcements, prepared
from evaluation.extraction.choices import extract_choice
from evaluation.extraction.options import normalise
from evaluation.items import LETTERS, Item

# Answers that are one of two words, where the question lists no options.
PAIRS = (("yes", "no"), ("true", "false"), ("valid", "invalid"))

_LABELLED = re.compile(r"^[ \t]*\(([A-Z])\)[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_DASHED = re.compile(r"^[ \t]*-[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
# A full stop ends the answer when a sentence follows, but not behind an abbreviation: "St. Paul".
_SENTENCE_END = re.compile(r"(?<=[^\W_]{4})[.!]\s+(?=[A-Z])|(?<=[\"')\]*`])[.!]\s+(?=[A-Z])")
_LIST_MARK = re.compile(r"^[ \t]*(?:\d{1,3}[.)]|[-*•])[ \t]+", re.MULTILINE)
_LEAD = re.compile(r"^(?:output|result|sorted(?: [a-z]+){0,2})\s*:\s*", re.IGNORECASE)
_MOST_WORDS = 3
_ANSWER_IS = re.compile(r"\b(?:answer|antwort|réponse|respuesta|ответ)\s\Z", re.IGNORECASE)
_SUPPOSED = re.compile(r"\b(?:if|whether|suppose|assume|unless|wenn|falls|si|если)\b[^.!?\n]*\Z", re.IGNORECASE)


def extract_label(reply: str, question: str, *, cut_off: bool = False) -> str | None:
    """The label, ``(B)``, of the option of the question's list that the reply names; None for none or several."""
    listed = _LABELLED.findall(question.rpartition("Options:")[2])
    if [label for label, _ in listed] == list(LETTERS[: len(listed)]) and listed:
        letter = extract_choice(reply, [text for _, text in listed], cut_off=cut_off)
    else:
        letter = extract_choice(reply, [""] * len(LETTERS), cut_off=cut_off)
    return f"({letter})" if letter else None


def extract_words(reply: str, item: Item, *, cut_off: bool = False) -> str | None:
    """The answer that a reply gives in words; None where it gives none, or two different ones.

    Where only certain words can be the answer (the question lists them, or it is yes or no), the one that the reply
    names. Else what the last announcement says, else a reply of one line or a list. cut_off: announced ones only.
    """
    said = _undressed(unicodedata.normalize("NFKC", prepared(reply)))
    members = _members(item)
    if members:
        found = set(_named(said, members, cut_off))
        return found.pop() if len(found) == 1 else None
    announced = [
        text for text in (_trimmed(text, item.question) for text in _announcements(said, cut_off)) if _bare(text)
    ]
    if announced:
        return announced[-1]
    return None if cut_off else _plain(said)


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


def _named(said: str, members: Sequence[str], cut_off: bool) -> Iterator[str]:
    """Every member that the reply gives as its answer. A single word in passing ("a valid point") is not one."""
    one = "|".join(re.escape(member) for member in sorted(members, key=len, reverse=True))
    exact = {normalise(member): member for member in members}
    whole = re.compile(
        rf"[\s\"'`*(\[“„«-]*(?:(?:clearly|definitely|probably|that it is|therefore)\s)?({one})(?![\w'-])", re.IGNORECASE
    )
    last: list[str] = []
    for text in _announcements(said, cut_off):
        match = whole.match(text)
        if match:
            rest = text[match.end() :]
            last = [match[1], *re.findall(rf"^[\s,(]*(?:or|and|/|,)\s*({one})(?![\w'-])", rest, re.IGNORECASE)]
    if last or cut_off:
        yield from (exact[normalise(text)] for text in last)
        return
    bare = [normalise(line) for line in _LIST_MARK.sub("", said).split("\n")]
    found = [line for line in bare if line in exact]
    lead = re.match(rf"[\s\"'`*(\[“„«]*({one})(?=[\"'`*)\]”»]*(?:[.,;:!\n]|\s+(?:or|and)\s|\s*$))", said, re.IGNORECASE)
    if lead:
        found += [lead[1], *re.findall(rf"^\W*(?:or|and)\s+({one})(?![\w'-])", said[lead.end() :], re.IGNORECASE)]
    # "is valid", "are valid or invalid", "= True", "evaluates to True"; "is not valid" is neither.
    stated = rf"(?:\b(?:is|are|be|to)\s+(?:also\s+|deductively\s+)?|=\s*)\**({one})(?![\w'-])(?:\**\s+or\s+({one})\b)?"
    for pair in re.finditer(stated, said, re.IGNORECASE):
        before = said[max(0, pair.start() - 60) : pair.start()]
        # behind the word answer it was no announcement: denied, supposed, or somebody else's
        if not _SUPPOSED.search(before) and not _ANSWER_IS.search(before):
            found += [word for word in pair.groups() if word]
    yield from (exact[normalise(text)] for text in found)


def _announcements(said: str, cut_off: bool) -> Iterator[str]:
    """What the reply's announcements say. cut_off: not what the cut may have broken off."""
    found = [one for one in announcements(said) if not one.supposed]
    # "otherwise it is no" leaves neither that nor what it is opposed to
    last = max((place for place, one in enumerate(found) if one.otherwise), default=-1)
    for one in found[last + 1 :]:
        whole = (
            one.closed
            or one.end < len(said)
            or _SENTENCE_END.search(one.said)
            or one.said.rstrip().endswith((".", "!"))
        )
        text = one.said.strip().strip(" *_")
        if text.strip(" *_:.\"'") and not (cut_off and not whole):
            yield re.sub(r"^(?:not\b.*|:)", "", text, flags=re.IGNORECASE).strip()


def _undressed(text: str) -> str:
    """Without LaTeX's wrappers of words and without dollar signs around them."""
    return re.sub(
        r"\$([^$\n0-9]{1,80})\$",
        r"\1",
        re.sub(r"\\(?:text(?:bf|rm|it)?|mathrm|mathbf)\s?\{([^{}\n]{0,300})\}", r"\1", text),
    )


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
        # an announcement that is none: denied, supposed, asked
        if re.search(r"\b(?:answer|antwort|réponse|respuesta|ответ)\b", lines[0], re.IGNORECASE):
            return None
        return _LEAD.sub("", lines[0]) or None
    short = all(len(_bare(line).split()) <= _MOST_WORDS for line in lines)
    return "\n".join(lines) if short else None


def _bare(text: str) -> str:
    unmarked = _LIST_MARK.sub("", text)
    words = normalise(re.sub(r"[,;](?=\s)", " ", unmarked))
    return words if any(c.isalnum() for c in words) else "".join(words.split())
