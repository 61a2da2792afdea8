"""Correlations, pairwise accuracy and kappas against values worked out by hand, and against other implementations."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.agreement.correlation import (
    _kendall_by_matrix,
    _kendall_one_by_one,
    _picks,
    correlations,
    fisher_interval,
)
from evaluation.agreement.kappa import (
    Label,
    Weights,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    label_order,
    pairwise_kappa,
)
from evaluation.agreement.ordering import pairwise_accuracy

RATINGS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=30)


def values(x: list[float], y: list[float]) -> dict[str, float | None]:
    return {name: figure.value for name, figure in correlations(x, y, seed=0, resamples=50).items()}


def test_coefficients_by_hand() -> None:
    # two of ten pairs are out of order; the sum of products is 8 of 10
    assert values([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]) == pytest.approx({"pearson": 0.8, "spearman": 0.8, "kendall": 0.6})
    assert values([1, 2, 3], [3, 2, 1]) == pytest.approx({"pearson": -1, "spearman": -1, "kendall": -1})


def test_ties_by_hand() -> None:
    # ranks 1.5 1.5 3 4 and 1 2.5 2.5 4; of 6 pairs 4 agree, and 1 is tied on either side: 4 / sqrt(5 * 5)
    found = values([1, 1, 2, 3], [1, 2, 2, 3])
    assert found["spearman"] == pytest.approx(3.75 / 4.5)
    assert found["kendall"] == pytest.approx(0.8)


def test_a_monotone_curve_is_perfect_for_ranks_only() -> None:
    found = correlations([1, 2, 3, 4], [1, 10, 100, 1000], seed=0)
    assert found["spearman"].value == pytest.approx(1)
    assert found["kendall"].value == pytest.approx(1)
    assert found["pearson"].value is not None
    assert found["pearson"].value < 0.9


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([], [], "n is 0"),
        ([1.0, 2.0], [1.0, 2.0], "n is 2; a correlation needs at least 3 rows"),
        ([3.0, 3.0, 3.0], [1.0, 2.0, 3.0], "all 3 human ratings are 3"),
        ([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], "all 3 scores are 0.5"),
        ([1.0, math.nan, 3.0], [1.0, 2.0, 3.0], "row 1 .from 0. holds a value that is not a finite number"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, math.inf], "row 2"),
    ],
)
def test_what_has_no_correlation_says_why(x: list[float], y: list[float], reason: str) -> None:
    for figure in correlations(x, y, seed=0).values():
        assert figure.value is None
        assert figure.interval is None
        assert figure.n == len(x)
        assert re.search(reason, figure.reason)
        assert "reason" in figure.to_json()


def test_values_too_large_to_square_have_a_reason() -> None:
    found = correlations([1e308, -1e308, 1e307, 3.0], [1, 2, 3, 4], seed=0, resamples=20)
    assert found["kendall"].value is not None
    for figure in found.values():
        assert figure.value is not None or figure.reason
        assert figure.interval is None or all(map(math.isfinite, figure.interval))


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 ratings and 1 scores"):
        correlations([1, 2], [1], seed=0)


def test_the_bootstrap_is_scipy_on_resampled_rows() -> None:
    from scipy import stats

    generator = np.random.default_rng(4)
    x, y = generator.integers(1, 5, 12).astype(float), generator.normal(size=12)
    (picks,) = _picks(12, 9, 40)
    rows = picks[[len(set(x[row])) > 1 for row in picks]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taus = [stats.kendalltau(x[row], y[row]).statistic for row in rows]
        rhos = [stats.spearmanr(x[row], y[row]).statistic for row in rows]
    assert _kendall_by_matrix(x, y)(rows) == pytest.approx(taus)
    assert _kendall_one_by_one(x, y)(rows) == pytest.approx(taus)
    found = correlations(x.tolist(), y.tolist(), seed=9, resamples=40)
    for name, table in (("kendall", taus), ("spearman", rhos)):
        assert found[name].interval == pytest.approx(np.quantile(table, [0.025, 0.975]))
        assert found[name].dropped == 40 - len(rows)


def test_the_interval_is_a_function_of_the_seed_and_holds_the_value() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=200)
    y = x + generator.normal(size=200)
    once, again, other = (correlations(x.tolist(), y.tolist(), seed=seed, resamples=500) for seed in (1, 1, 2))
    assert once == again
    assert once != other
    for figure in once.values():
        assert figure.value is not None
        assert figure.interval is not None
        assert figure.interval.low < figure.value < figure.interval.high
    assert once["pearson"] == other["pearson"]
    r = once["pearson"].value
    assert r is not None
    fisher = [math.tanh(math.atanh(r) + sign * 1.96 / math.sqrt(197)) for sign in (-1, 1)]
    assert once["pearson"].interval == pytest.approx(fisher, abs=1e-4)


def test_resamples_with_a_constant_side_are_dropped_and_counted() -> None:
    figure = correlations([0, 0, 0, 1], [1, 2, 3, 4], seed=0, resamples=1000)["spearman"]
    # (3/4)^4 of the resamples hold no 1, (1/4)^4 nothing else; few more have a constant score
    assert 250 < figure.dropped < 450
    assert figure.to_json()["dropped_resamples"] == figure.dropped


def test_pairwise_accuracy_by_hand() -> None:
    human, score = [1, 2, 3, 3], [1, 1, 2, 0]
    # of 6 pairs: 2 right, 2 wrong, 1 tied by the score, 1 tied by people
    assert pairwise_accuracy(human, score).value == pytest.approx(2.5 / 5)
    assert pairwise_accuracy(human, score, score_ties="wrong").value == pytest.approx(2 / 5)
    assert pairwise_accuracy(human, score, score_ties="left_out").value == pytest.approx(2 / 4)
    assert pairwise_accuracy(human, score, human_ties="must_tie").value == pytest.approx(2.5 / 6)
    assert pairwise_accuracy(human, score).n == 5


def test_pairwise_accuracy_where_both_tie() -> None:
    assert pairwise_accuracy([1, 1, 2], [5, 5, 9], human_ties="must_tie").value == 1
    assert pairwise_accuracy([1, 1, 2], [5, 5, 9]).n == 2


@pytest.mark.parametrize("ratings", [[], [1.0], [2.0, 2.0, 2.0]])
def test_no_pair_that_counts(ratings: list[float]) -> None:
    figure = pairwise_accuracy(ratings, ratings)
    assert figure.value is None
    assert "none of the" in figure.reason


def test_pairwise_accuracy_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="score_ties is 'maybe'; it must be one of half, wrong, left_out"):
        pairwise_accuracy([1, 2], [1, 2], score_ties="maybe")  # type: ignore[arg-type]
    assert pairwise_accuracy([1, math.nan], [1, 2]).value is None


@given(RATINGS)
def test_kendall_and_pairwise_accuracy_tell_the_same_without_ties(pairs: list[tuple[int, int]]) -> None:
    human, score = (list(dict.fromkeys(side)) for side in zip(*pairs, strict=True))
    n = min(len(human), len(score))
    figure = pairwise_accuracy(human[:n], score[:n])
    tau = correlations(human[:n], score[:n], seed=0, resamples=1)["kendall"].value
    if tau is not None:
        assert figure.value == pytest.approx((tau + 1) / 2)


def test_cohens_kappa_by_hand() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed 0.7, by chance 0.5
    a = ["yes"] * 25 + ["no"] * 25
    b = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    figure = cohen_kappa(a, b, seed=1)
    assert figure.value == pytest.approx(0.4)
    assert figure.n == 50
    assert figure.interval is not None
    # standard error by Cohen's formula: sqrt(0.7 * 0.3 / (50 * 0.5^2)) = 0.13
    assert figure.interval == pytest.approx((0.4 - 1.96 * 0.13, 0.4 + 1.96 * 0.13), abs=0.05)


def test_weighted_kappa_by_hand() -> None:
    a, b = [1, 2, 3, 3], [1, 2, 1, 3]
    # distances: observed 2 / 4, expected 16 / 16; squared: observed 4 / 4, expected 26 / 16
    assert cohen_kappa(a, b, weights="linear").value == pytest.approx(0.5)
    assert cohen_kappa(a, b, weights="quadratic").value == pytest.approx(1 - 1 / 1.625)
    # unweighted: observed 3 / 4 right, by chance (1 * 2 + 1 * 1 + 2 * 1) / 16
    assert cohen_kappa(a, b).value == pytest.approx((0.75 - 5 / 16) / (1 - 5 / 16))


@given(RATINGS, st.sampled_from(["none", "linear", "quadratic"]))
def test_cohens_kappa_is_scikit_learns(pairs: list[tuple[int, int]], weights: Weights) -> None:
    from sklearn.metrics import cohen_kappa_score

    a, b = (list(side) for side in zip(*pairs, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = cohen_kappa_score(a, b, weights=None if weights == "none" else weights, labels=[1, 2, 3, 4])
    found = cohen_kappa(a, b, weights=weights, resamples=0)
    if len({*a, *b}) == 1:
        assert found.value is None
    else:
        assert found.value == pytest.approx(expected)


def test_a_label_nobody_gave_still_has_its_place() -> None:
    from sklearn.metrics import cohen_kappa_score

    a, b = [1, 2, 4, 4, 1], [2, 2, 4, 2, 1]
    ours = cohen_kappa(a, b, weights="quadratic", resamples=0).value
    assert ours == pytest.approx(cohen_kappa_score(a, b, weights="quadratic", labels=[1, 2, 3, 4]))
    assert ours != pytest.approx(cohen_kappa_score(a, b, weights="quadratic"))


def test_degenerate_kappas() -> None:
    figure = cohen_kappa(["a", "a"], ["a", "a"])
    assert figure.value is None
    assert figure.reason == "both gave the label 'a' to every row they share"
    assert cohen_kappa(["a", "a"], ["b", "b"]).value == 0
    assert cohen_kappa(["a", None], [None, "b"]).reason == "no row is rated by both"
    assert cohen_kappa([], []).value is None
    with pytest.raises(ValueError, match="1 labels of one and 0 of the other"):
        cohen_kappa(["a"], [])


def test_resamples_without_a_kappa_are_dropped() -> None:
    figure = cohen_kappa([1, 1, 1, 2], [1, 1, 1, 2], resamples=400)
    assert figure.value == 1
    assert figure.interval == (1, 1)
    assert 80 < figure.dropped < 180  # (3/4)^4 + (1/4)^4 of 400 is 128


def test_weights_need_numbers() -> None:
    with pytest.raises(ValueError, match="weights linear needs labels that are numbers, but one is 'good'"):
        cohen_kappa(["good", "1"], ["1", "1"], weights="linear")
    assert cohen_kappa(["1", "2", "3"], ["1", "2", "2"], weights="linear").value is not None
    assert label_order(["10", "9", "1"]) == ["1", "9", "10"]
    assert label_order(["tie", "10", "9"]) == ["10", "9", "tie"]


def test_kappa_averaged_over_pairs() -> None:
    annotators: dict[str, list[Label | None]] = {
        "anna": ["x", "x", "y", "y", None],
        "ben": ["x", "x", "y", "x", "y"],
        "cleo": ["y", "y", None, None, None],
    }
    table = pairwise_kappa(annotators)
    # anna and ben: 3 of 4 right, by chance (2 * 3 + 2 * 1) / 16; with cleo nothing but disagreement, by chance 0
    assert [(pair["annotators"], pair["kappa"], pair["n"]) for pair in table["pairs"]] == [
        (["anna", "ben"], pytest.approx(0.5), 4),
        (["anna", "cleo"], 0, 2),
        (["ben", "cleo"], 0, 2),
    ]
    assert table["mean"] == pytest.approx(0.5 / 3)


def test_a_pair_without_kappa_leaves_the_mean() -> None:
    table = pairwise_kappa({"a": [1, 2, None], "b": [1, 2, 1], "c": [None, None, 1]})
    assert table["mean"] == 1
    assert [pair.get("reason", "") != "" for pair in table["pairs"]] == [False, True, True]
    assert pairwise_kappa({"a": [1, 2]}) == {"mean": None, "weights": "none", "pairs": []}


def test_fleiss_kappa_is_the_published_one() -> None:
    """The example of Fleiss' kappa with 10 subjects, 14 raters and 5 categories: 0.210."""
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    rows = [[label for label, count in enumerate(row) for _ in range(count)] for row in counts]
    found = fleiss_kappa([[row[rater] for row in rows] for rater in range(14)])
    assert found["value"] == pytest.approx(0.210, abs=5e-4)
    assert (found["n"], found["raters"], found["rows_left_out"]) == (10, 14, 0)


