"""Intervals and paired tests for exam results.

All take plain numbers and refuse NaN; none depends on row order beyond the pairing. Intervals are two-sided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
_CHUNK = 4_000_000


class Interval(NamedTuple):
    """Lower and upper bound."""

    low: float
    high: float


class Difference(NamedTuple):
    """Mean of a - b over the pairs, with its interval."""

    mean: float
    interval: Interval


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


def bootstrap_mean(
    values: Sequence[float], *, seed: int, resamples: int = RESAMPLES, confidence: float = 0.95
) -> Interval | None:
    """Percentile bootstrap interval of the mean (Efron 1979): a function of values, their order and the seed.

    None for no values. One value gives that value as both bounds: it says nothing about the spread.
    """
    _check_confidence(confidence)
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; it must be at least 1")
    data = _finite(values)
    if data.size == 0:
        return None
    means = np.concatenate(list(_resampled_means(data, seed, resamples)))
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(low), float(high))


def paired_bootstrap(
    a: Sequence[float], b: Sequence[float], *, seed: int, resamples: int = RESAMPLES, confidence: float = 0.95
) -> Difference | None:
    """Mean difference a - b of two candidates on the same items, its bootstrap interval over items. None for none."""
    _check_pairs(a, b)
    differences = _finite(a) - _finite(b)
    interval = bootstrap_mean(differences.tolist(), seed=seed, resamples=resamples, confidence=confidence)
    return None if interval is None else Difference(float(differences.mean()), interval)


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
