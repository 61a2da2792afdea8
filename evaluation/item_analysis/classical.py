"""Classical item statistics (IDGen, arXiv 2409.18892; Kelley 1939 for the groups of 27%).

Difficulty is ``max_score - mean``. Discrimination is the mean of the high group minus that of the low group, over
``max_score``. The groups of an item are the best and worst candidates by their total *without* that item: with it, an
item would choose its own judges. Candidates of one rest score are exchangeable: where the edge of a group falls among
them, each takes part with the same share. (Broken by the item's own score, ties give pure noise a discrimination of
+.17 among five candidates.) Of two candidates that tie, as on a single item, the higher score is the high group: scores
of 0 and 3 discriminate by 1.

A candidate without a score on an item takes no part in that item's figures; its rest score is the mean over the other
items that it has, so that a gap neither lifts nor sinks it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evaluation.item_analysis.matrix import Matrix, Scores

FRACTION = 0.27
RESAMPLES = 1_000
PERMUTATIONS = 100
FEW_CANDIDATES = 5
_DIGITS = 9
_AVERAGED = 3  # candidates from which on ties are averaged


@dataclass(frozen=True, slots=True, kw_only=True)
class Classical:
    """Figures per item, each an array over items; NaN where a figure isn't defined.

    n: candidates with a score on the item; group: candidates in either group (0 where there are fewer than two)
    difficulty: 0 (everybody has the maximum) .. max_score
    high, low: the groups' mean scores; discrimination: their difference over max_score, -1..1
    interval_low, interval_high: 95% percentile bootstrap over candidates, whose rest scores stay their own
    item_total, item_rest: Pearson's correlation of item and total, with the item and without it
    point_biserial: ``item_rest`` of items that have only two different scores
    by_chance: the mean discrimination of the set in each of 100 permutations, in which every item's scores are dealt
        anew to its candidates: what noise gives; NaN where not asked
    """

    n: NDArray[np.int64]
    group: NDArray[np.int64]
    difficulty: Scores
    high: Scores
    low: Scores
    discrimination: Scores
    interval_low: Scores
    interval_high: Scores
    item_total: Scores
    item_rest: Scores
    point_biserial: Scores
    by_chance: Scores


def group_size(n: int, fraction: float = FRACTION) -> int:
    """Candidates in the high group, and in the low one: ``fraction`` of n, rounded half up, at least one, at most
    half. 0 for fewer than two candidates."""
    return 0 if n < 2 else min(max(1, math.floor(fraction * n + 0.5)), n // 2)


def analyse(
    matrix: Matrix,
    *,
    fraction: float = FRACTION,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
    seed: int = 0,
    permute: bool = False,
) -> Classical:
    """The figures of every item. ValueError for a fraction outside (0, 0.5]."""
    if not 0 < fraction <= 0.5:
        raise ValueError(f"fraction is {fraction}; each group must be more than 0 and at most half (0.5)")
    if resamples < 0:
        raise ValueError(f"resamples is {resamples}; it must be 0 (no interval) or more")
    scores = matrix.scores
    known = ~np.isnan(scores)
    filled = np.where(known, scores, 0.0)
    n = known.sum(axis=0)
    total, rest = _totals(filled, known)
    # Rounded, for 0.1 + 0.2 must tie with 0.3.
    places, ordered = _placed(np.where(known, np.round(rest, _DIGITS), np.inf), filled, known, n)
    ones = np.ones(len(matrix.candidates), dtype=np.int64)
    high, low = _groups(ones, places, ordered, fraction)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(n > 0, filled.sum(axis=0) / np.maximum(n, 1), np.nan)
    bounds = _interval(places, ordered, fraction, resamples, confidence, seed) / matrix.max_score
    by_chance = _by_chance(filled, known, fraction, seed) / matrix.max_score if permute else np.array([np.nan])
    item_rest = _pearson(filled, rest, known)
    two_valued = np.array([len(np.unique(scores[known[:, j], j])) == 2 for j in range(scores.shape[1])])
    return Classical(
        n=n,
        group=np.array([group_size(int(count), fraction) for count in n]),
        difficulty=matrix.max_score - mean,
        high=high,
        low=low,
        discrimination=(high - low) / matrix.max_score,
        interval_low=np.where(n < 2, np.nan, bounds[0]),
        interval_high=np.where(n < 2, np.nan, bounds[1]),
        item_total=_pearson(filled, np.broadcast_to(total[:, None], filled.shape), known),
        item_rest=item_rest,
        point_biserial=np.where(two_valued, item_rest, np.nan),
        by_chance=by_chance,
    )


def _totals(filled: Scores, known: NDArray[np.bool_]) -> tuple[Scores, Scores]:
    """Each candidate's total (n) and its total without each item (n x items), as means over the items it has, times
    the number of items. Nothing else answered: 0 for all."""
    items = filled.shape[1]
    total, count = filled.sum(axis=1), known.sum(axis=1)
    others = count[:, None] - known
    rest = np.where(others > 0, (total[:, None] - filled) / np.maximum(others, 1), 0.0) * max(items - 1, 1)
    return total / np.maximum(count, 1) * items, rest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Per item (column) its candidates by rest score, the lowest first: ``order`` holds their rows, ``valid`` whether
    they have a score, ``first`` and ``last`` the places between which their rest score is the same."""

    order: NDArray[np.int64]
    valid: NDArray[np.bool_]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


