from __future__ import annotations

import json
import math
from typing import Any

import pytest

from evaluation.benchmarks.splits import exemplars_for
from evaluation.formats import chat_answer, chat_question, plain_prompt
from evaluation.items import Item, make_item
from evaluation.registry import build
from evaluation.static import Static, StaticOptions
from serving.records import Ask, Message, Score, TokenScores
from tests.evaluation.exam_driver import drive, make_items, said, scored


def examine(item: Item, reply: Any, exemplars: Any = (), **options: Any) -> tuple[list[Ask | Score], dict[str, Any]]:
    protocol = build("static", options, seed=3, exemplars=exemplars)
    return drive(next(iter(protocol.dialogues([item]))), reply)


def by_option(*logprobs: float) -> Any:
    values = iter(logprobs)
    return lambda demand: scored(next(values))


def test_letter_mode_scores_each_letter_after_the_plain_prompt(item: Item) -> None:
    demands, record = examine(item, by_option(-3.0, -1.0, -2.0, -4.0))
    prompt = plain_prompt(item)
    assert demands == [
        Score(role="candidate", prompt=prompt, continuation=f" {letter}", answer_only=True) for letter in "ABCD"
    ]
    assert record == {
        "item_id": item.id,
        "subject": "physics",
        "mode": "letter",
        "status": "right",
        "correct": True,
        "prediction": "B",
        "answer": "B",
        "options": 4,
        "log_likelihoods": [-3.0, -1.0, -2.0, -4.0],
    }


def test_letter_mode_through_the_chat_template(item: Item) -> None:
    demands, _ = examine(item, by_option(-1, -2, -3, -4), text_format="chat")
    assert [demand.continuation for demand in demands if isinstance(demand, Score)] == list("ABCD")
    assert demands[0].prompt == (Message(role="user", content=chat_question(item)),)


@pytest.mark.parametrize("value", [math.nan, -math.inf, math.inf])
def test_a_value_that_is_not_finite_makes_the_item_unparsable(item: Item, value: float) -> None:
    _, record = examine(item, by_option(-1, -2, value, -3))
    assert (record["status"], record["prediction"], record["correct"]) == ("unparsable", None, False)
    assert record["log_likelihoods"] == [-1, -2, None, -3]
    json.dumps(record, allow_nan=False)


def test_an_option_without_scored_tokens_makes_the_item_unparsable(item: Item) -> None:
    empty = TokenScores(ids=(), logprobs=(), segments=())
    _, record = examine(item, lambda demand: empty)
    assert (record["status"], record["log_likelihoods"]) == ("unparsable", [None] * 4)


def test_cloze_mode_scores_option_texts_and_divides_by_characters_and_by_bytes() -> None:
    item = make_item(
        benchmark="t", split="", subject="s", question="Which?", choices=["ab", "\u00e9" * 3, "c"], answer="B"
    )
    # Divided by bytes (2, 6, 1): -2, -0.8333, -1.5, so B. By characters (2, 3, 1): -2, -1.67, -1.5, so C.
    demands, record = examine(item, by_option(-4.0, -5.0, -1.5), mode="cloze")
    assert [demand.continuation for demand in demands if isinstance(demand, Score)] == [
        " ab",
        " \u00e9\u00e9\u00e9",
        " c",
    ]
    assert demands[0].prompt == "Question: Which?\nAnswer:"
    assert (record["prediction"], record["correct"]) == ("C", False)
    assert (record["prediction_norm"], record["correct_norm"]) == ("C", False)
    assert (record["prediction_bytes"], record["correct_bytes"]) == ("B", True)
    summary = Static(StaticOptions(mode="cloze"), seed=0).summarise([record])
    assert (summary["accuracy"], summary["acc_norm"], summary["acc_bytes"]) == (0.0, 0.0, 1.0)
    assert summary["subjects"]["s"]["acc_bytes"] == 1.0


def test_cloze_mode_in_chat_hides_the_options(item: Item) -> None:
    demands, _ = examine(item, by_option(-1, -2, -3, -4), mode="cloze", text_format="chat")
    assert demands[0].prompt == (Message(role="user", content="Question: What bends light?"),)
    assert [demand.continuation for demand in demands if isinstance(demand, Score)] == list(item.choices)


def test_few_shot_prompts(item: Item) -> None:
    pool = make_items(8, ("physics", "biology"))
    shots = exemplars_for(item, pool, 2, 3)
    demands, _ = examine(item, by_option(-1, -2, -3, -4), pool, shots=2)
    expected = "\n\n".join([*(f"{plain_prompt(shot)} {shot.answer}" for shot in shots), plain_prompt(item)])
    assert demands[0].prompt == expected
    demands, _ = examine(item, by_option(-1, -2, -3, -4), pool, shots=2, mode="cloze")
    assert isinstance(demands[0].prompt, str)
    assert f"Question: {shots[0].question}\nAnswer: {shots[0].answer_text}\n\n" in demands[0].prompt
    demands, _ = examine(item, by_option(-1, -2, -3, -4), pool, shots=2, text_format="chat")
    assert isinstance(demands[0].prompt, tuple)
    assert [message.role for message in demands[0].prompt] == ["user", "assistant"] * 2 + ["user"]
    assert demands[0].prompt[1].content == chat_answer(shots[0])


