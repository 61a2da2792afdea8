"""Schedules, the win-rate matrix, Bradley-Terry strengths, and the tables of peer examination."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import Any

import pytest

from evaluation.lm_examiner.comparing import Comparison, Pair, consistency
from evaluation.lm_examiner.peer_summary import averages, combine, too_inconsistent
from evaluation.lm_examiner.ranking import bradley_terry, cells, win_rates
from evaluation.lm_examiner.schedules import Ranked, most_comparisons, run_schedule
from serving.records import Ask, Sampling, Yielded, derive_seed

EIGHT = tuple("abcdefgh")


def played(schedule: str, names: Sequence[str], best_first: Sequence[str | set[str]]) -> tuple[Ranked, int]:
    """A schedule with an examiner whose opinion is known; on a set of equals in it the examiner contradicts itself.
    Returns what came out, and the number of prompts.
    """
    place = {name: rank for rank, group in enumerate(best_first) for name in group}
    prompts = 0

    def compare(pair: Pair) -> Generator[Yielded, Any, Comparison]:
        nonlocal prompts
        prompts += 2
        yield [Ask(role="examiner", prompt="x", sampling=Sampling(max_tokens=1))] * 2
        a, b = pair
        if place[a] == place[b]:
            return Comparison(pair=pair, choices=(a, b), attempts=2)
        winner = a if place[a] < place[b] else b
        return Comparison(pair=pair, choices=(winner, winner), attempts=2)

    dialogue = run_schedule(schedule, names, compare)
    try:
        wanted = next(dialogue)
        while True:
            wanted = dialogue.send([None] * (1 if isinstance(wanted, Ask) else len(wanted)))
    except StopIteration as end:
        return end.value, prompts


def test_at_most_17_comparisons_for_8_and_both_orders_double_them() -> None:
    assert most_comparisons("merge_sort", 8) == 17
    assert most_comparisons("all_pairs", 8) == 28
    worst = 0
    for shift in range(200):
        order = sorted(EIGHT, key=lambda name: derive_seed(name, shift))
        ranked, prompts = played("merge_sort", EIGHT, order)
        assert list(ranked.order) == order
        assert prompts == 2 * len(ranked.comparisons)
        worst = max(worst, len(ranked.comparisons))
    assert worst <= 17
    ranked, prompts = played("all_pairs", EIGHT, EIGHT[::-1])
    assert (len(ranked.comparisons), prompts) == (28, 56)
    assert ranked.order == EIGHT[::-1]


@pytest.mark.parametrize("schedule", ["merge_sort", "all_pairs"])
def test_a_contradiction_keeps_the_input_order(schedule: str) -> None:
    ranked, _ = played(schedule, ("c", "a", "b"), [{"a", "b", "c"}])
    assert ranked.order == ("c", "a", "b")
    ranked, _ = played(schedule, ("c", "a", "b"), ["b", {"a", "c"}])
    assert ranked.order == ("b", "c", "a")


@pytest.mark.parametrize("schedule", ["merge_sort", "all_pairs"])
def test_one_candidate_needs_no_comparison(schedule: str) -> None:
    ranked, prompts = played(schedule, ("a",), ["a"])
    assert (ranked.order, ranked.comparisons, prompts) == (("a",), (), 0)


def row(a: str, b: str, *choices: str | None) -> dict[str, Any]:
    return Comparison(pair=Pair(a, b), choices=(choices[0], choices[1]), attempts=2).to_json()


def test_what_was_never_played_comes_from_the_order_and_is_marked() -> None:
    # a > b > c: a-c was never asked; b-d could not be read: nothing is known of it
    record = {
        "comparisons": [row("a", "b", "a", "a"), row("b", "c", "b", "c"), row("b", "d", None, "d")],
        "order": ["a", "b", "c", "d"],
    }
    found = cells(record)
    assert found.played == {("a", "b"): 1.0, ("b", "a"): 0.0, ("b", "c"): 0.5, ("c", "b"): 0.5}
    assert found.inferred[("a", "c")] == 1.0
    assert found.inferred[("d", "c")] == 0.0
    assert ("b", "d") not in found.inferred
    matrix = win_rates(
        [record, {"comparisons": [row("a", "b", "b", "b")], "order": ["b", "a", "c", "d"]}], tuple("abcd")
    )
    assert matrix["rates"][0] == [None, 0.5, 1.0, 1.0]
    assert matrix["inferred"][0] == [0, 0, 2, 2]
    assert matrix["questions"][1] == [2, 0, 2, 1]
    assert matrix["mean"]["a"] == pytest.approx(2.5 / 3)
    assert win_rates([], ("a", "b"))["mean"] == {"a": None, "b": None}


def test_consistency_counts_contradictions_and_places() -> None:
    rows = [row("a", "b", "a", "a"), row("a", "b", "a", "b"), row("a", "b", None, "b"), row("a", "b", "b", "a")]
    found = consistency(rows)
    assert (found["comparisons"], found["known"], found["contradictory"], found["unreadable"]) == (4, 3, 2, 1)
    assert found["inconsistency"] == pytest.approx(2 / 3)
    # shown first: a of (a, b), b of (b, a). Chosen first: 1 of 2, 2 of 2, 1 of 1, 0 of 2
    assert found["first_share"] == pytest.approx(4 / 7)
    assert consistency([])["inconsistency"] is None


def test_bradley_terry_of_two() -> None:
    # a wins 3 of 4: log odds ln 3, centred: +- ln(3)/2
    records = [{"comparisons": [row("a", "b", w, w)], "order": ["a", "b"]} for w in ("a", "a", "b", "a")]
    found = bradley_terry(records, ("a", "b"), seed=1, resamples=200)
    assert found["strengths"]["a"] == pytest.approx(math.log(3) / 2, abs=1e-6)
    assert found["strengths"]["b"] == pytest.approx(-math.log(3) / 2, abs=1e-6)
    low, high = found["intervals"]["a"]
    assert low <= found["strengths"]["a"] <= high
    assert 0 < found["dropped"] < 200  # resamples in which nobody but one wins
    assert found == bradley_terry(records, ("a", "b"), seed=1, resamples=200)


def test_draws_are_half_a_win_and_inferred_cells_count_nothing() -> None:
    records = [{"comparisons": [row("a", "b", "a", "b")], "order": ["a", "b", "c"]}]
    assert bradley_terry(records, ("a", "b"), seed=0)["strengths"] == {"a": 0.0, "b": 0.0}
    found = bradley_terry(records, ("a", "b", "c"), seed=0)
    assert found["strengths"] == {"a": None, "b": None, "c": None}
    assert "never lost" in found["reason"]
    assert bradley_terry([], ("a", "b"), seed=0)["reason"] == "no comparisons"


PAPER = {
    "Claude": {"Claude": None, "ChatGPT": 98.0, "Bard": 100.0, "Vicuna": 96.0},
    "ChatGPT": {"Claude": 41.0, "ChatGPT": None, "Bard": 100.0, "Vicuna": 95.0},
    "Bard": {"Claude": 41.0, "ChatGPT": 99.0, "Bard": None, "Vicuna": 92.0},
    "Vicuna": {"Claude": 42.0, "ChatGPT": 98.0, "Bard": 99.0, "Vicuna": None},
}


def test_the_papers_peer_table() -> None:
    found = averages(PAPER, list(PAPER))
    assert [round(value, 1) for value in found["AVG_weight"].values()] == [99.7, 98.9, 97.8, 99.3]
    truncated = [math.floor(value * 100 + 1e-9) / 100 for value in found["AVG"].values()]
    assert truncated == [98.0, 78.66, 77.33, 79.66]  # the paper rounds 78.667 and 79.667 up
    assert [round(value, 2) for value in found["AVG"].values()] == [98.0, 78.67, 77.33, 79.67]
    assert found["unscaled"] == []


def test_a_column_of_zeros_cannot_be_scaled() -> None:
    table = {"a": {"b": 0.0, "c": 50.0}, "b": {"c": 100.0}, "c": {"b": 0.0}}
    found = averages(table, ["a", "b", "c"])
    assert found["unscaled"] == ["a", "b"]
    assert found["AVG"] == {"a": 25.0, "b": 100.0, "c": 0.0}
    assert found["AVG_weight"] == {"a": 50.0, "b": 100.0, "c": None}


def matrix(names: Sequence[str], **rates: float) -> dict[str, Any]:
    """A matrix from the rates of pairs ``ab=0.7``."""
    values = {(pair[0], pair[1]): v for pair, v in rates.items()} | {(p[1], p[0]): 1 - v for p, v in rates.items()}
    return {"names": list(names), "rates": [[values.get((a, b)) for b in names] for a in names]}


def test_combined_by_mean_and_by_vote() -> None:
    found = combine(
        {
            "a": matrix("bcd", bc=0.9, bd=0.5, cd=0.4),
            "b": matrix("acd", ac=0.6, ad=0.6, cd=0.4),
            "c": matrix("abd", ab=1.0, ad=0.2, bd=0.6),
            "d": matrix("abc", ab=0.4, ac=0.1, bc=0.45),
        },
        "abcd",
    )
    mean, vote = found["by_mean"]["rates"], found["by_vote"]["rates"]
    assert mean[0][1:] == pytest.approx([0.7, 0.35, 0.4])  # a-b by c and d, a-c by b and d, a-d by b and c
    assert vote[0][1:] == [0.5, 0.5, 0.5]
    assert mean[1][2] == pytest.approx((0.9 + 0.45) / 2)
    assert vote[1][2] == 0.5
    assert vote[1][3] == pytest.approx(0.75)  # a: exactly 0.5 is half a vote, c: 0.6 is one
    assert vote[2][3] == 0.0
    assert found["examiners_of_pair"][0] == [0, 2, 2, 2]
    left = combine({"c": matrix("abd", ab=1.0), "d": matrix("abc", ab=0.4)}, "abcd", excluded=["c"])
    assert left["by_mean"]["rates"][0][1] == pytest.approx(0.4)
    assert left["by_mean"]["mean"]["a"] is None


def test_inconsistent_examiners_are_named() -> None:
    rows = {
        "steady": consistency([row("a", "b", "a", "a")] * 3),
        "even": consistency([row("a", "b", "a", "a"), row("a", "b", "a", "b")]),
        "odd": consistency([row("a", "b", "a", "b")] * 3),
        "mute": consistency([row("a", "b", None, None)]),
        "idle": consistency([]),
    }
    assert too_inconsistent(rows, 0.5) == ["odd", "mute"]
    assert too_inconsistent(rows, 0.4) == ["even", "odd", "mute"]
