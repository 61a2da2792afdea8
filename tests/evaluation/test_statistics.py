from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.statistics import mcnemar, mean, mean_of, paired_mean, sign_flip, welch, wilson


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


def test_few_values_have_students_interval() -> None:
    assert mean_of([], seed=1) == (None, None, 0, "")
    # 1, 2, 3: mean 2, error 1 / sqrt(3), t(.975, 2) = 4.3027
    found = mean_of([1.0, 2.0, 3.0], seed=1)
    assert found.interval == pytest.approx((2 - 4.3027 / math.sqrt(3), 2 + 4.3027 / math.sqrt(3)), abs=1e-4)
    assert mean_of([1.0, 2.0, 3.0], seed=1, scale=(1.0, 4.0)).interval == (1.0, 4.0)


def test_equal_values_have_a_count_and_no_interval() -> None:
    # nothing elsewhere in 8 draws: 1 - .025^(1/8) = .369
    found = mean_of([0.1] * 8, seed=1, scale=(0.1, 1.0))
    assert found == (pytest.approx(0.1), None, 8, "8 of 8 at the floor: up to 37 % may lie elsewhere")
    assert found.to_json() == {"mean": pytest.approx(0.1), "interval": None, "interval_note": found.note}
    assert mean_of([1.0] * 8, seed=1, scale=(0.1, 1.0)).note.startswith("8 of 8 at the ceiling")
    assert mean_of([0.25], seed=1).note == "1 of 1 at 0.25: up to 98 % may lie elsewhere"
    assert mean_of([2.0] * 100, seed=1).note == "100 of 100 at 2: up to 4 % may lie elsewhere"


def test_many_values_agree_with_the_normal_interval() -> None:
    interval = mean_of([0.0, 1.0] * 200, seed=3).interval
    assert interval is not None
    half = 1.96 * 0.5 / math.sqrt(400)
    assert interval == pytest.approx((0.5 - half, 0.5 + half), abs=0.005)


def test_resamples_are_a_function_of_the_seed() -> None:
    values = list(np.linspace(0, 1, 67))
    assert mean_of(values, seed=5) == mean_of(values, seed=5)
    assert mean_of(values, seed=5) != mean_of(values, seed=6)


@pytest.mark.parametrize("n", [8, 10, 32, 49])
def test_a_mean_of_few_holds_the_truth_as_often_as_it_says(n: int) -> None:
    """The percentile bootstrap of 8 normal values holds it in 88 of 100."""
    rng = np.random.default_rng(7)
    found = [mean_of(row.tolist(), seed=0).interval for row in rng.normal(size=(500, n))]
    assert np.mean([low <= 0 <= high for low, high in found if low is not None]) >= 0.93  # type: ignore[misc]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=70))
def test_the_mean_lies_in_its_interval_and_the_interval_in_the_scale(values: list[float]) -> None:
    found = mean_of(values, seed=0, scale=(-1e6, 1e6))
    assert (found.interval is None) == bool(found.note)
    if found.interval is not None and found.mean is not None:
        slack = 1e-9 * max(1.0, max(map(abs, values)))
        assert -1e6 <= found.interval.low <= found.mean + slack
        assert found.mean - slack <= found.interval.high <= 1e6


def test_welch_by_hand() -> None:
    # 3 5 against 1 2: error sqrt(1.25), 1.4706 degrees of freedom, t(.975) = 6.188
    found = welch([3.0, 5.0], [1.0, 2.0])
    assert found is not None
    assert found.difference == 2.5
    assert found.interval == pytest.approx((2.5 - 6.918, 2.5 + 6.918), abs=2e-3)
    assert found.p_value == pytest.approx(2 * found.p_greater)  # type: ignore[operator]
    assert welch([1.0], [1.0, 2.0]) is None
    assert welch([1.0, 1.0], [2.0, 2.0]) == (-1.0, None, None, None)


def test_sign_flips() -> None:
    assert sign_flip([0.0, 0.0], seed=0) == 1.0
    assert [sign_flip([0.5, 0.0], seed=0, alternative=a) for a in ("two-sided", "greater")] == [1.0, 0.5]  # type: ignore[arg-type]
    assert sign_flip([-0.5], seed=0, alternative="greater") == 1.0
    assert sign_flip([1.0] * 5, seed=0) == pytest.approx(2 / 2**5)


def test_nan_is_refused() -> None:
    for values in ([0.1, math.nan], [0.1, math.inf]):
        with pytest.raises(ValueError, match="value 1 is"):
            mean_of(values, seed=0)
        with pytest.raises(ValueError, match="value 1 is"):
            mean(values)
        with pytest.raises(ValueError, match="value 1 is"):
            paired_mean(values, [0.0, 0.0], seed=0)


def test_mean() -> None:
    assert mean([]) is None
    assert mean([1, 2]) == 1.5


def test_paired_means_use_the_pairs() -> None:
    base = list(np.linspace(0, 100, 50))
    better = [value + 1 for value in base]
    better[0] += 1
    difference = paired_mean(better, base, seed=0)
    assert difference.mean == pytest.approx(1.02)
    assert difference.interval is not None
    assert difference.interval.low == pytest.approx(1.0)
    assert difference.interval.high < 1.1
    assert paired_mean([1.0, 2.0], [0.0, 1.0], seed=0).interval is None
    assert paired_mean([], [], seed=0).mean is None
    with pytest.raises(ValueError, match="1 values of one and 2 of the other"):
        paired_mean([1], [1, 2], seed=0)


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
