from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.items import Item, make_item
from evaluation.kieval.options import KIEvalOptions, OpeningOptions
from evaluation.kieval.prefilter import Prefilter, choose
from evaluation.registry import build
from serving.records import Ask, Completion
from tests.evaluation.exam_driver import drive, make_items, said


def answered(items: list[Item], texts: list[str], **options: Any) -> list[dict[str, Any]]:
    protocol = Prefilter(OpeningOptions(**options))
    records = []
    for dialogue, text in zip(protocol.dialogues(items), texts, strict=True):
        records.append(drive(dialogue, lambda ask, text=text: said(text))[1])
    return records


@pytest.mark.parametrize("how", ["chat", "plain"])
def test_the_evaluator_is_asked_what_the_candidate_is_asked(item: Item, how: str) -> None:
    exam = KIEvalOptions(candidate_tokens=33, candidate_format=how)  # type: ignore[arg-type]
    kieval = build("kieval", {"candidate_tokens": 33, "candidate_format": how}, seed=3)
    candidates = next(next(iter(kieval.dialogues([item]))))
    filtering = next(next(iter(Prefilter.of(exam).dialogues([item]))))
    assert isinstance(candidates, Ask)
    assert isinstance(filtering, Ask)
    assert (candidates.role, filtering.role) == ("candidate", "evaluator")
    assert candidates.request() == filtering.request()
    assert filtering.sampling.temperature == 0.0


def test_a_record(item: Item) -> None:
    (record,) = answered([item], [" B. A lens\n"])
    assert record == {"item_id": item.id, "text": "B. A lens", "letter": "B", "correct": True}
    assert [r["correct"] for r in answered([item] * 3, ["C", "Perhaps A or B", ""])] == [False, None, None]
    question = make_item(benchmark="t", split="", subject="", question="Capital?", choices=[], answer="Paris")
    assert answered([question], ["paris"])[0]["correct"] is True
    assert json.loads(json.dumps(record)) == record


def test_a_prompt_that_does_not_fit_is_unparsable(item: Item) -> None:
    def full(ask: Ask) -> Completion:
        return said("", "context")

    assert drive(next(iter(Prefilter(OpeningOptions()).dialogues([item]))), full)[1]["correct"] is None


def test_the_first_n_right_ones_in_the_exams_order() -> None:
    items = make_items(6)  # keys A B C D A B
    records = answered(items, ["A", "A", "C", "?", "A", "B"])
    chosen = choose(records[::-1], items, 2)
    assert [item.id for item in chosen.items] == [items[0].id, items[2].id]
    assert (chosen.wrong, chosen.unparsable, chosen.asked, chosen.shortfall) == (1, 0, 3, 0)
    everything = choose(records, items)
    assert [item.id for item in everything.items] == [items[i].id for i in (0, 2, 4, 5)]
    assert (everything.wrong, everything.unparsable, everything.asked, everything.shortfall) == (1, 1, 6, 0)


def test_a_shortfall_is_stated() -> None:
    items = make_items(3)
    chosen = choose(answered(items, ["A", "?", "A"]), items, 3)
    assert [item.id for item in chosen.items] == [items[0].id]
    assert chosen.shortfall == 2
    assert chosen.note() == (
        "1 of the first 3 items are kept: 1 answered wrongly and 1 unparsably by the evaluator are left out; "
        "2 fewer than wanted, for the exam has no more"
    )
    nothing = choose([], [], 4)
    assert (nothing.items, nothing.shortfall) == ((), 4)


def test_later_items_need_no_record_and_duplicates_are_kept() -> None:
    items = make_items(3)
    first = answered(items[:1], ["A"])
    assert choose(first, items, 1).asked == 1
    assert choose(first * 2, [items[0], items[0]]).items == (items[0], items[0])


def test_what_cannot_be_chosen_from() -> None:
    items = make_items(2)
    records = answered(items, ["A", "B"])
    with pytest.raises(ValueError, match="n is 0"):
        choose(records, items, 0)
    with pytest.raises(ValueError, match=f"item {items[1].id} has no record"):
        choose(records[:1], items, 2)
    with pytest.raises(ValueError, match="say True and False"):
        choose([*records, {**records[0], "correct": False}], items)


def test_summary() -> None:
    items = make_items(4)
    summary = Prefilter(OpeningOptions()).summarise(answered(items, ["A", "B", "A", "?"]))
    assert (summary["n"], summary["right"], summary["wrong"], summary["unparsable"]) == (4, 2, 1, 1)
    assert summary["accuracy"] == 0.5
    low, high = summary["accuracy_interval"]
    assert low < 0.5 < high
    empty = Prefilter(OpeningOptions()).summarise([])
    assert (empty["n"], empty["accuracy"], empty["accuracy_interval"]) == (0, None, None)


def test_hashes_are_those_of_the_candidates_prompts() -> None:
    assert set(Prefilter(OpeningOptions()).prompt_hashes()) == {
        "kieval_candidate_system.jinja",
        "kieval_candidate_plain.jinja",
    }
