from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.idgen.exam import score_form
from evaluation.items import Item, make_item
from evaluation.registry import build
from serving.records import Ask, Completion
from tests.evaluation.exam_driver import drive, said, scripted


def question(**changed: Any) -> Item:
    fields: dict[str, Any] = {
        "benchmark": "idgen",
        "split": "",
        "subject": "science",
        "question": "Why is the sky blue?",
        "choices": (),
        "answer": "",
        "references": ("REFERENCE",),
        "source_id": "seed",
    }
    return make_item(**{**fields, **changed})


def mark(value: int) -> Completion:
    return said(json.dumps({"comment": "c", "score": value}))


def sit(item: Item, *verdicts: Completion, reply: Completion | None = None, **options: Any) -> tuple[Any, Any, Any]:
    protocol = build("idgen", options, seed=1)
    answers = scripted(candidate=[reply or said("BECAUSE")], evaluator=list(verdicts))
    asks, record = drive(next(iter(protocol.dialogues([item]))), answers)
    return asks, json.loads(json.dumps(record)), protocol.summarise([record])


def text(ask: Ask) -> str:
    return "\n".join(message.content for message in ask.prompt if not isinstance(message, str))


def test_an_answer_is_scored_with_the_reference_at_hand() -> None:
    asks, record, summary = sit(question(), mark(2))
    assert [ask.role for ask in asks] == ["candidate", "evaluator"]
    assert "| REFERENCE" in text(asks[1])
    assert "| BECAUSE" in text(asks[1])
    assert "from 0 to 3" in text(asks[1])
    assert "REFERENCE" not in text(asks[0])
    assert (record["score"], record["max_score"], record["status"]) == (2, 3, "scored")
    assert (summary["score"], summary["score_100"]) == (2, pytest.approx(200 / 3))
    assert summary["scores"] == {"0": 0, "1": 0, "2": 1, "3": 0}


def test_a_rubric_of_another_length() -> None:
    asks, record, _ = sit(question(), mark(5), max_score=5)
    assert asks[1].schema["properties"]["score"]["enum"] == [0, 1, 2, 3, 4, 5]
    assert (record["score"], record["max_score"]) == (5, 5)
    _, record, summary = sit(question(), mark(4), retries=0)
    assert (record["score"], record["status"], summary["unscored"]) == (None, "missing_verdict", 1)


def test_an_item_without_references_has_its_key_for_one() -> None:
    asks, _, _ = sit(question(references=(), answer="Scattering."), mark(1))
    assert "| Scattering." in text(asks[1])
    asks, record, _ = sit(question(references=()), mark(1))
    assert "Reference answer" not in text(asks[1])
    assert not record["reference_used"]


def test_what_has_no_answer_has_no_score() -> None:
    asks, record, summary = sit(question(), mark(3), reply=said("", "context"))
    assert [ask.role for ask in asks] == ["candidate"]
    assert (record["score"], record["status"], summary["unanswered"]) == (None, "unanswered", 1)
    assert build("idgen", {}, seed=0).summarise([])["score"] is None


@pytest.mark.parametrize(
    ("said_by_judge", "score"),
    [
        ("Good.\nScore: 2", 2),
        ("**Score:** 3/3", 3),
        ("Final score: 2 out of 3.", 2),
        ("Score: 8/10", None),
        ("Score: 4", None),
        ("Score: 2.5", None),
        ("Score: 1 or 2", None),
        ("Score: 1\nScore: 2", None),
        ("| Score: 3", None),
        ('{"comment": "x", "score": 1}', 1),
        ("good", None),
    ],
)
def test_a_score_in_free_text(said_by_judge: str, score: int | None) -> None:
    verdict = score_form(3).parse_free(said_by_judge)
    assert (verdict.value if verdict else None) == score


def test_too_little_room_for_a_verdict_is_refused() -> None:
    with pytest.raises(ValueError, match="evaluator_tokens is 5"):
        build("idgen", {"evaluator_tokens": 5}, seed=0)
    with pytest.raises(ValueError, match="max_score"):
        build("idgen", {"max_score": 0}, seed=0)
