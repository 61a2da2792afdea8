"""What the embedded exam promises to those who measure with it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from evaluation.benchmarks import load
from evaluation.items import Item

EXAM = load("embedded")
EXEMPLARS = load("embedded", split="dev")


def test_size_and_subjects() -> None:
    assert len(EXAM) >= 240
    assert len(EXEMPLARS) == 40
    subjects = Counter(item.subject for item in EXAM)
    assert len(subjects) >= 8
    assert max(subjects.values()) == min(subjects.values())
    # Five-shot prompts find their exemplars in every subject.
    assert Counter(item.subject for item in EXEMPLARS) == dict.fromkeys(subjects, 5)


@pytest.mark.parametrize("items", [EXAM, EXEMPLARS], ids=["exam", "exemplars"])
def test_keys_are_balanced(items: list[Item]) -> None:
    keys = Counter(item.answer for item in items)
    assert set(keys) == set("ABCD")
    assert max(keys.values()) - min(keys.values()) <= 1


@pytest.mark.parametrize("items", [EXAM, EXEMPLARS], ids=["exam", "exemplars"])
def test_length_tells_nothing(items: list[Item]) -> None:
    """The right option is the longest, or the shortest, about as rarely as chance has it (1 in 4)."""
    longest = shortest = 0
    for item in items:
        lengths = [len(choice) for choice in item.choices]
        right = lengths.pop(item.answer_index)
        longest += right > max(lengths)
        shortest += right < min(lengths)
        assert max(right, *lengths) <= 2 * min(right, *lengths) + 12, item.question
    assert longest / len(items) <= 0.3
    assert shortest / len(items) <= 0.3


def test_no_question_occurs_twice() -> None:
    words = [frozenset(re.findall(r"[a-z0-9^]+", item.question.lower())) for item in [*EXAM, *EXEMPLARS]]
    for i, one in enumerate(words):
        for other in words[:i]:
            assert len(one & other) / len(one | other) <= 0.6, (sorted(one), sorted(other))


def test_each_item_is_complete() -> None:
    for item in [*EXAM, *EXEMPLARS]:
        assert len(item.choices) == len({choice.lower() for choice in item.choices}) == 4
        assert item.question.endswith("?")
        assert item.reason.endswith(".")
        assert not re.search(r"\b(all|none|both|neither) of (the above|these)\b", " ".join(item.choices), re.IGNORECASE)


def test_splits_and_paths() -> None:
    assert {item.split for item in EXAM} == {"test"}
    assert {item.split for item in EXEMPLARS} == {"dev"}
    assert len(load("embedded", limit=8)) == 8
    with pytest.raises(ValueError, match="no split 'train'; it has test, dev"):
        load("embedded", split="train")
    with pytest.raises(ValueError, match="takes no path"):
        load("embedded", Path("mine.jsonl"))
