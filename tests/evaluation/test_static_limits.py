"""The static exam where there is no plain answer: ties, items longer than the context, copies as exemplars."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaluation.benchmarks.splits import copies_of, exemplars_for, question_key
from evaluation.item_analysis.matrix import score_field
from evaluation.items import Item, make_item
from evaluation.registry import build
from evaluation.static import Static, StaticOptions
from evaluation.static_results import score, shown
from proctor.report.item_score import earned_by_both, scored
from serving.records import Ask, Completion, Score, TokenScores
from tests.evaluation.exam_driver import drive, make_items, said
from tests.evaluation.exam_driver import scored as table
from tests.evaluation.test_static import by_option, examine


def summary(records: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    return Static(StaticOptions(**options), seed=0).summarise(records)


def limited(context: int) -> Any:
    """A candidate whose tokens are words: scores the end of what is longer than its context, as engines do."""

    def answer(demand: Any) -> Any:
        words = len(demand.prompt.split())
        if isinstance(demand, Ask):
            return said("B") if words < context else said("", "context")
        cut = max(0, words + 1 - context)
        best = demand.continuation.strip() == "B"
        return TokenScores(ids=(1,), logprobs=(-1.0 if best else -2.0,), segments=("answer",), dropped=cut)

    return answer


# ties


def test_a_tie_counts_its_share(item: Item) -> None:
    _, two = examine(item, by_option(-2, -1, -1, -2))
    assert (two["status"], two["correct"], two["prediction"]) == ("tied", None, None)
    assert (two["tied"], two["credit"]) == (["B", "C"], 0.5)
    _, four = examine(item, by_option(-1, -1, -1, -1))
    assert (four["tied"], four["credit"]) == (list("ABCD"), 0.25)
    _, lost = examine(item, by_option(-1, -2, -1, -2))  # the key is not among the best
    assert (lost["status"], lost["correct"], lost["tied"]) == ("wrong", False, ["A", "C"])
    assert "credit" not in lost
    found = summary([two, four, lost])
    assert (found["n"], found["tied"], found["right"], found["wrong"]) == (3, 3, 0, 1)
    assert found["accuracy"] == pytest.approx(0.75 / 3)
    # Wilson for p = .25, n = 3: (p + z2/2n -+ z sqrt(pq/n + z2/4n2)) / (1 + z2/n)
    assert found["accuracy_interval"] == pytest.approx([0.0368, 0.7439], abs=1e-4)
    assert [score(record) for record in (two, four, lost)] == [0.5, 0.25, 0.0]


def test_keys_that_all_stand_first_gain_nothing_from_a_model_that_tells_nothing_apart() -> None:
    items = [replace(one, answer="A") for one in make_items(8)]
    for mode in ("letter", "cloze"):
        records = [examine(one, lambda _: table(-3.0), mode=mode)[1] for one in items]
        assert summary(records, mode=mode)["accuracy"] == 0.25
        assert summary(records, mode=mode)["tied"] == 8


def test_ties_by_length_are_ties_of_their_own() -> None:
    item = make_item(benchmark="t", split="", subject="s", question="Which?", choices=["ab", "abc", "d"], answer="B")
    # by characters -0.1, -0.1 (of 2 and 3: the quotients differ in their last bit) and -0.4
    _, record = examine(item, by_option(-0.2, -0.1 - 0.1 - 0.1, -0.4), mode="cloze")
    assert (record["prediction"], record["status"]) == ("A", "wrong")
    assert (record["tied_norm"], record["credit_norm"], record["correct_norm"]) == (["A", "B"], 0.5, None)
    found = summary([record], mode="cloze")
    assert (found["accuracy"], found["acc_norm"], found["acc_bytes"]) == (0.0, 0.5, 0.5)


# items longer than the context


@pytest.mark.parametrize("mode", ["letter", "cloze", "generate"])
def test_an_item_longer_than_the_context_is_not_scored(item: Item, mode: str) -> None:
    long = replace(item, question="NOT " * 90 + item.question)
    demands, record = examine(long, limited(60), mode=mode)
    assert (record["status"], record["correct"], record["prediction"]) == ("unscored", None, None)
    assert "log_likelihoods" not in record
    if mode == "generate":
        assert (record["reply"], record["finish_reason"]) == ("", "context")
        assert "cut" not in record
    else:
        assert record["cut"] == max(len(d.prompt.split()) + 1 - 60 for d in demands if isinstance(d, Score))  # type: ignore[union-attr]
    _, whole = examine(item, limited(60), mode="letter")
    found = summary([record, whole], mode="letter")
    assert (found["n"], found["overlong"], found["unscored"], found["right"], found["accuracy"]) == (2, 1, 1, 1, 1.0)
    assert found["chance"] == 0.25
    assert summary([record])["accuracy"] is None
    assert score_field(record) == ("correct", 1.0)
    assert "longer than the context" in str(shown(record))


def test_an_overlong_item_is_scored_on_request(item: Item) -> None:
    long = replace(item, question="NOT " * 90 + item.question)
    _, record = examine(long, limited(60), overlong="scored")
    assert (record["status"], record["prediction"], record["cut"] > 0) == ("right", "B", True)
    found = summary([record])
    assert (found["cut_and_scored"], found["overlong"], found["accuracy"]) == (1, 0, 1.0)


@pytest.mark.parametrize("mode", ["letter", "generate"])
def test_exemplars_are_dropped_before_the_item_is_cut(item: Item, mode: str) -> None:
    pool = make_items(6)
    whole, record = examine(item, limited(10_000), pool, shots=3, mode=mode)
    assert "exemplars_dropped" not in record
    prompts = [demand.prompt for demand in whole if isinstance(demand.prompt, str)]
    room = len(prompts[0].split()) - 5  # one exemplar too many
    demands, record = examine(item, limited(room), pool, shots=3, mode=mode)
    assert (record["status"], record["exemplars_dropped"]) == ("right", 1)
    kept = demands[-1].prompt
    assert isinstance(kept, str)
    assert kept == prompts[0].split("\n\n", 1)[1], "the first exemplar is dropped, the others stay"
    found = summary([record], mode=mode)
    assert (found["fewer_exemplars"], found["accuracy"]) == (1, 1.0)
    assert "1 exemplars did not fit" in str(shown(record))
    _, none = examine(item, limited(3), pool, shots=3, mode=mode)
    assert (none["status"], none["exemplars_dropped"]) == ("unscored", 3)


def test_exemplars_leave_a_reply_its_room(item: Item) -> None:
    def answer(ask: Ask) -> Completion:
        cut = ask.prompt.count("Question:") > 2  # type: ignore[union-attr]
        text, reason = ("It may b", "length") if cut else ("B", "stop")
        return Completion(text=text, finish_reason=reason, prompt_tokens=1, output_tokens=3)  # type: ignore[arg-type]

    _, record = examine(item, answer, make_items(6), shots=3, mode="generate")
    assert (record["prediction"], record["exemplars_dropped"]) == ("B", 2)


def test_only_items_with_a_result_are_paired(item: Item) -> None:
    _, right = examine(item, by_option(-2, -1, -3, -3))
    _, tied = examine(item, by_option(-1, -1, -3, -3))
    _, cut = examine(replace(item, question="NOT " * 90), limited(60))
    mine = scored(Static, [{**record, "half": "leaked"} for record in (right, tied, cut)])
    assert earned_by_both(mine, [mine[0]] * 3, "leaked") == [(1.0, 1.0), (0.5, 1.0)]


# copies among the exemplars

QUESTION = "What does “bend” light \u2013 always?"


def copy_of(item: Item, **changes: Any) -> Item:
    given = {"question": item.question, "choices": item.choices, "answer": item.answer, "context": item.context}
    return make_item(benchmark="pool", split="dev", subject=item.subject, **{**given, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"choices": ("d", "c", "b", "a"), "answer": "C"},
        {"question": QUESTION.upper()},
        {"question": f"  {QUESTION.replace(' ', '  ')}\n"},
        {"question": QUESTION.replace(" ", "\u00a0")},
        {"question": 'What does "bend" light - always'},
        {"question": QUESTION.replace("bend", "be\u00adnd\u200b")},
        {"question": "Ｗhat does “bend” light \u2013 always？"},
        {"choices": ("a", "b", "c", "other")},
        {"choices": (), "answer": "b"},
    ],
)
def test_a_copy_is_never_its_own_exemplar(changes: dict[str, Any]) -> None:
    tested = make_item(
        benchmark="t", split="test", subject="physics", question=QUESTION, choices="abcd", answer="B", context=""
    )
    pool = [copy_of(tested, **changes), *make_items(2)]
    assert copies_of(tested, pool) == pool[:1]
    assert pool[0] not in exemplars_for(tested, pool, 2, 3)
    assert len(exemplars_for(tested, pool, 3, 3)) == 2
    _, record = examine(tested, by_option(-1, -2, -3, -4), pool, shots=2)
    assert record["exemplar_copies"] == 1
    assert summary([record])["exemplar_copies"] == 1
    assert "1 copies of it in the pool" in str(shown(record))


def test_other_questions_are_no_copies() -> None:
    tested = make_item(benchmark="t", split="", subject="s", question="What is 3 - 1?", choices="abcd", answer="B")
    others = [copy_of(tested, question="What is 3 + 1?"), copy_of(tested, question="What is 31?")]
    marks = [copy_of(tested, question=mark) for mark in ("...", "???")]
    assert copies_of(marks[0], marks) == marks[:1]
    read = make_item(
        benchmark="t", split="", subject="s", question="Why?", choices="abcd", answer="B", context="It rains."
    )
    others_read = [copy_of(read, context="It snows."), copy_of(read, context="it  rains")]
    assert copies_of(tested, others) == []
    assert copies_of(read, others_read) == others_read[1:]
    record = drive(next(iter(build("static", {"shots": 1}, seed=0, exemplars=others).dialogues([tested]))),
                   by_option(-1, -2, -3, -4))[1]  # fmt: skip
    assert "exemplar_copies" not in record


@pytest.mark.parametrize("label", ["Q: ", "1. ", "Question 12: ", "(3) ", "q4) "])
def test_a_copy_may_be_numbered(label: str) -> None:
    assert question_key(f"{label}What is 2 + 2?") == question_key("What is 2 + 2?")
    assert question_key("3.5 times 2 is?") != question_key("5 times 2 is?")
