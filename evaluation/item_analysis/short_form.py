"""A short form: k items that rank the candidates like the whole set.

Chosen greedily: the item that brings the rank correlation (Spearman) of the form's total with the whole total highest,
of equals the one that brings Pearson's highest, of those the first. What is found that way flatters itself, for the
whole contains the form and the candidates are those it was chosen on. So three more figures stand beside it: the
correlation with the total of the items left out, the mean of random forms of the same length, and what forms chosen on
half of the candidates reach on the other half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.item_analysis.matrix import Matrix, Scores

RANDOM_FORMS = 100
HALVINGS = 5
FEWEST_TO_HALVE = 8
_COMPARED = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortForm:
    """The form, and its rank correlations; None where one isn't defined (a side constant, too few candidates).

    items: indices in the order they were chosen
    spearman, kendall, pearson: of the form's total and the whole total
    spearman_rest: of the form's total and the total of the items that are not in it (None if there are none)
    spearman_random: mean over random forms of the same length
    spearman_unseen: mean over halvings of the candidates: chosen on one half, correlated on the other
    """

    items: tuple[int, ...]
    spearman: float | None
    kendall: float | None
    pearson: float | None
    spearman_rest: float | None
    spearman_random: float | None
    spearman_unseen: float | None


def short_form(matrix: Matrix, k: int, *, seed: int = 0) -> ShortForm:
    """The form of k items. A missing score counts as the candidate's mean over the items it has.

    ValueError if k is not in 1..items, or if there are fewer than two candidates with scores.
    """
    from scipy.stats import kendalltau

    if not 1 <= k <= len(matrix.items):
        raise ValueError(f"a short form of {k} items was asked for; the matrix has {len(matrix.items)}")
    scores = _complete(matrix)
    if len(scores) < 2:
        raise ValueError(f"{len(scores)} candidates have scores; a short form needs at least two to rank")
    chosen = _greedy(scores, k)
    whole, form = _total(scores, range(scores.shape[1])), _total(scores, chosen)
    others = sorted(set(range(scores.shape[1])) - set(chosen))
    generator = np.random.default_rng(seed)
    randoms = [
        _spearman(_total(scores, generator.permutation(scores.shape[1])[:k]), whole) for _ in range(RANDOM_FORMS)
    ]
    unseen = []
    if len(scores) >= FEWEST_TO_HALVE:
        for _ in range(HALVINGS):
            shuffled = generator.permutation(len(scores))
            seen, rest = scores[shuffled[::2]], scores[shuffled[1::2]]
            picked = _greedy(seen, k)
            unseen.append(_spearman(_total(rest, picked), _total(rest, range(rest.shape[1]))))
    tau = kendalltau(form, whole).statistic if np.ptp(form) and np.ptp(whole) else np.nan
    return ShortForm(
        items=tuple(chosen),
        spearman=_spearman(form, whole),
        kendall=None if np.isnan(tau) else float(tau),
        pearson=_pearson(form, whole),
        spearman_rest=_spearman(form, _total(scores, others)) if others else None,
        spearman_random=_mean(randoms),
        spearman_unseen=_mean(unseen),
    )


def _complete(matrix: Matrix) -> Scores:
    """Scores without gaps, of the candidates that have any."""
    known = ~np.isnan(matrix.scores)
    kept = known.any(axis=1)
    scores = matrix.scores[kept]
    means = np.nanmean(scores, axis=1, keepdims=True) if kept.any() else np.empty((0, 1))
    return np.where(known[kept], scores, means)


def _greedy(scores: Scores, k: int) -> list[int]:
    whole = _total(scores, range(scores.shape[1]))
    ranks = _ranks(whole[:, None])[:, 0]
    chosen: list[int] = []
    total = np.zeros(len(scores))
    left = np.ones(scores.shape[1], dtype=bool)
    for _ in range(k):
        # rounded, for sums in another order must tie as they do on paper
        totals = np.round(total[:, None] + scores, 9)
        by_rank = np.round(_columns(_ranks(totals), ranks), 12)
        by_value = np.round(_columns(totals, whole), 12)
        best = max(np.flatnonzero(left).tolist(), key=lambda j: (by_rank[j], by_value[j], -j))
        chosen.append(best)
        left[best] = False
        total = total + scores[:, best]
    return chosen


def _columns(values: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson's correlation of each column with the target; -2 where it isn't defined."""
    x, y = values - values.mean(axis=0), target - target.mean()
    norm = np.sqrt((x * x).sum(axis=0) * (y * y).sum())
    return np.where(norm > 1e-12, (x * y[:, None]).sum(axis=0) / np.where(norm > 1e-12, norm, 1.0), -2.0)


def _total(scores: Scores, items: range | list[int] | NDArray[np.int64]) -> Scores:
    return np.asarray(np.round(scores[:, list(items)].sum(axis=1), 9))


def _ranks(values: Scores) -> Scores:
    """Ranks within each column, ties at their mean rank. Few candidates are compared each with each, which is ten times
    as fast as sorting them."""
    from scipy.stats import rankdata

    if len(values) > _COMPARED:
        return np.asarray(rankdata(values, axis=0))
    below = (values[None] < values[:, None]).sum(axis=1, dtype=np.int16)
    reached = (values[None] <= values[:, None]).sum(axis=1, dtype=np.int16)
    return np.asarray((below + reached + 1) / 2)


def _spearman(a: Scores, b: Scores) -> float | None:
    return _pearson(_ranks(a[:, None])[:, 0], _ranks(b[:, None])[:, 0])


def _pearson(a: Scores, b: Scores) -> float | None:
    value = float(_columns(a[:, None], b)[0])
    return None if value < -1.5 else min(1.0, max(-1.0, value))


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
