"""The builder lm_examiner: what is asked, asked again, kept, counted, frozen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation import benchmarks
from evaluation import registry as builders
from evaluation.lm_examiner.build import exam_hash, sample_rows
from evaluation.lm_examiner.levels import level_of
from serving.ledger import Ledger
from serving.model.spec import ModelSpec
from serving.records import Ask, Completion
from serving.role_engines import Cast
from serving.scheduler import run_dialogues
from tests.evaluation.exam_driver import drive, said

WORDS = [
    "amber",
    "brass",
    "copper",
    "diamond",
    "emerald",
    "flint",
    "granite",
    "helium",
    "iodine",
    "jade",
    "krypton",
    "lead",
]


def line(n: int, word: str) -> str:
    return f"{n}. How does {word} {word[::-1]} relate to {word * 2}?"


def text(ask: Ask) -> str:
    return "\n".join(message.content for message in ask.prompt)  # type: ignore[union-attr]


def build(reply: Callable[[Ask], Completion], seed: int = 1, **options: Any) -> tuple[Any, list[Any], list[Ask]]:
    builder = builders.build_builder("lm_examiner", {"domains": 1, "questions": 3, **options}, seed=seed)
    records, asked = [], []
    for dialogue in builder.dialogues([]):
        demands, record = drive(dialogue, reply)
        records.append(json.loads(json.dumps(record)))
        asked += demands
    return builder.finish([], records), records, asked  # type: ignore[return-value]


def replies(*writings: str) -> Callable[[Ask], Completion]:
    left: Iterator[str] = iter(writings)

    def reply(ask: Ask) -> Completion:
        if ask.schema is not None:
            return said('{"level": "analysis"}' if "level" in ask.schema["properties"] else '{"verdict": "wrong"}')
        return said(next(left)) if "different exam question" in text(ask) else said("An answer.")

    return reply


def test_what_is_missing_is_asked_again_with_another_seed() -> None:
    first = f"Sure! Here are three:\n{line(1, 'amber')}\n{line(2, 'amber')}\n3. This is a statement."
    built, (record,), asked = build(replies(first, line(1, "brass"), f"{line(1, 'copper')}\n{line(2, 'diamond')}"))
    writings = [ask for ask in asked if ask.schema is None and "different exam question" in text(ask)]
    assert [attempt["asked"] for attempt in record["attempts"]] == [3, 2, 1]
    assert len({ask.sampling.seed for ask in writings}) == 3
    assert all(ask.sampling.temperature == 0.7 for ask in writings)
    assert "| How does amber" in text(writings[1])
    assert [item.question.split()[2] for item in built.items] == ["amber", "brass", "copper"]
    assert built.summary["refused"] == {"duplicate": 1, "statement": 1, "surplus": 1}
    assert (built.summary["asked"], built.summary["written"], built.summary["shortfall"]) == (3, 3, 0)


def test_a_shortfall_is_reported_and_the_exam_is_what_there_is() -> None:
    built, (record,), _ = build(replies(line(1, "amber"), "I'd rather not."), retries=1)
    assert record["shortfall"] == built.summary["shortfall"] == 2
    assert (built.summary["short_domains"], len(built.items)) == (1, 1)
    assert built.summary["unnumbered_attempts"] == 1
    empty, _, _ = build(replies("", "", "", ""))
    assert (len(empty.items), empty.summary["shortfall"]) == (0, 3)


def test_ten_questions_in_two_lengths_with_levels_and_references() -> None:
    ten = "\n".join(line(n, word) for n, word in enumerate(WORDS[:10], 1))
    built, _, asked = build(replies(ten), questions=10)
    assert len(built.items) == 10
    assert "The first 3 can be answered in at most 20 words" in text(asked[0])
    assert "The last 3 are compound" in text(asked[0])
    references = [ask for ask in asked if "Answer this question" in text(ask)]
    assert ["20 words" in text(ask) for ask in references] == [True] * 3 + [False] * 7
    assert {level_of(item) for item in built.items} == {"analysis"}
    assert all(item.answer == "An answer." and item.form == "text" for item in built.items)
    assert built.summary["levels"]["shares"]["analysis"] == 1.0
    assert built.summary["question_words"]["how"] == 10
    assert built.summary["exam_sha256"] == exam_hash(built.items)


def test_hard_questions_have_no_short_ones() -> None:
    _, _, asked = build(replies("\n".join(line(n, word) for n, word in enumerate(WORDS[:3], 1))), hard=True)
    assert "hard and compound" in text(asked[0])
    assert not any("20 words" in text(ask) for ask in asked)


def test_what_has_no_reference_and_what_another_domain_asked_is_left_out() -> None:
    def reply(ask: Ask) -> Completion:
        if ask.schema is not None:
            return said("{")
        if "different exam question" in text(ask):
            return said(f"{line(1, 'amber')}\n{line(2, 'brass')}")
        return said("" if "brass" in text(ask) else "An answer.")

    built, _, _ = build(reply, domains=2, questions=2)
    assert len(built.items) == 1
    assert (built.summary["unanswered"], built.summary["repeated"]) == (2, 1)
    assert built.summary["levels"]["unclassified"] == 1
    assert level_of(built.items[0]) == "unclassified"


def test_a_second_model_checks_the_references() -> None:
    built, (record,), asked = build(replies(line(1, "amber")), questions=1, check=True)
    assert built.summary["check"]["share_right"] == 0.0
    assert [ask.role for ask in asked] == ["examiner", "examiner", "examiner", "checker"]
    assert builders.build_builder("lm_examiner", {"check": True}, seed=0).roles == ("examiner", "checker")
    assert sample_rows([record], 5, seed=1)[0]["right"] == ""


def test_another_seed_is_another_exam() -> None:
    def domains(seed: int) -> list[str]:
        built = builders.build_builder("lm_examiner", {"domains": 20}, seed=seed)
        return [domain.name for domain in built.domains]  # type: ignore[attr-defined]

    assert domains(1) == domains(1)
    assert set(domains(1)) != set(domains(2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"domains": 0}, "lm_examiner.domains"),
        ({"domains": 500}, "asked for 500 domains, but the taxonomy has 208"),
        ({"taxonomy": "nowhere.json"}, "there is no taxonomy file nowhere.json"),
        ({"question": 3}, "did you mean 'questions'"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        builders.build_builder("lm_examiner", options, seed=0)


@pytest.mark.real
def test_smollm2_writes_an_exam_that_other_protocols_read(smollm: Path, tmp_path: Path) -> None:
    """Quality is poor, the machinery right: items have the form of a benchmark, and everything is accounted for."""
    builder = builders.build_builder(
        "lm_examiner", {"domains": 1, "questions": 2, "retries": 1, "answer_tokens": 20}, seed=4
    )
    spec = ModelSpec(path=str(smollm), engine="transformers", dtype="float32")
    with Cast({"examiner": spec}, ledger=Ledger(tmp_path / "ledger"), mode="lockstep") as cast:
        records = run_dialogues(builder.dialogues([]), cast, wave=8)
    built = builder.finish([], json.loads(json.dumps(records)))
    summary = built.summary
    assert summary["written"] + summary["shortfall"] == summary["asked"] == 2
    assert len(built.items) == summary["written"] - summary["unanswered"] - summary["repeated"]
    path = tmp_path / "exam.jsonl"
    path.write_text("".join(json.dumps(item.to_json()) + "\n" for item in built.items), encoding="utf-8")
    if built.items:
        assert benchmarks.load("jsonl", path) == list(built.items)
