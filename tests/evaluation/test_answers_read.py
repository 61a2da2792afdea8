"""The table of replies and what they answer, ``tests/fixtures/replies.jsonl``: one row per reply, written down by hand.

A row: ``form`` (letter, number, option, words), ``rule`` (of docs/answers.md, that predicts the value), ``reply``,
``value`` (None: the reply gives no answer), ``cut`` (it ended at its token limit), ``choices`` and ``key`` where they
are not the usual ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.extraction import extract_answer, is_right
from evaluation.items import Form, Item, make_item

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "fixtures" / "replies.jsonl").read_text("utf-8").splitlines()
]
CHOICES = ["fish", "4", "bird", "stone"]
FORMS: dict[str, Form] = {"letter": "text", "words": "text", "number": "number", "option": "option"}
DATES = "Which day is it?\nOptions:\n(A) 12/11/1937\n(B) 12/25/1937"


def asked(row: dict[str, Any]) -> Item:
    key = {"letter": "B", "number": row["value"] or "1", "option": "(B)", "words": row.get("key", "")}[row["form"]]
    return make_item(
        benchmark="t",
        split="",
        subject="",
        question=DATES if row["form"] == "option" else "Which?",
        choices=tuple(row.get("choices", CHOICES)) if row["form"] == "letter" else (),
        answer=key,
        form=FORMS[row["form"]],
    )


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['form']}: {row['reply'][-40:]!r}" for row in ROWS])
def test_a_reply_says_what_the_table_says(row: dict[str, Any]) -> None:
    item = asked(row)
    said = extract_answer(row["reply"], item, cut_off=row.get("cut", False))
    if row["form"] == "words":
        assert (said is None) == (row["value"] is None)
        assert is_right(said, item) == (row["value"] == row["key"])
    else:
        assert said == row["value"]


def test_the_table_is_wide() -> None:
    assert len(ROWS) >= 150
    assert {row["form"] for row in ROWS} == {"letter", "number", "option", "words"}
    assert sum(row.get("cut", False) for row in ROWS) >= 20
