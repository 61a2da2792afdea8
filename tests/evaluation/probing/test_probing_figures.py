"""Figures worked out by hand."""

from __future__ import annotations

import pytest

from evaluation.probing.abilities import Point, ability_correlations, by_size, size_slopes
from evaluation.probing.contamination import drops, fidelity, resistance
from evaluation.probing.effects import (
    Outcome,
    by_subject,
    churn,
    comparison,
    corrected_accuracy,
    monotonicity,
    over_sets,
    pooled,
    relative_effectiveness,
)


def outcomes(text: str, options: int = 4) -> dict[str, Outcome]:
    """``+-`` by item: right, wrong; a blank is no result."""
    return {f"i{n}": Outcome(mark == "+", options) for n, mark in enumerate(text) if mark != " "}


def test_accuracy_delta_and_churn() -> None:
    row = comparison(outcomes("++++----++"), outcomes("+++---+--+", 5), seed=0)
    # before 6 of 10, after 5 of 10; i3 and i8 lost, i6 won
    assert (row["n"], row["vanilla"], row["probed"]) == (10, 0.6, 0.5)
    assert row["delta"] == pytest.approx(-0.1)
    assert row["delta_interval"][0] < -0.1 < row["delta_interval"][1]
    assert row["churn"]["counts"] == {"OT/PT": 4, "OT/PF": 2, "OF/PT": 1, "OF/PF": 3}
    assert row["churn"]["changed"] == pytest.approx(0.3)
    assert row["chance"] == {"vanilla": 0.25, "probed": 0.2}
    # (0.6 - 1/4) / (3/4) and (0.5 - 1/5) / (4/5)
    assert row["corrected"]["vanilla"] == pytest.approx(7 / 15)
    assert row["corrected"]["probed"] == pytest.approx(3 / 8)


def test_churn_hides_under_a_delta_of_zero() -> None:
    table = churn(list(outcomes("++--").values()), list(outcomes("--++").values()))
    assert table["counts"] == {"OT/PT": 0, "OT/PF": 2, "OF/PT": 2, "OF/PF": 0}
    assert table["changed"] == 1.0
    assert churn([], [])["changed"] is None


def test_chance_of_each_item() -> None:
    mixed = [Outcome(True, 4), Outcome(False, 5), Outcome(True, 0), Outcome(False, 2)]
    # 1, -1/4, 1 (an open question), -1
    assert corrected_accuracy(mixed) == pytest.approx((1 - 0.25 + 1 - 1) / 4)
    assert corrected_accuracy([Outcome(True, 1)]) is None
    assert corrected_accuracy([]) is None


def test_unpaired_items_are_counted() -> None:
    row = comparison(outcomes("++ -"), outcomes("+ +-"), seed=0)
    assert (row["n"], row["unpaired"]) == (2, 2)
    assert comparison({}, {}, seed=0)["delta"] is None


def test_mean_and_deviation_over_sets() -> None:
    vanilla = outcomes("++++")
    rows = [comparison(vanilla, outcomes(text), seed=0) for text in ("++--", "+++-", "++++")]
    row = over_sets(rows)
    assert row["probed"] == {"mean": 0.75, "sd": 0.25, "n": 3}
    assert row["delta"]["mean"] == -0.25
    assert over_sets(rows[:1])["probed"]["sd"] is None


def test_pooled_change_is_per_item_over_the_sets_it_is_in() -> None:
    row = pooled(outcomes("++"), [outcomes("+-"), outcomes("- ")], seed=0)
    assert row["n"] == 2
    assert row["delta"] == pytest.approx(((0.5 - 1) + (0 - 1)) / 2)


def test_relative_effectiveness() -> None:
    whole = {"delta": -0.2, "delta_interval": [-0.3, -0.1]}
    assert relative_effectiveness(-0.05, whole)["value"] == pytest.approx(0.25)
    unclear = relative_effectiveness(-0.05, {"delta": -0.2, "delta_interval": [-0.4, 0.01]})
    assert unclear["value"] is None
    assert unclear["reason"].startswith("undefined")
    assert relative_effectiveness(-0.05, {"delta": 0.0, "delta_interval": [0.0, 0.0]})["value"] is None
    assert relative_effectiveness(None, whole)["value"] is None


def test_monotonicity() -> None:
    assert monotonicity([0.8, 0.7, 0.7, 0.6])["holds"] is True
    row = monotonicity([0.8, 0.7, None, 0.75])
    assert row["holds"] is False
    assert row["rising"] == [{"from": 1, "to": 3, "rise": pytest.approx(0.05)}]
    assert monotonicity([0.8, None])["holds"] is None


def test_drops_by_subject() -> None:
    rows = by_subject(outcomes("++--"), [outcomes("+---"), outcomes("---+")],
                      {"i0": "a", "i1": "a", "i2": "b", "i3": "b"})  # fmt: skip
    # a: 1 -> (1/2 + 0) / 2; b: 0 -> (0 + 1/2) / 2
    assert [(row["subject"], row["delta"]) for row in rows] == [("a", -0.75), ("b", 0.25)]


def test_fidelity_and_resistance() -> None:
    clean, clean_probed = outcomes("++--"), outcomes("+---")
    cheater, cheater_probed = outcomes("++++"), outcomes("++--")
    assert fidelity(clean, clean_probed)["value"] == 0.75
    assert resistance(clean_probed, cheater_probed)["value"] == 0.75
    row = drops((clean, clean_probed), (cheater, cheater_probed), seed=0)
    assert (row["clean_drop"], row["contaminated_drop"], row["excess_drop"]) == (0.25, 0.5, 0.25)
    assert (row["advantage_vanilla"], row["advantage_probed"]) == (0.5, 0.25)
    assert resistance({}, {}) == {"value": None, "interval": None, "n": 0}


def point(lu: float, ps: float, dk: float | None, size: float | None = None) -> Point:
    return Point(candidate="c", benchmark="b", accuracies={"LU": lu, "PS": ps, "DK": dk}, size=size)


def test_correlations_of_abilities_state_n() -> None:
    points = [point(0.1, 0.2, 0.4), point(0.2, 0.4, 0.3), point(0.3, 0.6, 0.2), point(0.4, 0.8, None)]
    table = ability_correlations(points, seed=0, resamples=50)
    assert table["LU-PS"]["pearson"]["value"] == pytest.approx(1.0)
    assert table["LU-PS"]["pearson"]["n"] == 4
    assert table["LU-DK"]["kendall"]["value"] == pytest.approx(-1.0)
    assert table["LU-DK"]["kendall"]["n"] == 3
    few = ability_correlations(points[:2], seed=0)["PS-DK"]["spearman"]
    assert (few["value"], few["n"]) == (None, 2)


def test_size_groups_and_slopes() -> None:
    points = [point(0.2, 0.3, 0.1, 1.0), point(0.3, 0.3, 0.2, 10.0), point(0.4, 0.3, 0.3, 100.0)]
    slopes = size_slopes(points)
    assert slopes["LU"]["slope"] == pytest.approx(0.1)  # per tenfold size
    assert slopes["PS"]["slope"] == pytest.approx(0.0)
    assert size_slopes(points[:1])["LU"]["slope"] is None
    groups = by_size(points, seed=0, resamples=10)
    assert groups["limit_billions"] == 10.0
    assert groups["large"]["LU-PS"]["pearson"]["n"] == 1
    assert by_size(points[:1], seed=0) == {}
