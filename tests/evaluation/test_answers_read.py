"""The table of replies and what they answer, ``tests/fixtures/replies.jsonl``: one row per reply, written down by hand.

A row: ``form`` (letter, number, option, words), ``rule`` (of docs/answers.md, that predicts the value), ``reply``,
``value`` (None: the reply gives no answer), ``cut`` (it ended at its token limit), ``choices`` and ``key`` where they
are not the usual ones.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks import load
from evaluation.extraction import answer_of, extract_answer, is_right
from evaluation.idgen.build import IDGen
from evaluation.idgen.human_check import _with_reference
from evaluation.items import Form, Item, make_item
from evaluation.kieval.prefilter import Prefilter
from evaluation.registry import build
from serving.records import Completion
from tests.evaluation.exam_driver import drive, said, scripted

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
    found = extract_answer(row["reply"], item, cut_off=row.get("cut", False))
    if row["form"] == "words":
        assert (found is None) == (row["value"] is None)
        assert is_right(found, item) == (row["value"] == row["key"])
    else:
        assert found == row["value"]


def test_the_table_is_wide() -> None:
    assert len(ROWS) >= 150
    assert {row["form"] for row in ROWS} == {"letter", "number", "option", "words"}
    assert sum(row.get("cut", False) for row in ROWS) >= 20


HOSTILE = (
    *(
        "answer is ",
        "Answer: B ",
        "\\boxed{",
        "\\boxed{B} ",
        "<answer>",
        "#### ",
        "(",
        "A. ",
        "B ",
        "**",
        "“",
        '"B" ',
        "选",
    ),
    *(
        "if the answer is ",
        "\\text{",
        "\\frac{",
        "1,",
        "- ",
        "1 1/2 ",
        "½",
        "3 to ",
        "between 1 and ",
        "minus ",
        '{"a":',
    ),
    *(
        '{"answer": "',
        "'",
        "<think>",
        "if it, the answer is ",
        "otherwise the answer is B ",
        "3 hours and ",
        "= 5 or x",
        "C. bird\n",
        "A\n",
        "B is ",
        "B or ",
        "$",
        "x^2 ",
        "Q:",
        "\n",
        " ",
        "?",
        "\\circ",
        "1e",
        "9",
        "٤",
    ),
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_reply_is_read_in_time(piece: str) -> None:
    text = (piece * 20_000)[:20_000]
    for row in ({"form": "letter"}, {"form": "number"}, {"form": "option"}, {"form": "words", "key": "yes"}):
        item = asked({"value": None, **row})
        for reply in (text, f"Answer: {text}", f"{text} B"):
            begun = time.process_time()
            extract_answer(reply, item)
            assert time.process_time() - begun < 1


WALK = "Let's go through the options.\nA. It does not fit.\nB. This one fits.\nC. It does not fit.\n\nAnswer: {}"


@pytest.mark.parametrize("protocol", ["static", "kieval", "prefilter"])
def test_every_reader_knows_whether_a_reply_was_cut(protocol: str) -> None:
    item = asked({"form": "letter", "value": "B"})
    options = (
        {"mode": "generate"} if protocol == "static" else {"rounds": 1, "retries": 0} if protocol == "kieval" else {}
    )
    exam = Prefilter(Prefilter.Options()) if protocol == "prefilter" else build(protocol, options, seed=0)

    def read(completion: Completion) -> object:
        role = exam.roles[-1] if protocol == "prefilter" else "candidate"
        replies = {"interactor": [said("Why?")], "evaluator": [said("?")], role: [completion]}
        (dialogue,) = exam.dialogues([item])
        record = drive(dialogue, scripted(**replies))[1]
        return record["prediction"] if protocol == "static" else record.get("first_answer", record)["letter"]

    assert read(said(WALK.format("B"))) == "B"
    assert read(said(WALK.format("B") + "\n\nFor", "length")) == "B"
    for text in ("Let's go through the options.\nA. It does not fit, since", "B. 4", "B"):
        assert read(said(text, "length")) is None
    # a reasoning tag was left open
    assert read(Completion(text="B", finish_reason="stop", prompt_tokens=1, output_tokens=1, complete=False)) is None


def test_no_cut_of_a_reasoner_scores() -> None:
    """Every item of the embedded exam, its chain of thought cut at every place before the announcement is whole."""
    for item in load("embedded")[:12]:
        reasons = [
            f"{letter}. {text}: that is what it says." for letter, text in zip("ABCD", item.choices, strict=False)
        ]
        reply = "\n".join(["Let's go through the options.", *reasons, "", f"Answer: {item.answer}", ""])
        assert is_right(extract_answer(reply, item), item)
        for end in range(len(reply.rstrip())):
            cut = Completion(text=reply[:end], finish_reason="length", prompt_tokens=1, output_tokens=1)
            assert answer_of(cut, item) is None


def test_a_key_is_not_read_from_a_cut_solution() -> None:
    draft = {
        **{"question": "How many?", "step": "", "strategy": "s", "passed": [], "checks": []},
        "reference": {
            "answers": [{"role": "answerer_1", "text": "3 + 4 = 7, then", "cut": True}],
            "chosen": 0,
            "tie": False,
        },
    }
    record = {"item_id": "i", "subject": "s", "class": "math", "category": "c", "drafts": [draft], "cost": {}}
    exam = IDGen(IDGen.Options(), seed=0)  # type: ignore[arg-type]
    for cut, key in ((True, ""), (False, "7")):
        draft["reference"]["answers"][0]["cut"] = cut  # type: ignore[index]
        (item,) = exam.finish([], [record]).items
        assert item.answer == key


def test_a_replaced_reference_that_was_cut_gives_no_key() -> None:
    item = asked({"form": "number", "value": "18"})
    for cut, key in ((True, ""), (False, "7")):
        assert _with_reference(item, "3 + 4 = 7", cut).answer == key
    assert _with_reference(item, "3 + 4 = 7\n#### 7\nFor", True).answer == "7"
