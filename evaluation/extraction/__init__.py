"""Reading an answer out of a model's free reply. It never guesses: a reply is right, wrong or unparsable.

``extract_answer`` reads what the reply says without looking at the key, ``is_right`` compares. A choice question has a
letter (``choices``), an open one a number (``numbers``), the label of an option that stands in the question, or words
(``words``), by ``Item.form``.
"""

from __future__ import annotations

import re

from evaluation.extraction.choices import extract_choice, normalise
from evaluation.extraction.numbers import extract_number, value_of
from evaluation.extraction.words import extract_label, extract_words, same_words
from evaluation.items import Item

__all__ = ["exact_match", "extract_answer", "extract_choice", "first_turn", "is_right", "normalise"]

# A line that begins another question, or another speaker's turn.
_NEXT = re.compile(
    r"^[ \t#*>]{0,8}(?:(?:Question|Q)[ \t]?\d{0,4}|User|Human|USER|HUMAN)[*_]{0,2}[ \t]?:|<\|(?:im_|end|eot|start)",
    re.MULTILINE,
)


def extract_answer(reply: str, item: Item, *, cut_off: bool = False) -> str | None:
    """The answer that the reply gives, None where it gives none or more than one.

    cut_off: the reply ended at its token limit; a number in mid-calculation is then no answer, only a marked one is

    A letter for a choice question; for an open one a plain decimal (``1234.5``) or fraction (``1/3``), a label
    (``(B)``), or the words. Only what stands before a next question counts (``first_turn``).
    """
    said = first_turn(reply)
    if item.choices:
        return extract_choice(said, item.choices)
    if item.form == "number":
        return extract_number(said, marked_only=cut_off and said == reply)
    if item.form == "option":
        return extract_label(said, item.question)
    return extract_words(said, item)


def is_right(extracted: str | None, item: Item) -> bool:
    """Whether an extracted answer is the item's key. None never is. ValueError for an item without a key."""
    if not item.answer.strip():
        raise ValueError(f"item {item.id} ({item.benchmark}) has no key, so no reply to it is right or wrong")
    if extracted is None:
        return False
    if item.choices:
        return extracted == item.answer
    if item.form == "number":
        value = value_of(extracted)
        return value is not None and value == value_of(item.answer)
    if item.form == "option":
        return extracted.strip("() ").upper() == item.answer.strip("() ").upper()
    return same_words(extracted, item.answer)


def first_turn(reply: str) -> str:
    """The reply up to where the model goes on with a question (or a turn) of its own.

    A reply that begins by repeating the question is kept: the mark must stand behind some text.
    """
    for match in _NEXT.finditer(reply):
        if reply[: match.start()].strip():
            return reply[: match.start()]
    return reply


def exact_match(text: str, answer: str) -> bool:
    """Whether a reply to an open question is the answer, after ``normalise`` and without a leading ``Answer:``."""
    said = normalise(text)
    bare = re.sub(r"^(the )?(final )?answer( is)? ?:? ", "", said)
    return normalise(answer) in (said, normalise(bare))
