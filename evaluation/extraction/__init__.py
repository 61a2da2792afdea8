"""Reading an answer out of a model's free reply. It never guesses: a reply is right, wrong or unparsable.

``extract_answer`` reads what the reply says without looking at the key, ``is_right`` compares. A choice question has a
letter (``choices``), an open one a number (``numbers``), the label of an option that stands in the question, or words
(``words``), by ``Item.form``.
"""

from __future__ import annotations

import re

from evaluation.extraction.announcements import without_reasoning
from evaluation.extraction.choices import extract_choice
from evaluation.extraction.numbers import extract_number
from evaluation.extraction.options import normalise
from evaluation.extraction.spelling import value_of
from evaluation.extraction.words import extract_label, extract_words, same_words
from evaluation.items import Item
from serving.records import Completion

__all__ = ["answer_of", "exact_match", "extract_answer", "extract_choice", "first_turn", "is_right", "normalise"]

# A line that begins another question, or another speaker's turn.
_NEXT = re.compile(
    r"^[ \t#*>]{0,8}(?:(?:Question|Q)[ \t]?\d{0,4}|User|Human|USER|HUMAN)[*_]{0,2}[ \t]?:|<\|(?:im_|end|eot|start)",
    re.MULTILINE,
)


def extract_answer(reply: str, item: Item, *, cut_off: bool = False) -> str | None:
    """The answer that the reply gives, None where it gives none or more than one.

    cut_off: the reply ended at its token limit, or where the context was full: only what it announced before that, and
        surely whole, is then an answer

    A letter for a choice question; for an open one a plain decimal (``1234.5``) or fraction (``1/3``), a label
    (``(B)``), or the words. Only what stands before a next question counts (``first_turn``).
    """
    spoken = without_reasoning(reply)
    said = first_turn(spoken)
    # a reply that went on with another question had come to the end of this one's answer
    cut = cut_off and said == spoken
    if item.choices:
        return extract_choice(said, item.choices, cut_off=cut)
    if item.form == "number":
        return extract_number(said, cut_off=cut)
    if item.form == "option":
        return extract_label(said, item.question, cut_off=cut)
    return extract_words(said, item, cut_off=cut)


def answer_of(completion: Completion, item: Item) -> str | None:
    """``extract_answer`` of what a model said, which knows whether it was cut: at max_tokens, where the context was
    full, or inside its reasoning."""
    cut = completion.finish_reason != "stop" or not completion.complete
    return extract_answer(completion.text.lstrip(), item, cut_off=cut)


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
