"""The difference of two AUCs on the same texts: stratified, seeded bootstrap (members and non-members apart).

One seed and the same two group sizes always draw the same texts, so two detectors (or two models) on the same texts are
resampled in pairs. A resample is a vector of counts (how often each text was drawn), and an AUC is a sum over these
counts: no text is sorted twice. A single AUC's interval is not resampled (``roc_intervals``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from detection.statistics.metrics import classes
from detection.statistics.roc_intervals import paired_test
from evaluation.statistics import percentile_interval

RESAMPLES = 2_000
_CELLS = 1_000_000  # counts worked on at once: bounds memory, changes no number
_KEPT_CELLS = 25_000_000  # counts kept for the next score column: 100 MB

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """AUC of the first minus AUC of the second on the same texts, with its paired interval.

    n: texts that both could score; p_value: two-sided, DeLong's. NaN with a ``reason`` where a class is missing.
    """

    value: float
    low: float
    high: float
    n: int
    reason: str = ""
    p_value: float | None = None


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


@lru_cache(maxsize=256)
def _resampled(members: bytes, non_members: bytes, seed: int, resamples: int) -> Floats:
    """The AUC of each resample, kept for a column that meets others: a candidate's has its base and the clean one."""
    values = resample(np.frombuffer(members), np.frombuffer(non_members), seed=seed, resamples=resamples)
    values.setflags(write=False)
    return values


def resample(members: Floats, non_members: Floats, *, seed: int, resamples: int = RESAMPLES) -> Floats:
    """AUC (midranks) of each resample. members, non_members: finite scores, neither empty"""
    order = np.argsort(non_members, kind="stable")
    member_order = np.argsort(members, kind="stable")
    below = np.searchsorted(non_members[order], members[member_order], side="left")
    not_above = np.searchsorted(non_members[order], members[member_order], side="right")
    ties = bool((below != not_above).any())
    pairs = 2.0 * len(members) * len(non_members)
    aucs = []
    for member_counts, other_counts in draw_counts([len(members), len(non_members)], seed=seed, resamples=resamples):
        mine = np.take(member_counts, member_order, axis=1)
        cumulative = _cumulated(np.take(other_counts, order, axis=1))
        beaten = np.take(cumulative, below, axis=1)  # non-members below each member's own score
        beaten_or_tied = np.take(cumulative, not_above, axis=1) if ties else beaten
        aucs.append((_dot(mine, beaten) + _dot(mine, beaten_or_tied)) / pairs)
    return np.concatenate(aucs)


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
        return Difference(value=math.nan, low=math.nan, high=math.nan, n=int(kept.sum()), reason=one.reason)
    values = [_resampled(g.members.tobytes(), g.non_members.tobytes(), seed, resamples) for g in (one, two)]
    low, high = percentile_interval(values[0] - values[1]) or (math.nan, math.nan)
    test = paired_test(one, two)
    return Difference(value=test.difference, low=low, high=high, n=int(kept.sum()), p_value=test.p_value)
