"""How well scores tell members (label 1) from non-members (label 0): ranking metrics, their tests and their power.

Label 0 is a label; None is a missing one. Functions here take complete data (finite scores, labels 0 or 1; ValueError
otherwise) and return NaN where the metric is undefined because a class is empty; ``measurement`` is the one that
takes raw columns, leaves out and counts what can't enter, and gives None with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """Scores of members and of non-members, each in the order of the texts."""

    members: Floats
    non_members: Floats

    @property
    def complete(self) -> bool:
        return bool(len(self.members) and len(self.non_members))

    @property
    def reason(self) -> str:
        """Why no ranking metric exists, "" if one does."""
        if self.complete:
            return ""
        if not len(self.members) and not len(self.non_members):
            return "no labelled text with a score"
        missing, label = ("member", 1) if not len(self.members) else ("non-member", 0)
        return f"one class only: no {missing} (label {label}) with a score"

    def auc(self) -> float:
        """Probability that a member scores above a non-member, ties counting one half (midranks); NaN if undefined."""
        from scipy.stats import rankdata

        if not self.complete:
            return math.nan
        m, n = len(self.members), len(self.non_members)
        ranks = rankdata(np.concatenate([self.members, self.non_members]), method="average")
        return float((ranks[:m].sum() - m * (m + 1) / 2) / (m * n))


def classes(labels: ArrayLike, scores: ArrayLike) -> Classes:
    """Splits scores by label. ValueError for unequal lengths, a label not 0 or 1, or a score that's not finite."""
    truth, values = np.asarray(labels), np.asarray(scores, dtype=np.float64)
    if truth.shape != values.shape or truth.ndim != 1:
        raise ValueError(f"labels {truth.shape} and scores {values.shape} must be two lists of equal length")
    if not np.isin(truth, (0, 1)).all():
        raise ValueError("labels must be 0 (non-member) or 1 (member); leave out texts without a label first")
    if not np.isfinite(values).all():
        raise ValueError("scores must be finite; leave out unscorable texts first")
    return Classes(members=values[truth == 1], non_members=values[truth == 0])


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Area under the ROC curve in [0, 1] with midranks; 0.5 is chance. NaN with one class only."""
    return classes(labels, scores).auc()


def allowed_false_positives(level: float, non_members: int) -> int:
    """How many of ``non_members`` may be false alarms so that FPR <= level. ValueError unless 0 <= level <= 1."""
    if not 0.0 <= level <= 1.0:
        raise ValueError(f"the false-positive rate {level} must lie in [0, 1]")
    return math.floor(level * non_members + 1e-9)  # 0.29 * 100 is 28.999999999999996


def tpr_at_fpr(labels: ArrayLike, scores: ArrayLike, level: float) -> float:
    """The largest true-positive rate among thresholds (score >= t) whose false-positive rate does not exceed ``level``.

    In [0, 1]; NaN with one class only.
    """
    groups = classes(labels, scores)
    most = allowed_false_positives(level, len(groups.non_members))
    if not groups.complete:
        return math.nan
    ascending = np.sort(groups.non_members)
    alarms = len(ascending) - np.searchsorted(ascending, groups.members, side="left")
    return float(np.mean(alarms <= most))


class RocPoint(NamedTuple):
    """``threshold``: the score from which on a text is called a member (infinite at the origin)."""

    fpr: float
    tpr: float
    threshold: float


def roc_points(labels: ArrayLike, scores: ArrayLike) -> list[RocPoint]:
    """The ROC curve from (0, 0) to (1, 1), one point per distinct score; ties make a slope. [] with one class."""
    groups = classes(labels, scores)
    if not groups.complete:
        return []
    thresholds = np.unique(np.concatenate([groups.members, groups.non_members]))[::-1]
    rates = []
    for values in (groups.non_members, groups.members):
        rates.append(1 - np.searchsorted(np.sort(values), thresholds, side="left") / len(values))
    points = [RocPoint(float(f), float(t), float(at)) for f, t, at in zip(*rates, thresholds, strict=True)]
    return [RocPoint(0.0, 0.0, math.inf), *points]


MOST_WAYS = 5_000
"""Ways to deal the labels that are gone through one by one."""


def auc_p_value(labels: ArrayLike, scores: ArrayLike) -> float:
    """One-sided Mann-Whitney test of AUC > 0.5.

    Exact for up to 40 texts without ties, and with ties where the labels can be dealt in at most 5,000 ways; else
    normal, ties corrected. NaN with one class only; 1 where all scores are equal.
    """
    from scipy.stats import mannwhitneyu, rankdata

    groups = classes(labels, scores)
    if not groups.complete:
        return math.nan
    both = np.concatenate([groups.members, groups.non_members])
    if both.min() == both.max():
        return 1.0
    ways = math.comb(len(both), len(groups.members)) if len(both) <= 40 else math.inf
    untied = len(np.unique(both)) == len(both)
    if ways <= MOST_WAYS and not untied:  # every way to deal the labels, by the sum of the members' mid-ranks
        ranks = rankdata(both)
        found = ranks[: len(groups.members)].sum()
        sums = [sum(dealt) for dealt in combinations(ranks, len(groups.members))]
        return float(np.mean(np.array(sums) >= found - 1e-9))
    method = "exact" if untied and len(both) <= 40 else "asymptotic"
    return float(mannwhitneyu(groups.members, groups.non_members, alternative="greater", method=method).pvalue)


def hanley_mcneil_error(area: float, members: int, non_members: int) -> float:
    """Standard error of an AUC of ``area`` (Hanley & McNeil 1982, Radiology 143:29).

    SE^2 = [A(1-A) + (m-1)(Q1-A^2) + (n-1)(Q2-A^2)] / (m n), with Q1 = A/(2-A) and Q2 = 2A^2/(1+A).
    """
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (members - 1) * (q1 - area**2) + (non_members - 1) * (q2 - area**2)
    return math.sqrt(max(0.0, spread) / (members * non_members))


def minimum_detectable_auc(members: int, non_members: int, *, power: float = 0.8, alpha: float = 0.025) -> float:
    """The smallest true AUC that these group sizes detect with ``power`` in a one-sided test at ``alpha``.

    Solves A - 1/2 = z(1-alpha) SE(1/2) + z(power) SE(A), SE as in Hanley & McNeil. ``alpha`` = 0.025 is "the lower end
    of the 95% interval lies above 0.5". NaN where even A = 1 would not be detected, or a group is empty.
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    if members < 1 or non_members < 1:
        return math.nan
    z_alpha, z_power = float(norm.ppf(1 - alpha)), float(norm.ppf(power))
    chance = z_alpha * hanley_mcneil_error(0.5, members, non_members)

    def excess(area: float) -> float:
        return area - 0.5 - chance - z_power * hanley_mcneil_error(area, members, non_members)

    if excess(1.0) < 0:
        return math.nan
    return float(brentq(excess, 0.5, 1.0, xtol=1e-9))


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """P-values adjusted for the false discovery rate (Benjamini & Hochberg 1995); None or NaN stays None, uncounted."""
    from scipy.stats import false_discovery_control

    known = [i for i, p in enumerate(p_values) if p is not None and not math.isnan(p)]
    adjusted: list[float | None] = [None] * len(p_values)
    if known:
        for i, p in zip(known, false_discovery_control([p_values[i] for i in known], method="bh"), strict=True):
            adjusted[i] = float(p)
    return adjusted


def conformal_p_values(scores: Sequence[float | None], known_non_members: ArrayLike) -> list[float | None]:
    """For a text without a label: the chance that a non-member scores as high, (1 + #{ref >= s}) / (1 + #ref).

    Valid if the text, were it a non-member, could be exchanged with the ``known_non_members`` (finite scores of the
    same detector). Vovk et al. 2005; Bates et al. 2023 (arXiv:2104.08279). None for an unscorable text, or for all
    where there is no reference.
    """
    reference = np.sort(np.asarray(known_non_members, dtype=np.float64))
    if not len(reference):
        return [None] * len(scores)
    values = np.array(scores, dtype=np.float64)
    at_least = len(reference) - np.searchsorted(reference, values, side="left")
    p_values = (1 + at_least) / (1 + len(reference))
    return [float(p) if math.isfinite(s) else None for s, p in zip(values, p_values, strict=True)]