def test_fleiss_kappa_by_hand_with_rows_of_another_count() -> None:
    # three rows of two ratings: 2 of 3 pairs agree, by chance 1 / 2; a row with one rating is left out
    found = fleiss_kappa([["a", "a", "b", "a"], ["a", "b", "b", None]])
    assert found == {"value": pytest.approx(1 / 3), "n": 3, "raters": 2, "rows_left_out": 1}
    assert fleiss_kappa([["a", "a"], ["a", "a"]])["reason"] == "every rating is 'a'"
    assert fleiss_kappa([["a", None], [None, "b"]]) == {
        "value": None, "n": 0, "raters": None, "rows_left_out": 2, "reason": "no row has two ratings",
    }  # fmt: skip
    # as many rows with two ratings as with three: the larger number is used
    assert fleiss_kappa([["a", "b"], ["a", "b"], ["b", None]])["raters"] == 3


def test_fishers_interval_by_hand() -> None:
    # r = 0.5 of 28 rows: arctanh 0.54931 -+ 1.95996 / 5
    assert fisher_interval(0.5, 28) == pytest.approx((math.tanh(0.157314), math.tanh(0.941299)), abs=1e-5)
    assert fisher_interval(1.0, 28) is None
    assert fisher_interval(0.5, 3) is None


