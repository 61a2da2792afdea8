"""Rewording by a local model: what code refuses, and how often it asks."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.items import Item
from serving.records import Ask, Completion
from training.rewording import Reword, RewordOptions, bare, fault


def completion(text: str, reason: str = "stop") -> Completion:
    return Completion(text=text, finish_reason=reason, prompt_tokens=1, output_tokens=1)  # type: ignore[arg-type]


def converse(item: Item, *replies: Completion, **options: Any) -> tuple[dict[str, Any], list[Ask]]:
    """The record and everything that was asked, as the writer gives these replies."""
    dialogue = Reword(RewordOptions(**options), seed=0)._reword(item)
    asked = [next(dialogue)]
    try:
        for reply in replies:
            asked.append(dialogue.send(reply))  # type: ignore[arg-type]
    except StopIteration as end:
        return end.value, asked  # type: ignore[return-value]
    raise AssertionError("it asked for more")


ORIGINAL = "Which planet has the number 3?"


@pytest.mark.parametrize(
    ("rewrite", "reason"),
    [
        ("Name the planet whose number is 3.", ""),
        ("", "empty"),
        ("which planet  has the number 3", "same"),
        ("Name the planet of the number three.", "number"),
        ("Name the planet 3" + " please" * 20, "long"),
        ("Name the planet of 33.", "number"),
    ],
)
def test_what_code_refuses(rewrite: str, reason: str) -> None:
    assert fault(ORIGINAL, rewrite, 3.0) == reason


@pytest.mark.parametrize(
    "reply", ['"Name it."', "Question: Name it.", "**Rewritten question:** Name it.", " Reworded Question:\nName it. "]
)
def test_labels_and_quotation_marks_are_taken_off(reply: str) -> None:
    assert bare(reply) == "Name it."


def test_a_refused_rewrite_is_asked_for_again_with_another_seed(items: list[Item]) -> None:
    good = completion("Name the planet whose number is 3.")
    record, asked = converse(items[3], completion(items[3].question), completion("Name 3", "length"), good)
    assert record == {
        "item_id": items[3].id,
        "question": "Name the planet whose number is 3.",
        "attempts": 3,
        "reasons": ["same", "cut"],
    }
    assert len({ask.sampling.seed for ask in asked}) == 3
    assert items[3].question in str(asked[0].prompt)


def test_an_item_without_a_rewrite_is_counted(items: list[Item]) -> None:
    record, _ = converse(items[3], completion(""), completion("Name it."), attempts=2)
    assert (record["question"], record["reasons"]) == (None, ["empty", "number"])
    found = Reword(RewordOptions(), seed=0).summarise([record, {**record, "question": "x", "reasons": []}])
    assert found == {"n": 2, "reworded": 1, "without": 1, "attempts": 4, "reasons": {"empty": 1, "number": 1}}
    assert Reword(RewordOptions(), seed=0).summarise([])["n"] == 0
