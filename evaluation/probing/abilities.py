"""How the three abilities hang together over candidates and benchmarks, and with the models' size (MPA, section 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from evaluation.agreement.correlation import correlations
from evaluation.probing.version import ABILITIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One candidate on one benchmark. accuracies: by ability (LU, PS, DK); None where there is no such set

    size: the model's parameters in billions, None if unknown
    """

    candidate: str
    benchmark: str
    accuracies: dict[str, float | None] = field(default_factory=dict)
    size: float | None = None


def ability_correlations(points: Sequence[Point], *, seed: int, resamples: int = 2000) -> dict[str, Any]:
    """Pearson, Spearman and Kendall of each two abilities over the points that have both; ``n`` is stated with each.

    Fewer than 3 points, or an ability on which all points are alike: value None, with the reason.
    """
    result = {}
    for a, b in combinations(ABILITIES, 2):
        pairs = [
            (x, y) for p in points if (x := p.accuracies.get(a)) is not None and (y := p.accuracies.get(b)) is not None
        ]
        figures = correlations([x for x, _ in pairs], [y for _, y in pairs], seed=seed, resamples=resamples)
        result[f"{a}-{b}"] = {name: figure.to_json() for name, figure in figures.items()}
    return result


def by_size(points: Sequence[Point], *, seed: int, resamples: int = 2000) -> dict[str, Any]:
    """The correlations within size groups (the Matthew effect: the larger the models, the closer the abilities).

    The points with a known size are parted in two at the median of the different sizes, the median itself among the
    small; empty with fewer than two sizes.
    """
    sizes = sorted({p.size for p in points if p.size is not None})
    if len(sizes) < 2:
        return {}
    limit = sizes[(len(sizes) - 1) // 2]
    small = [p for p in points if p.size is not None and p.size <= limit]
    large = [p for p in points if p.size is not None and p.size > limit]
    return {
        "limit_billions": limit,
        "small": ability_correlations(small, seed=seed, resamples=resamples),
        "large": ability_correlations(large, seed=seed, resamples=resamples),
    }


def size_slopes(points: Sequence[Point]) -> dict[str, Any]:
    """By ability the least-squares slope of accuracy against log10 of the parameters: points per tenfold size.

    None, with the reason, for fewer than two different sizes.
    """
    from scipy.stats import linregress

    slopes: dict[str, Any] = {}
    for ability in ABILITIES:
        pairs = [
            (math.log10(p.size), x)
            for p in points
            if p.size is not None and p.size > 0 and (x := p.accuracies.get(ability)) is not None
        ]
        if len({size for size, _ in pairs}) < 2:
            slopes[ability] = {"slope": None, "n": len(pairs), "reason": "it takes models of two sizes"}
            continue
        fit = linregress([size for size, _ in pairs], [x for _, x in pairs])
        slopes[ability] = {"slope": float(fit.slope), "intercept": float(fit.intercept), "n": len(pairs)}
    return slopes