NOBODY = None
OBSERVERS: list[list[int | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NOBODY, NOBODY, NOBODY],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NOBODY, 3],
    [NOBODY, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NOBODY],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NOBODY],
]
"""Krippendorff's example with missing ratings ("Computing Krippendorff's alpha-reliability", 2011, section C)."""


def test_krippendorffs_published_example() -> None:
    found = krippendorff_alpha(OBSERVERS)
    assert found["value"] == pytest.approx(0.743, abs=5e-4)
    assert (found["n"], found["ratings"], found["rows_left_out"]) == (11, 40, 1)
    assert krippendorff_alpha(OBSERVERS, weights="quadratic")["value"] == pytest.approx(0.849, abs=5e-4)
    assert fleiss_kappa(OBSERVERS)["rows_left_out"] == 4  # what alpha need not do


def test_alpha_by_hand_and_where_it_is_undefined() -> None:
    # two raters, rows 0 0, 1 1, 0 1, 0 0: 5 zeros, 3 ones; observed 2, expected 2 x 5 x 3 / 7
    assert krippendorff_alpha([[0, 1, 0, 0], [0, 1, 1, 0]])["value"] == pytest.approx(1 - 2 / (30 / 7))
    assert krippendorff_alpha([[1, None], [None, 1]])["reason"] == "no row has two ratings"
    assert krippendorff_alpha([[1, 1], [1, 1]])["reason"] == "every rating is 1"
