"""What a detector measured, with its interval, at the levels that are reported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from detection.statistics.metrics import auc_p_value, classes, minimum_detectable_auc, tpr_at_fpr
from detection.statistics.roc_intervals import auc_interval, enough, thin, tpr_interval

LEVELS = {"tpr_at_1": 0.01, "tpr_at_5": 0.05}
"""The false-positive rates at which the true-positive rate is reported."""


def measurement(labels: Sequence[int | None], scores: Sequence[float | None]) -> dict[str, Any]:
    """All metrics of one score column, as JSON-ready values; undefined ones are None and ``reason`` says why.

    auc, auc_ci, tpr_at_1, tpr_at_1_ci, tpr_at_5, tpr_at_5_ci: intervals are [low, high], 95% (``roc_intervals``)
    tpr_at_1_reason, tpr_at_5_reason: why there is no rate: below 100 (20) non-members not one may be a false alarm
    tpr_at_1_warning, tpr_at_5_warning: below 500 (100) non-members, fewer than five may be
    n, n_members: labelled texts with a score (and how many of them are members): what the metrics rest on
    n_unscorable: texts without a score, labelled or not
    p_value: one-sided Mann-Whitney, not corrected
    minimum_auc: what these group sizes detect with 80% power
    """
    column = np.array(scores, dtype=np.float64)  # None becomes NaN
    finite = np.isfinite(column)
    kept = finite & np.array([label is not None for label in labels], dtype=bool)
    truth = np.array([-1 if label is None else label for label in labels], dtype=np.int64)
    groups = classes(truth[kept], column[kept])
    found: dict[str, Any] = {
        "auc": None,
        "auc_ci": None,
        **{key: None for level in LEVELS for key in (level, f"{level}_ci")},
        "n": int(kept.sum()),
        "n_members": len(groups.members),
        "n_unscorable": int((~finite).sum()),
        "p_value": None,
        "minimum_auc": None,
    }
    if not groups.complete:
        return {**found, "reason": groups.reason}
    non_members = len(groups.non_members)
    smallest = minimum_detectable_auc(len(groups.members), non_members)
    found["auc"] = groups.auc()
    found["auc_ci"] = list(auc_interval(groups))
    for name, level in LEVELS.items():
        if reason := enough(level, non_members):
            found[f"{name}_reason"] = reason
            continue
        found[name] = tpr_at_fpr(truth[kept], column[kept], level)
        found[f"{name}_ci"] = list(tpr_interval(groups, level))
        if warning := thin(level, non_members):
            found[f"{name}_warning"] = warning
    found["p_value"] = auc_p_value(truth[kept], column[kept])
    found["minimum_auc"] = None if math.isnan(smallest) else smallest
    return found
