"""Stratified, seeded bootstrap of ranking statistics: members and non-members are resampled apart.

One seed and the same two group sizes always draw the same texts, so two detectors (or two models) on the same texts are
resampled in pairs. A resample is a vector of counts (how often each text was drawn), and AUC and TPR are sums over
these counts: no text is sorted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detection.metrics import allowed_false_positives, classes

RESAMPLES = 2_000
COVERAGE = 0.95
_CELLS = 4_000_000  # counts held at once: bounds memory, changes no number

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
    streams = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(len(sizes))]
    block = max(1, _CELLS // max(1, sum(sizes)))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        counts = []
        for size, stream in zip(sizes, streams, strict=True):
            drawn = stream.integers(0, size, (rows, size)) + size * np.arange(rows)[:, None]
            counts.append(np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size).astype(np.int32))
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
    below = np.searchsorted(non_members[order], members, side="left")
    not_above = np.searchsorted(non_members[order], members, side="right")
    ties = bool((below != not_above).any())
    pairs = 2.0 * len(members) * len(non_members)
    allowed = [allowed_false_positives(level, len(non_members)) for level in levels]
    aucs, tprs = [], []
    for member_counts, other_counts in draw_counts([len(members), len(non_members)], seed=seed, resamples=resamples):
        cumulative = np.zeros((len(other_counts), len(non_members) + 1), dtype=np.int32)
        np.cumsum(np.take(other_counts, order, axis=1), axis=1, out=cumulative[:, 1:])
        beaten = np.take(cumulative, below, axis=1)  # non-members below each member's own score
        beaten_or_tied = np.take(cumulative, not_above, axis=1) if ties else beaten
        aucs.append((_dot(member_counts, beaten) + _dot(member_counts, beaten_or_tied)) / pairs)
        hits = [_dot(member_counts, beaten >= len(non_members) - most) / len(members) for most in allowed]
        tprs.append(np.stack(hits, axis=1) if hits else np.empty((len(member_counts), 0)))
    return Resampled(np.concatenate(aucs), np.concatenate(tprs))


def _dot(counts: Counts, values: NDArray[Any]) -> Floats:
    """Row by row scalar product, in float64 (exact here: all terms are integers)."""
    products: Floats = np.einsum("bi,bi->b", counts, values, dtype=np.float64)
    return products


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
