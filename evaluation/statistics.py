"""Intervals and paired tests for exam results.

All take plain numbers and refuse NaN; none depends on row order beyond the pairing. Intervals are two-sided.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 10_000
FEW = 50
"""Below so many values a mean's interval is Student's t."""
FLIPS = 9_999
_ROUNDING = 1e-12
_CHUNK = 4_000_000


class Interval(NamedTuple):
    """Lower and upper bound."""

    low: float
    high: float


class Mean(NamedTuple):
    """mean: None of nothing; interval: None where the n values are all equal, and ``note`` says what they tell."""

    mean: float | None
    interval: Interval | None
    n: int
    note: str = ""

    def to_json(self, value: str = "mean", interval: str = "interval") -> dict[str, Any]:
        """The two figures under these names; ``<interval>_note`` where there is a note."""
        row: dict[str, Any] = {value: self.mean, interval: None if self.interval is None else list(self.interval)}
        return {**row, f"{interval}_note": self.note} if self.note else row


class Welch(NamedTuple):
    """p_value: two-sided; p_greater: one-sided, of a difference above 0. None without any spread."""

    difference: float
    interval: Interval | None
    p_value: float | None
    p_greater: float | None


class McNemar(NamedTuple):
    """Paired right/wrong results: the discordant counts and the exact two-sided p-value."""

    only_a: int
    only_b: int
    p_value: float


def mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing. ValueError for NaN or infinity."""
    return float(np.mean(_finite(values))) if len(values) else None


def wilson(successes: float, n: int, confidence: float = 0.95) -> Interval | None:
    """Wilson's score interval of a proportion, without continuity correction (Wilson 1927). None for n = 0.

    successes: their number, or the sum of what n units earned, each of 0 to 1: such a sum varies less than a count of
        the same size, so that its interval is rather too wide.
    """
    from scipy.stats import binomtest

    _check_confidence(confidence)
    if not 0 <= successes <= n:
        raise ValueError(f"successes is {successes}; it must lie in 0..n, and n is {n}")
    if n == 0:
        return None
    if successes != int(successes):
        from statsmodels.stats.proportion import proportion_confint

        low, high = proportion_confint(successes, n, alpha=1 - confidence, method="wilson")
        return Interval(float(low), float(high))
    bounds = binomtest(int(successes), n).proportion_ci(confidence, method="wilson")
    return Interval(float(bounds.low), float(bounds.high))


def mean_of(
    values: Sequence[float], *, seed: int, scale: tuple[float, float] | None = None, confidence: float = 0.95
) -> Mean:
    """The mean with its interval: Student's t below 50 values, percentile bootstrap (Efron 1979) from there on.

    Values that are all equal say nothing about the spread: no interval then, but a ``note`` with the upper bound of the
    share of the population that may lie elsewhere (Clopper & Pearson 1934).

    scale: the least and the greatest value possible; no bound lies outside, and the note names floor and ceiling. Near
        an end values are skewed, and below 50 the interval reaches as far as Wilson's form of it does, too
    """
    _check_confidence(confidence)
    data = _finite(values)
    if data.size == 0:
        return Mean(None, None, 0)
    centre = float(data.mean())
    if np.ptp(data) <= _ROUNDING * max(1.0, abs(centre)):
        return Mean(centre, None, data.size, all_equal(centre, data.size, scale, confidence))
    if data.size < FEW:
        from scipy.stats import sem, t

        error, quantile = float(sem(data)), float(t.ppf((1 + confidence) / 2, data.size - 1))
        bounds = Interval(centre - quantile * error, centre + quantile * error)
        if scale is not None:
            score = _score_interval(centre, quantile * error, scale)
            bounds = Interval(min(bounds.low, score.low), max(bounds.high, score.high))
    else:
        drawn = np.concatenate(list(_resampled_means(data, seed, RESAMPLES)))
        bounds = percentile_interval(drawn, confidence) or Interval(centre, centre)
    if scale is not None:
        bounds = Interval(max(bounds.low, scale[0]), min(bounds.high, scale[1]))
    return Mean(centre, bounds, data.size)


def _score_interval(centre: float, half: float, scale: tuple[float, float]) -> Interval:
    """The means mu from which the centre is no farther than ``half`` times the ratio of the spreads at mu and at the
    centre, which go as sqrt(mu (1 - mu)) on the scale: Wilson's interval (1927) with the values' own variance."""
    low, width = scale[0], scale[1] - scale[0]
    m = (centre - low) / width
    weight = (half / width) ** 2 / (m * (1 - m))
    middle = (m + weight / 2) / (1 + weight)
    reach = float(np.sqrt(weight * m * (1 - m) + weight**2 / 4)) / (1 + weight)
    return Interval(low + width * (middle - reach), low + width * (middle + reach))