def test_too_few_exemplars_are_an_error_at_once(item: Item) -> None:
    protocol = build("static", {"shots": 5}, seed=0, exemplars=make_items(3))
    with pytest.raises(ValueError, match="asked for 5 exemplars, the pool has 3 for subject physics"):
        protocol.dialogues([item])


@pytest.mark.parametrize(
    ("text", "status", "prediction"),
    [(" B. A lens", "right", "B"), ("C", "wrong", "C"), ("B or C", "unparsable", None), ("", "unparsable", None)],
)
def test_generate_mode_extracts(item: Item, text: str, status: str, prediction: str | None) -> None:
    demands, record = examine(item, lambda ask: said(text), mode="generate", max_tokens=9)
    (ask,) = demands
    assert isinstance(ask, Ask)
    assert (ask.prompt, ask.sampling.max_tokens, ask.sampling.temperature) == (plain_prompt(item), 9, 0.0)
    assert ask.sampling.stop == ("\nQuestion:",)
    assert (record["status"], record["prediction"]) == (status, prediction)
    assert (record["reply"], record["finish_reason"]) == (text.strip(), "stop")


def test_generate_mode_asks_open_questions() -> None:
    item = make_item(benchmark="t", split="", subject="", question="Capital?", choices=[], answer="Paris")
    for text, status in (("Paris.", "right"), ("Rome", "wrong"), ("", "unparsable")):
        demands, record = examine(item, lambda ask, text=text: said(text), mode="generate", text_format="chat")
        assert record["status"] == status
        assert demands[0].prompt == (Message(role="user", content="Capital?"),)
    protocol = build("static", {}, seed=0)
    with pytest.raises(ValueError, match=r"no choices.*mode: generate"):
        protocol.dialogues([item])


def test_summary_counts_the_three_outcomes_apart() -> None:
    items = make_items(4, ("physics", "biology"))
    replies = ["A", "B", "?", "A"]
    records = [
        examine(item, lambda ask, text=text: said(text), mode="generate")[1]
        for item, text in zip(items, replies, strict=True)
    ]
    three = make_item(benchmark="t", split="", subject="physics", question="?", choices=["x", "y"], answer="A")
    records.append(examine(three, lambda ask: said("A"), mode="generate")[1])
    summary = Static(StaticOptions(mode="generate"), seed=0).summarise(records)
    assert (summary["n"], summary["right"], summary["wrong"], summary["unparsable"]) == (5, 3, 1, 1)
    assert summary["accuracy"] == pytest.approx(0.6)
    # Wilson: (p + z2/2n -+ z sqrt(p q / n + z2 / 4n2)) / (1 + z2/n) with p = .6, n = 5
    assert summary["accuracy_interval"] == pytest.approx([0.2307, 0.8824], abs=1e-4)
    assert summary["unparsable_rate"] == pytest.approx(0.2)
    assert summary["chance"] == pytest.approx((4 * 0.25 + 0.5) / 5)
    assert list(summary["subjects"]) == ["biology", "physics"]
    assert (summary["subjects"]["biology"]["n"], summary["subjects"]["biology"]["right"]) == (2, 1)
    assert "acc_norm" not in summary
    assert json.loads(json.dumps(summary)) == summary


def test_summary_of_nothing() -> None:
    summary = Static(StaticOptions(), seed=0).summarise([])
    assert (summary["n"], summary["accuracy"], summary["accuracy_interval"]) == (0, None, None)


def test_options_are_strict() -> None:
    for options, message in (
        ({"shots": -1}, r"static.shots.*it is -1"),
        ({"shots": "5"}, r"static.shots.*it is '5'"),
        ({"mode": "guess"}, r"static.mode.*it is 'guess'"),
        ({"modus": "letter"}, "static.modus"),
    ):
        with pytest.raises(ValueError, match=message):
            build("static", options, seed=0)


def test_reasoning_first(item: Item) -> None:
    exam = build("static", {"mode": "generate", "text_format": "chat", "chain_of_thought": True}, seed=0)
    reply = "A lens has a curved surface, a mirror sends light back.\nAnswer: B"
    (ask,), record = drive(next(iter(exam.dialogues([item]))), lambda ask: said(reply))
    assert isinstance(ask, Ask)
    asked = ask.prompt[-1].content  # type: ignore[union-attr]
    assert asked.endswith("Think step by step first. End with a line that holds Answer: and A, B, C or D.")
    assert (ask.sampling.max_tokens, record["prediction"], record["correct"]) == (400, "B", True)
    with pytest.raises(ValueError, match="chain_of_thought needs mode: generate"):
        build("static", {"chain_of_thought": True}, seed=0)
