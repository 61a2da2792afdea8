"""Stratified, seeded bootstrap of ranking statistics: members and non-members are resampled apart.

One seed and the same two group sizes always draw the same texts, so two detectors (or two models) on the same texts are
resampled in pairs. A resample is a vector of counts (how often each text was drawn), and AUC and TPR are sums over
these counts: no text is sorted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detection.statistics.metrics import allowed_false_positives, classes

RESAMPLES = 2_000
COVERAGE = 0.95
_CELLS = 1_000_000  # counts worked on at once: bounds memory, changes no number
_KEPT_CELLS = 25_000_000  # counts kept for the next score column: 100 MB

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]


class Interval(NamedTuple):
    """Percentile interval of coverage 95%; both ends NaN where undefined."""

    low: float
    high: float


class Resampled(NamedTuple):
    """``auc``: one value per resample; ``tpr``: one row per resample, one column per level."""

    auc: Floats
    tpr: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """AUC of the first minus AUC of the second on the same texts, with its paired interval.

    n: texts that both could score. NaN with a ``reason`` where a class is missing.
    """

    value: float
    low: float
    high: float
    n: int
    reason: str = ""


def percentile_interval(values: Floats) -> Interval:
    """The middle 95% of bootstrap values: around the statistic itself, never around its mirror."""
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return Interval(float(low), float(high))


def draw_counts(sizes: Sequence[int], *, seed: int, resamples: int) -> Iterator[list[Counts]]:
    """Blocks of resamples: per group an array (block, size) of how often each text was drawn; rows sum to size."""
    if sum(sizes) * resamples > _KEPT_CELLS:
        yield from _draw(sizes, seed, resamples)
    else:
        yield from _drawn(tuple(sizes), seed, resamples)


@lru_cache(maxsize=1)
def _drawn(sizes: tuple[int, ...], seed: int, resamples: int) -> list[list[Counts]]:
    """The draws of the last sizes and seed: an audit weighs dozens of score columns over the same texts."""
    return list(_draw(sizes, seed, resamples))


def _draw(sizes: Sequence[int], seed: int, resamples: int) -> Iterator[list[Counts]]:
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(len(sizes))]
    block = max(1, _CELLS // max(1, sum(sizes)))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        counts = []
        for size, stream in zip(sizes, streams, strict=True):
            drawn = stream.integers(0, size, (rows, size)) + size * np.arange(rows)[:, None]
            counts.append(np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size).astype(np.int32))
        for table in counts:
            table.setflags(write=False)
        yield counts


def resample(
    members: Floats,
    non_members: Floats,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    levels: Sequence[float] = (),
) -> Resampled:
    """AUC (midranks) and TPR at the FPR ``levels`` of each resample.

    members, non_members: finite scores, neither empty
    """
    order = np.argsort(non_members, kind="stable")
    member_order = np.argsort(members, kind="stable")
    below = np.searchsorted(non_members[order], members[member_order], side="left")
    not_above = np.searchsorted(non_members[order], members[member_order], side="right")
    ties = bool((below != not_above).any())
    pairs = 2.0 * len(members) * len(non_members)
    allowed = [allowed_false_positives(level, len(non_members)) for level in levels]
    aucs, tprs = [], []
    for member_counts, other_counts in draw_counts([len(members), len(non_members)], seed=seed, resamples=resamples):
        mine = np.take(member_counts, member_order, axis=1)
        cumulative = _cumulated(np.take(other_counts, order, axis=1))
        beaten = np.take(cumulative, below, axis=1)  # non-members below each member's own score
        beaten_or_tied = np.take(cumulative, not_above, axis=1) if ties else beaten
        aucs.append((_dot(mine, beaten) + _dot(mine, beaten_or_tied)) / pairs)
        ahead = _cumulated(mine)
        hits = []
        for most in allowed:
            # A member is a hit from the first place on below which all but ``most`` non-members lie.
            least = np.argmax(cumulative >= len(non_members) - most, axis=1)
            misses = np.take_along_axis(ahead, np.searchsorted(below, least, side="left")[:, None], axis=1)[:, 0]
            hits.append((len(members) - misses) / len(members))
        tprs.append(np.stack(hits, axis=1) if hits else np.empty((len(member_counts), 0)))
    return Resampled(np.concatenate(aucs), np.concatenate(tprs))


def _cumulated(counts: Counts) -> Counts:
    """Row by row, how many were drawn before each place; one column more than ``counts``."""
    cumulative = np.zeros((len(counts), counts.shape[1] + 1), dtype=np.int32)
    np.cumsum(counts, axis=1, out=cumulative[:, 1:])
    return cumulative


def _dot(counts: Counts, values: Counts) -> Floats:
    """Row by row scalar product of counts of drawn texts: exact, for no sum exceeds members x non-members."""
    small = counts.shape[1] * int(values.max(initial=0)) < 2**31
    products = np.einsum("bi,bi->b", counts, values, dtype=np.int32 if small else np.int64)
    exact: Floats = products.astype(np.float64)
    return exact


def auc_interval(labels: Any, scores: Any, *, seed: int, resamples: int = RESAMPLES) -> Interval:
    """95% interval of the AUC. NaN ends where a class is missing."""
    groups = classes(labels, scores)
    if not groups.complete:
        return Interval(float("nan"), float("nan"))
    return percentile_interval(resample(groups.members, groups.non_members, seed=seed, resamples=resamples).auc)


def paired_difference(
    labels: Sequence[int | None],
    first: Sequence[float | None],
    second: Sequence[float | None],
    *,
    seed: int,
    resamples: int = RESAMPLES,
) -> Difference:
    """AUC(first) - AUC(second) over the labelled texts that both score, with a paired bootstrap interval.

    first, second: scores of two detectors, or of two models, for the same texts in the same order; None or NaN:
        unscorable. ValueError where the lengths differ.
    """
    if not len(labels) == len(first) == len(second):
        raise ValueError(f"lengths differ: {len(labels)} labels, {len(first)} and {len(second)} scores")
    a = np.array(first, dtype=np.float64)
    b = np.array(second, dtype=np.float64)
    kept = np.isfinite(a) & np.isfinite(b) & np.array([label is not None for label in labels], dtype=bool)
    truth = np.array([-1 if label is None else label for label in labels], dtype=np.int64)[kept]
    one, two = classes(truth, a[kept]), classes(truth, b[kept])
    if not one.complete:
        nan = float("nan")
        return Difference(value=nan, low=nan, high=nan, n=int(kept.sum()), reason=one.reason)
    values = [resample(g.members, g.non_members, seed=seed, resamples=resamples).auc for g in (one, two)]
    low, high = percentile_interval(values[0] - values[1])
    return Difference(value=one.auc() - two.auc(), low=low, high=high, n=int(kept.sum()))
