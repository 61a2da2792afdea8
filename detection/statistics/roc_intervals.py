"""Intervals of AUC and of the true-positive rate at a false-positive rate, without resampling.

A percentile bootstrap collapses at the ends of the scale: of separated groups every resample is separated, and
[1.00, 1.00] claims certainty (at AUC .99 and 32 texts a group, its 95% interval holds the truth in 54 to 80 of 100
data sets). ``tests/performance/coverage.py`` measures the coverage of what stands here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detection.statistics.metrics import Classes, allowed_false_positives
from evaluation.statistics import Interval, wilson

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
_FALLBACK = Interval(float("nan"), float("nan"))
_END = 1e-12  # at 0 and 1 the equation has a second solution, the end itself


class Placements(NamedTuple):
    """Per member the share of non-members below it, per non-member the share of members above it, ties half: their
    means are the AUC, their variances are DeLong's."""

    members: Floats
    non_members: Floats


def placements(groups: Classes) -> Placements:
    """Sun & Xu 2014 (IEEE Signal Processing Letters 21:1389): placements are differences of midranks."""
    from scipy.stats import rankdata

    m, n = len(groups.members), len(groups.non_members)
    ranks = rankdata(np.concatenate([groups.members, groups.non_members]))
    mine = (ranks[:m] - rankdata(groups.members)) / n
    return Placements(mine, 1 - (ranks[m:] - rankdata(groups.non_members)) / m)


def delong_variance(found: Placements) -> float:
    """Variance of an AUC (DeLong, DeLong & Clarke-Pearson 1988, Biometrics 44:837); 0 for a group of one text."""
    return sum(float(part.var(ddof=1)) / len(part) if len(part) > 1 else 0.0 for part in found)


def auc_interval(groups: Classes, confidence: float = CONFIDENCE) -> Interval:
    """The AUC's interval: from the lower of two lower bounds to the higher of two higher ones.

    The two are Newcombe's method 5 (2006, Statistics in Medicine 25:559) and DeLong's on the logit scale. Newcombe's
    alone where the AUC is 0 or 1 or DeLong's variance is 0. NaN ends where a group is empty.
    """
    from scipy.special import expit
    from scipy.stats import norm

    if not groups.complete:
        return _FALLBACK
    area = groups.auc()
    z = float(norm.ppf((1 + confidence) / 2))
    low, high = newcombe(area, len(groups.members), len(groups.non_members), z)
    variance = delong_variance(placements(groups))
    if 0 < area < 1 and variance > 0:
        centre, half = math.log(area / (1 - area)), z * math.sqrt(variance) / (area * (1 - area))
        low, high = min(low, float(expit(centre - half))), max(high, float(expit(centre + half)))
    return Interval(low, high)


def newcombe(area: float, members: int, non_members: int, z: float) -> Interval:
    """Newcombe's method 5: the areas T with |area - T| <= z S(T), S being Hanley and McNeil's standard error with both
    groups' weights taken as (m + n) / 2 - 1:

        S(T)^2 = T (1 - T) [1 + w (1 - T) / (2 - T) + w T / (1 + T)] / (m n)
    """
    from scipy.optimize import brentq

    weight = (members + non_members) / 2 - 1

    def error(t: float) -> float:
        return math.sqrt(
            t * (1 - t) * (1 + weight * (1 - t) / (2 - t) + weight * t / (1 + t)) / (members * non_members)
        )

    low = 0.0 if area <= 0 else float(brentq(lambda t: area - t - z * error(t), 0.0, min(area, 1 - _END)))
    high = 1.0 if area >= 1 else float(brentq(lambda t: t - area - z * error(t), max(area, _END), 1.0))
    return Interval(low, high)


def tpr_interval(groups: Classes, level: float, parts: float = 0.9) -> Interval:
    """The true-positive rate at the threshold that ``level`` of *all* non-members exceed.

    Where that threshold lies among the n known ones is a matter of chance, too: between two of their order statistics,
    by the binomial distribution. The rate's lower bound is Wilson's at the higher threshold, its upper bound Wilson's
    at the lower one. A truth is missed where both err in one direction, so that two ``parts`` of 90% hold it in more
    than 95 of 100 data sets (measured: 97 and more).
    """
    from scipy.stats import binom

    if not groups.complete:
        return _FALLBACK
    n, m = len(groups.non_members), len(groups.members)
    tail = (1 - parts) / 2
    ascending = np.sort(groups.non_members)
    # so many non-members lie above the true threshold, at least and at most
    least, most = int(binom.ppf(tail, n, level)), int(binom.ppf(1 - tail, n, level))
    highest = ascending[n - least] if least else np.inf
    lowest = ascending[n - most - 1] if most < n else -np.inf
    strict, loose = int((groups.members > highest).sum()), int((groups.members > lowest).sum())
    lower, upper = wilson(strict, m, parts), wilson(loose, m, parts)
    assert lower is not None
    assert upper is not None
    return Interval(lower.low if least else 0.0, upper.high)


def enough(level: float, non_members: int) -> str:
    """Why so few non-members say nothing about a false-positive rate of ``level``; "" if they do."""
    if allowed_false_positives(level, non_members):
        return ""
    return f"{non_members} non-members; a false-positive rate of {level:.0%} takes {math.ceil(1 / level)}"


def thin(level: float, non_members: int) -> str:
    """A warning where fewer than five false positives stand behind a rate at ``level``; "" else."""
    if allowed_false_positives(level, non_members) >= 5:
        return ""
    return f"{non_members} non-members are few for a false-positive rate of {level:.0%}; better {math.ceil(5 / level)}"
