"""How well a whole set of items separates its candidates, and whether one set does so better than another.

IDGen (arXiv 2409.18892) judges a set by mean and variance (ddof 1) over the candidates' mean scores, rescaled to 0-100:
its own had mean 51.92 and variance 10.06 over five models, earlier generated sets means above 67 and variances below
3.2. A variance rises with the noise of a short exam, too; so the share of pairs of candidates that are told apart
stands beside it (*separability*: the 95% bootstrap interval over items of the pair's mean difference excludes 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.item_analysis.matrix import Matrix
from evaluation.statistics import Interval, percentile_interval

PUBLISHED = {"mean": 51.92, "variance": 10.06, "models": 5, "earlier_sets": {"mean_above": 67, "variance_below": 3.2}}
RESAMPLES = 2_000

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLevel:
    """Figures of a set; None where one isn't defined (fewer than two candidates).

    means: by candidate, 0..100 (None for one without scores); mean, variance (ddof 1) over candidates
    variance_interval: 95% percentile bootstrap over items
    separability: share of pairs told apart; pairs: how many there are
    """

    candidates: int
    items: int
    means: dict[str, float | None]
    mean: float | None
    variance: float | None
    variance_interval: tuple[float, float] | None
    separability: float | None
    pairs: int

    def to_json(self) -> dict[str, Any]:
        return {
            "candidates": self.candidates,
            "items": self.items,
            "means": self.means,
            "mean": self.mean,
            "variance": self.variance,
            "variance_interval": None if self.variance_interval is None else list(self.variance_interval),
            "separability": self.separability,
            "pairs": self.pairs,
        }


def set_level(matrix: Matrix, *, seed: int = 0, resamples: int = RESAMPLES) -> SetLevel:
    """The figures of one set. Candidates without any score are left out of all but ``means``."""
    means = matrix.means()
    scored = np.flatnonzero(~np.isnan(means))
    drawn = _resampled(matrix, scored, seed, resamples)
    apart = [_excludes_zero(drawn[:, i] - drawn[:, j]) for i, j in combinations(range(len(scored)), 2)]
    enough = len(scored) >= 2
    return SetLevel(
        candidates=len(scored),
        items=len(matrix.items),
        means={
            name: None if np.isnan(value) else float(value)
            for name, value in zip(matrix.candidates, means, strict=True)
        },
        mean=float(means[scored].mean()) if len(scored) else None,
        variance=float(means[scored].var(ddof=1)) if enough else None,
        variance_interval=_bounds(drawn.var(axis=1, ddof=1)) if enough else None,
        separability=float(np.mean(apart)) if apart else None,
        pairs=len(apart),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDifference:
    """Set a minus set b, each with its 95% bootstrap interval (items of both sets resampled independently).

    variance: of the candidates' means (0-100 scale, ddof 1); discrimination: mean over items; separability: a point
    estimate only, for its own bootstrap would be one of a bootstrap
    """

    candidates: int
    variance: float | None
    variance_interval: tuple[float, float] | None
    discrimination: float | None
    discrimination_interval: tuple[float, float] | None
    separability: float | None

    def to_json(self) -> dict[str, Any]:
        pairs = {"variance": (self.variance, self.variance_interval)}
        pairs["discrimination"] = (self.discrimination, self.discrimination_interval)
        return {
            "candidates": self.candidates,
            **{
                name: {"difference": value, "interval": None if bounds is None else list(bounds)}
                for name, (value, bounds) in pairs.items()
            },
            "separability": {"difference": self.separability},
        }


def compare(a: Matrix, b: Matrix, *, fraction: float, seed: int = 0, resamples: int = RESAMPLES) -> SetDifference:
    """Whether set a separates the same candidates better than set b. ValueError unless both have the same candidates.

    Where the two sets' max_score differ, all figures are on a scale of their own (0-100, or shares of the maximum).
    """
    from evaluation.item_analysis.classical import analyse

    if set(a.candidates) != set(b.candidates):
        only = sorted(set(a.candidates) ^ set(b.candidates))
        raise ValueError(f"only one of the two sets has candidate {only[0]!r}; compare sets that the same ones sat")
    order = [b.candidates.index(name) for name in a.candidates]
    b = Matrix(candidates=a.candidates, items=b.items, scores=b.scores[order], max_score=b.max_score)
    scored = np.flatnonzero(~np.isnan(a.means()) & ~np.isnan(b.means()))
    one, other = set_level(a, seed=seed, resamples=resamples), set_level(b, seed=seed, resamples=resamples)
    spread = [
        _resampled(matrix, scored, seed + part, resamples).var(axis=1, ddof=1) if len(scored) >= 2 else None
        for part, matrix in enumerate((a, b))
    ]
    indices = [analyse(matrix, fraction=fraction, resamples=0).discrimination for matrix in (a, b)]
    known = [values[~np.isnan(values)] for values in indices]
    generator = np.random.default_rng(seed)
    means = [
        values[generator.integers(len(values), size=(resamples, len(values)))].mean(axis=1) if len(values) else None
        for values in known
    ]
    both = all(len(values) for values in known)
    return SetDifference(
        candidates=len(scored),
        variance=_minus(one.variance, other.variance),
        variance_interval=_bounds(spread[0] - spread[1]) if spread[0] is not None and spread[1] is not None else None,
        discrimination=float(known[0].mean() - known[1].mean()) if both else None,
        discrimination_interval=_bounds(means[0] - means[1]) if means[0] is not None and means[1] is not None else None,
        separability=_minus(one.separability, other.separability),
    )


def _resampled(matrix: Matrix, candidates: NDArray[np.int64], seed: int, resamples: int) -> Array:
    """Resamples x candidates: mean scores (0-100) on items drawn with replacement, the same for all candidates."""
    items = len(matrix.items)
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(items, np.full(items, 1 / items), size=resamples).astype(np.float64)
    scores = matrix.scores[candidates]
    known = ~np.isnan(scores)
    asked = counts @ known.T
    total = counts @ np.where(known, scores, 0.0).T
    # a resample that holds none of a candidate's items says nothing new of it: its own mean
    own = np.broadcast_to(matrix.means()[candidates], total.shape)
    return np.where(asked > 0, 100.0 * total / np.maximum(asked, 1) / matrix.max_score, own)


def _excludes_zero(differences: Array) -> bool:
    low, high = _bounds(differences)
    return low > 0 or high < 0


def _bounds(values: Array) -> tuple[float, float]:
    return percentile_interval(values) or Interval(np.nan, np.nan)


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b
