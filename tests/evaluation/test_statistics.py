from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.statistics import bootstrap_mean, mcnemar, mean, paired_bootstrap, wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_the_published_intervals(successes: int, n: int, low: float, high: float) -> None:
    """Newcombe 1998, Statistics in Medicine 17, table I, method 3."""
    interval = wilson(successes, n)
    assert interval is not None
    assert interval == pytest.approx((low, high), abs=5e-5)


def test_wilson_at_its_ends() -> None:
    assert wilson(0, 0) is None
    full = wilson(5, 5)
    assert full is not None
    assert full.high == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"successes is 6.*n is 5"):
        wilson(6, 5)
    with pytest.raises(ValueError, match="confidence is 95"):
        wilson(1, 5, confidence=95)


def test_bootstrap_of_nothing_and_of_one_value() -> None:
    assert bootstrap_mean([], seed=1) is None
    assert bootstrap_mean([0.25], seed=1) == (0.25, 0.25)
    assert bootstrap_mean([2.0, 2.0, 2.0], seed=1) == (2.0, 2.0)


def test_bootstrap_agrees_with_the_normal_interval_for_many_values() -> None:
    values = [0.0, 1.0] * 200
    interval = bootstrap_mean(values, seed=3)
    assert interval is not None
    half = 1.96 * 0.5 / math.sqrt(400)
    assert interval == pytest.approx((0.5 - half, 0.5 + half), abs=0.005)


def test_bootstrap_is_a_function_of_its_seed() -> None:
    values = list(np.linspace(0, 1, 37))
    assert bootstrap_mean(values, seed=5) == bootstrap_mean(values, seed=5)
    assert bootstrap_mean(values, seed=5) != bootstrap_mean(values, seed=6)


def test_bootstrap_in_chunks_covers_all_resamples() -> None:
    interval = bootstrap_mean([float(i % 2) for i in range(3_000)], seed=0, resamples=3_000)
    assert interval is not None
    assert interval.low < 0.5 < interval.high


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_bootstrap_stays_within_the_values(values: list[float]) -> None:
    interval = bootstrap_mean(values, seed=0, resamples=50)
    assert interval is not None
    slack = 1e-9 * max(1.0, max(map(abs, values)))
    assert min(values) - slack <= interval.low <= interval.high <= max(values) + slack


def test_nan_is_refused() -> None:
    for values in ([0.1, math.nan], [0.1, math.inf]):
        with pytest.raises(ValueError, match="value 1 is"):
            bootstrap_mean(values, seed=0)
        with pytest.raises(ValueError, match="value 1 is"):
            mean(values)
        with pytest.raises(ValueError, match="value 1 is"):
            paired_bootstrap(values, [0.0, 0.0], seed=0)


def test_mean() -> None:
    assert mean([]) is None
    assert mean([1, 2]) == 1.5


def test_paired_bootstrap_uses_the_pairs() -> None:
    base = list(np.linspace(0, 100, 50))
    better = [value + 1 for value in base]
    difference = paired_bootstrap(better, base, seed=0)
    assert difference is not None
    assert difference.mean == pytest.approx(1.0)
    assert difference.interval == pytest.approx((1.0, 1.0))
    assert paired_bootstrap([], [], seed=0) is None
    with pytest.raises(ValueError, match="1 values of one and 2 of the other"):
        paired_bootstrap([1], [1, 2], seed=0)


def test_mcnemar_by_hand() -> None:
    # One pair for a, five for b: p = 2 (C(6,0) + C(6,1)) / 2^6 = 14 / 64.
    a = [True] + [False] * 5 + [True] * 10 + [False] * 3
    b = [False] + [True] * 5 + [True] * 10 + [False] * 3
    result = mcnemar(a, b)
    assert (result.only_a, result.only_b) == (1, 5)
    assert result.p_value == pytest.approx(14 / 64)
    assert mcnemar([True, False], [True, False]) == (0, 0, 1.0)
    with pytest.raises(ValueError, match="pairs"):
        mcnemar([True], [])


def test_mcnemar_agrees_with_statsmodels() -> None:
    contingency = pytest.importorskip("statsmodels.stats.contingency_tables")
    a = [True] * 12 + [False] * 4 + [True] * 30
    b = [False] * 12 + [True] * 4 + [True] * 30
    expected = contingency.mcnemar([[30, 12], [4, 0]], exact=True).pvalue
    assert mcnemar(a, b).p_value == pytest.approx(expected)