def all_equal(value: float, n: int, scale: tuple[float, float] | None = None, confidence: float = 0.95) -> str:
    """What n equal values say: ``8 of 8 at the floor: up to 37 % may lie elsewhere``."""
    place = (
        f"at {value:g}"
        if scale is None or value not in scale
        else ("at the floor", "at the ceiling")[value == scale[1]]
    )
    elsewhere = 1 - ((1 - confidence) / 2) ** (1 / n)
    return f"{n} of {n} {place}: up to {100 * elsewhere:.0f} % may lie elsewhere"


def paired_mean(a: Sequence[float], b: Sequence[float], *, seed: int, scale: tuple[float, float] | None = None) -> Mean:
    """Mean difference a - b of two candidates on the same items, as ``mean_of`` the differences."""
    _check_pairs(a, b)
    differences = _finite(a) - _finite(b)
    return mean_of(differences.tolist(), seed=seed, scale=scale)


def percentile_interval(values: ArrayLike, confidence: float = 0.95) -> Interval | None:
    """The interval that holds the middle of the resamples' values; None of none."""
    data = np.asarray(values, dtype=np.float64)
    if not data.size:
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(data, [tail, 1 - tail])
    return Interval(float(low), float(high))


def welch(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Welch | None:
    """Mean of a minus mean of b, two independent groups of any spread (Welch 1947). None where one has fewer than two
    values; neither interval nor p-values where neither group has any spread."""
    from scipy.stats import ttest_ind

    _check_confidence(confidence)
    x, y = _finite(a), _finite(b)
    if min(x.size, y.size) < 2:
        return None
    difference = float(x.mean() - y.mean())
    if np.ptp(x) == 0 and np.ptp(y) == 0:
        return Welch(difference, None, None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # scipy's, where one group's values are all equal
        test = ttest_ind(x, y, equal_var=False)
        bounds = test.confidence_interval(confidence)
        above = ttest_ind(x, y, equal_var=False, alternative="greater")
    interval = Interval(float(bounds.low), float(bounds.high))
    return Welch(difference, interval, float(test.pvalue), float(above.pvalue))


def sign_flip(
    differences: Sequence[float],
    *,
    seed: int,
    alternative: Literal["two-sided", "greater"] = "two-sided",
    resamples: int = FLIPS,
) -> float:
    """P-value of mean 0, each difference's sign being a coin (Fisher 1935); exact where 2^n <= ``resamples``.

    1 where all differences are 0, and two-sided where all but one are.
    """
    from scipy.stats import permutation_test

    data = np.asarray([d for d in differences if d != 0], dtype=float)  # a sign does not change zeros
    if data.size == 1:  # scipy wants two; one difference has two signs
        return 1.0 if alternative == "two-sided" or data[0] < 0 else 0.5
    if data.size == 0:
        return 1.0
    data /= np.abs(data).max()
    result = permutation_test(
        (data,),
        lambda x, axis: np.round(np.mean(x, axis=axis), 12),  # sums that cancel leave a rounding error on either side
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        alternative=alternative,
        rng=np.random.default_rng(seed),
    )
    return min(1.0, float(result.pvalue))


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> McNemar:
    """McNemar's exact test of two candidates' right/wrong answers on the same items (1947; binomial form).

    Under the null hypothesis a discordant pair favours either with probability 1/2. No discordant pair: p = 1.
    """
    from scipy.stats import binomtest

    _check_pairs(a, b)
    only_a = sum(bool(x) and not y for x, y in zip(a, b, strict=True))
    only_b = sum(bool(y) and not x for x, y in zip(a, b, strict=True))
    discordant = only_a + only_b
    p_value = float(binomtest(only_a, discordant, 0.5).pvalue) if discordant else 1.0
    return McNemar(only_a, only_b, p_value)


def _resampled_means(data: NDArray[np.float64], seed: int, resamples: int) -> Iterator[NDArray[np.float64]]:
    """Chunked, so that 10,000 resamples of 14,000 items need 32 MB instead of 1 GB."""
    generator = np.random.default_rng(seed)
    rows = max(1, _CHUNK // data.size)
    for start in range(0, resamples, rows):
        picks = generator.integers(data.size, size=(min(rows, resamples - start), data.size))
        yield data[picks].mean(axis=1)


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    data = np.asarray(values, dtype=np.float64)
    if not np.isfinite(data).all():
        position = int(np.flatnonzero(~np.isfinite(data))[0])
        raise ValueError(
            f"value {position} is {data[position]}; leave out what has no value before asking for statistics"
        )
    return data


def _check_pairs(a: Sequence[object], b: Sequence[object]) -> None:
    if len(a) != len(b):
        raise ValueError(f"there are {len(a)} values of one and {len(b)} of the other; pairs need as many of both")


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie between 0 and 1, as 0.95")