def _ties(ranks: Scores, n: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last place of each place's tie, in columns of ascending ``ranks``. Where an item has but two
    candidates every place stands alone: ties are broken by the item's own score."""
    rows = np.arange(len(ranks))[:, None]
    starts = np.vstack([np.ones((1, ranks.shape[1]), dtype=bool), ranks[1:] != ranks[:-1]]) | (n < _AVERAGED)
    ends = np.vstack([starts[1:], np.ones((1, ranks.shape[1]), dtype=bool)])
    first = np.maximum.accumulate(np.where(starts, rows, 0), axis=0)
    last = np.minimum.accumulate(np.where(ends, rows, len(ranks) - 1)[::-1], axis=0)[::-1]
    return first, last


def _groups(counts: NDArray[np.int64], places: _Places, ordered: Scores, fraction: float) -> tuple[Scores, Scores]:
    """Mean score of the high and of the low group of each item, where each candidate counts ``counts`` times."""
    weight = counts[places.order] * places.valid
    reached = weight.cumsum(axis=0)
    n = reached[-1]
    size = np.minimum(np.maximum(1, np.floor(fraction * n + 0.5)), n // 2)
    # of a tie: how many stand before it, and how many are in it
    before = np.take_along_axis(reached - weight, places.first, 0)
    tied = np.take_along_axis(reached, places.last, 0) - before
    share = weight / np.maximum(tied, 1)
    low = np.clip(size - before, 0, tied) * share
    high = np.clip(size - (n - before - tied), 0, tied) * share
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [np.where(size > 0, (part * ordered).sum(axis=0) / size, np.nan) for part in (high, low)]
    return means[0], means[1]


def _by_chance(filled: Scores, known: NDArray[np.bool_], fraction: float, seed: int) -> Scores:
    """Mean of high - low over items, per permutation of each item's scores among its candidates. All are dealt anew
    together: rest scores are noise, too, which ties the items' indices to each other and makes their mean vary more."""
    generator = np.random.default_rng([seed, 1])
    n, ones = known.sum(axis=0), np.ones(len(filled), dtype=np.int64)
    places = np.argsort(~known, axis=0, kind="stable")  # those with a score first
    values, valid = np.take_along_axis(filled, places, 0), np.take_along_axis(known, places, 0)
    found = np.full(PERMUTATIONS, np.nan)
    for index in range(PERMUTATIONS):
        keys = np.where(valid, generator.random(filled.shape), np.inf)
        dealt = np.zeros_like(filled)
        np.put_along_axis(dealt, places, np.take_along_axis(values, keys.argsort(axis=0), 0), 0)
        ranks = np.where(known, np.round(_totals(dealt, known)[1], _DIGITS), np.inf)
        placed, ordered = _placed(ranks, dealt, known, n)
        high, low = _groups(ones, placed, ordered, fraction)
        if not np.isnan(high - low).all():
            found[index] = np.nanmean(high - low)
    return found


def _placed(ranks: Scores, filled: Scores, known: NDArray[np.bool_], n: NDArray[np.int64]) -> tuple[_Places, Scores]:
    """The candidates' places, and their scores in that order. Those without a score go last, and count nothing."""
    order = np.lexsort((filled, ranks), axis=0)
    first, last = _ties(np.take_along_axis(ranks, order, 0), n)
    places = _Places(order=order, valid=np.take_along_axis(known, order, 0), first=first, last=last)
    return places, np.take_along_axis(filled, order, 0)


def _interval(
    places: _Places, ordered: Scores, fraction: float, resamples: int, confidence: float, seed: int
) -> Scores:
    """Bounds (2 x items) of high - low. A candidate drawn twice stands twice in the order, so nothing is sorted again.

    Resamples in which fewer than two scores of an item are left say nothing of it.
    """
    candidates, items = ordered.shape
    if resamples == 0 or candidates < 2:
        return np.full((2, items), np.nan)
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(candidates, np.full(candidates, 1 / candidates), size=resamples)
    found = np.empty((items, resamples))
    for index, counts in enumerate(drawn):
        high, low = _groups(counts, places, ordered, fraction)
        found[:, index] = high - low
    tail = (1 - confidence) / 2
    bounds = np.full((2, items), np.nan)
    # nanquantile is slow, and needed only where a score is missing
    gaps = np.isnan(found).sum(axis=1)
    whole, ragged = gaps == 0, (gaps > 0) & (gaps < resamples)
    bounds[:, whole] = np.quantile(found[whole], [tail, 1 - tail], axis=1)
    if ragged.any():
        bounds[:, ragged] = np.nanquantile(found[ragged], [tail, 1 - tail], axis=1)
    return bounds


def _pearson(a: Scores, b: Scores, known: NDArray[np.bool_]) -> Scores:
    """Column-wise correlation over known rows; NaN where a side is constant or fewer than two rows are known."""
    n = np.maximum(known.sum(axis=0), 1)

    def centred(values: Scores) -> Scores:
        kept = np.where(known, values, 0.0)
        return np.where(known, values - kept.sum(axis=0) / n, 0.0)

    x, y = centred(a), centred(b)
    xx, yy, xy = (x * x).sum(axis=0), (y * y).sum(axis=0), (x * y).sum(axis=0)
    defined = (xx > 1e-12) & (yy > 1e-12)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(defined, np.clip(xy / np.sqrt(xx * yy), -1, 1), np.nan)


LABELS = ("Low", "Relatively low", "Relatively high", "High")
CUTS = (0.1, 0.175, 0.25)


def check_cuts(cuts: Sequence[float]) -> None:
    """ValueError unless there are three finite cuts that rise."""
    rising = len(cuts) == len(LABELS) - 1 and all(a < b for a, b in pairwise(cuts))
    if not rising or not all(map(math.isfinite, cuts)):
        raise ValueError(f"cuts are {', '.join(map(str, cuts))}; give three that rise, as {', '.join(map(str, CUTS))}")


def label(discrimination: float, cuts: Sequence[float] = CUTS) -> int | None:
    """0 (Low) to 3 (High); a value at a cut has the lower label. None for NaN.

    Rounded to 9 digits first: a difference of means that is 0.1 in decimals is no more than that in binary.
    """
    if math.isnan(discrimination):
        return None
    return sum(round(discrimination, 9) > cut for cut in cuts)


def sure_label(low: float, high: float, cuts: Sequence[float] = CUTS) -> int | None:
    """The label where the index's interval lies between two cuts (or beyond the last), else None: nobody can tell."""
    found = label(low, cuts), label(high, cuts)
    return found[0] if found[0] == found[1] else None


def distribution(labels: Iterable[int | None]) -> dict[str, int]:
    """How many items have each label; ``none`` counts those without."""
    counts = Counter(labels)
    named = {name: counts[index] for index, name in enumerate(LABELS)}
    return {**named, "none": counts[None]} if counts[None] else named
