"""Correlation of scores with human ratings: Pearson, Spearman (average ranks) and Kendall's tau-b.

Pearson's interval is Fisher's (1921): arctanh r is nearly normal with variance 1 / (n - 3). (Of 10 rows a bootstrap
holds the truth in 90 of 100.) The ranks' are percentile bootstrap over rows (Efron 1979): rows are drawn anew, and both
coefficients are computed on the same resamples. A resample in which a side is constant has no correlation: it is
dropped and counted. A coefficient of 1 or -1 has no interval: neither method says how far from it the truth may lie.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.agreement.figures import RESAMPLES, Figure
from evaluation.statistics import Interval, percentile_interval

Array = NDArray[np.float64]

COEFFICIENTS = ("pearson", "spearman", "kendall")
RANKED = ("spearman", "kendall")
_CHUNK = 2_000_000
_MATRIX_ROWS = 1_500


def correlations(
    human: Sequence[float], score: Sequence[float], *, seed: int, resamples: int = RESAMPLES
) -> dict[str, Figure]:
    """The three coefficients by name. Value None, with a reason, for NaN or infinity, n < 3, or a constant side.

    ValueError if the sides differ in length.
    """
    if len(human) != len(score):
        raise ValueError(f"there are {len(human)} ratings and {len(score)} scores; pairs need as many of both")
    a, b = np.asarray(human, dtype=np.float64), np.asarray(score, dtype=np.float64)
    reason = _undefined(a, b)
    if reason:
        return {name: Figure(value=None, n=len(a), reason=reason) for name in COEFFICIENTS}
    values = _values(a, b)
    spread, dropped = _bootstrap(a, b, seed, resamples)
    return {
        name: Figure(
            value=value,
            n=len(a),
            interval=_interval(value, name, len(a), spread),
            reason="" if value is not None else "the values are too large or too close together for this coefficient",
            dropped=dropped if name in spread else 0,
        )
        for name, value in values.items()
    }


def fisher_interval(r: float, n: int, confidence: float = 0.95) -> Interval | None:
    """Of Pearson's r; None for fewer than 4 rows, and for 1 and -1."""
    from scipy.stats import norm

    if n < 4 or abs(r) >= 1 - 1e-12:
        return None
    half = float(norm.ppf((1 + confidence) / 2)) / math.sqrt(n - 3)
    return Interval(math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half))


def _interval(value: float | None, name: str, n: int, spread: dict[str, Array]) -> Interval | None:
    if value is None:
        return None
    if name == "pearson":
        return fisher_interval(value, n)
    return None if abs(value) >= 1 - 1e-12 else percentile_interval(spread[name])


def _undefined(a: Array, b: Array) -> str:
    """Why these rows have no correlation; "" if they have one."""
    bad = np.flatnonzero(~(np.isfinite(a) & np.isfinite(b)))
    if bad.size:
        return f"row {int(bad[0])} (from 0) holds a value that is not a finite number"
    if len(a) < 3:
        return f"n is {len(a)}; a correlation needs at least 3 rows"
    for side, data in (("human ratings", a), ("scores", b)):
        if (data == data[0]).all():
            return f"all {len(a)} {side} are {data[0]:g}; a constant correlates with nothing"
    return ""


def _values(a: Array, b: Array) -> dict[str, float | None]:
    from scipy import stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what scipy warns of comes out as a reason
        found = {
            "pearson": stats.pearsonr(a, b).statistic,
            "spearman": stats.spearmanr(a, b).statistic,
            "kendall": stats.kendalltau(a, b, variant="b").statistic,
        }
    return {name: float(value) if math.isfinite(value) else None for name, value in found.items()}


def _bootstrap(a: Array, b: Array, seed: int, resamples: int) -> tuple[dict[str, Array], int]:
    """The coefficients' values over the resamples, and how many resamples were dropped."""
    from scipy.stats import rankdata

    kendall = _kendall_by_matrix(a, b) if len(a) <= _MATRIX_ROWS else _kendall_one_by_one(a, b)
    found: dict[str, list[Array]] = {name: [] for name in RANKED}
    dropped = 0
    for drawn in _picks(len(a), seed, resamples):
        x, y = a[drawn], b[drawn]
        varied = (x != x[:, :1]).any(axis=1) & (y != y[:, :1]).any(axis=1)
        dropped += int((~varied).sum())
        picks, x, y = drawn[varied], x[varied], y[varied]
        if len(picks):
            found["spearman"].append(_pearson_rows(rankdata(x, axis=1), rankdata(y, axis=1)))
            found["kendall"].append(kendall(picks))
    joined = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in found.items()}
    return {name: values[np.isfinite(values)] for name, values in joined.items()}, dropped


def _picks(n: int, seed: int, resamples: int) -> Iterator[NDArray[np.int64]]:
    """Row indices of the resamples, some resamples at a time, so that memory stays bounded."""
    generator = np.random.default_rng(seed)
    rows = max(1, _CHUNK // n)
    for start in range(0, resamples, rows):
        yield generator.integers(n, size=(min(rows, resamples - start), n))


def _pearson_rows(x: Array, y: Array) -> Array:
    """Pearson's r of each row of x with the same row of y."""
    with np.errstate(all="ignore"):  # overflow comes out as NaN and is left out
        x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
        r: Array = (x * y).sum(axis=1) / np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    return np.clip(r, -1, 1)


def _kendall_by_matrix(a: Array, b: Array) -> Any:
    """tau-b of resamples from how often each row was drawn: w'(S_a * S_b)w / sqrt(w'S_a^2 w * w'S_b^2 w), where S holds
    the signs of all differences. A row drawn twice is a tie with itself, as it should be.

    All sums are whole numbers below 2**24, so float32 is exact.
    """
    n = len(a)
    sign_a, sign_b = ((side[:, None] > side).astype(np.float32) - (side[:, None] < side) for side in (a, b))
    tables = (sign_a * sign_b, np.abs(sign_a), np.abs(sign_b))

    def tau(picks: NDArray[np.int64]) -> Array:
        rows = np.arange(len(picks))[:, None]
        counts = np.bincount((rows * n + picks).ravel(), minlength=len(picks) * n).reshape(len(picks), n)
        weights = counts.astype(np.float32)
        both, by_a, by_b = (((weights @ table) * weights).sum(axis=1).astype(np.float64) for table in tables)
        with np.errstate(all="ignore"):
            return np.asarray(both / np.sqrt(by_a * by_b))

    return tau


def _kendall_one_by_one(a: Array, b: Array) -> Any:
    """The same in n log n time each, where the matrices would be too large."""
    from scipy.stats import kendalltau

    def tau(picks: NDArray[np.int64]) -> Array:
        return np.array([kendalltau(a[rows], b[rows]).statistic for rows in picks])

    return tau
