"""Paired comparison of two sets of records on the items they share: within a run, and between two runs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.statistics import mcnemar, paired_bootstrap
from proctor.report.item_score import Scored

Rows = Sequence[Mapping[str, Any]]
FLIPS = 9_999


def paired(a: Sequence[Scored], b: Sequence[Scored], *, seed: int) -> dict[str, Any] | None:
    """Mean of a - b over the items that both have a result for; None without any.

    difference, interval: bootstrap over items, 95%; n: items; only_a, only_b: items on which one did better
    p_value: McNemar's exact test for right/wrong results, else a two-sided sign-flip permutation test
    unpaired: items that only one of the two has, or has a result for
    """
    first, second = ({row.item: row.score for row in rows if row.score is not None} for rows in (a, b))
    common = [key for key in first if key in second]
    if not common:
        return None
    x, y = [first[k] for k in common], [second[k] for k in common]
    found = paired_bootstrap(x, y, seed=seed)
    assert found is not None
    binary = all(row.right_or_wrong for row in [*a, *b])
    p_value = (
        mcnemar([v == 1 for v in x], [v == 1 for v in y]).p_value
        if binary
        else sign_flip([p - q for p, q in zip(x, y, strict=True)], seed=seed)
    )
    return {
        "a": sum(x) / len(x),
        "b": sum(y) / len(y),
        "difference": found.mean,
        "interval": list(found.interval),
        "p_value": p_value,
        "n": len(common),
        "only_a": sum(p > q for p, q in zip(x, y, strict=True)),
        "only_b": sum(p < q for p, q in zip(x, y, strict=True)),
        "unpaired": len({row.item for row in [*a, *b]}) - len(common),
    }


def sign_flip(differences: Sequence[float], *, seed: int) -> float:
    """Two-sided p-value of mean 0, each difference's sign being a coin (Fisher 1935); exact where 2^n <= 9,999.

    1 where all differences are 0, or all but one.
    """
    import numpy as np
    from scipy.stats import permutation_test

    data = np.asarray([d for d in differences if d != 0], dtype=float)  # a sign does not change zeros
    if data.size < 2:
        return 1.0  # one difference: both signs are as extreme
    result = permutation_test(
        (data,),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=FLIPS,
        alternative="two-sided",
        rng=np.random.default_rng(seed),
    )
    return min(1.0, float(result.pvalue))


def gap_difference(a: Rows, b: Rows) -> dict[str, Any] | None:
    """Loss gap of a minus that of b (nats per token, untouched minus leaked), paired by text; Welch's interval, test.

    Only texts that are of the same half in both: in runs of two seeds others leak. None where a half has fewer than 2
    texts that both score.
    """
    import numpy as np
    from scipy.stats import ttest_ind

    scored = {(r["id"], r["label"]): r["scores"].get("loss") for r in b}
    halves: dict[int, list[float]] = {0: [], 1: []}
    for row in a:
        mine, theirs = row["scores"].get("loss"), scored.get((row["id"], row["label"]))
        if row["label"] is not None and mine is not None and theirs is not None:
            halves[row["label"]].append(theirs - mine)  # a score is minus the loss
    if min(len(half) for half in halves.values()) < 2:
        return None
    gap = float(np.mean(halves[0]) - np.mean(halves[1]))
    if all(np.ptp(half) == 0 for half in halves.values()):
        p_value, interval = (1.0, [gap, gap]) if gap == 0 else (0.0, [gap, gap])
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # scipy's, where one half's differences are all equal
            test = ttest_ind(halves[0], halves[1], equal_var=False)
        bounds = test.confidence_interval(0.95)
        p_value, interval = float(test.pvalue), [float(bounds.low), float(bounds.high)]
    return {"difference": gap, "interval": interval, "p_value": p_value, "n": len(halves[0]) + len(halves[1])}


def auc_difference(a: Rows, b: Rows, detector: str, *, seed: int) -> dict[str, Any] | None:
    """AUC of a minus AUC of b on the same texts, paired bootstrap; it has an interval and no p-value."""
    from detection.statistics.bootstrap import paired_difference

    theirs = {r["id"]: r for r in b}
    common = [r for r in a if r["id"] in theirs and r["label"] == theirs[r["id"]]["label"]]
    if not common:
        return None
    found = paired_difference(
        [r["label"] for r in common],
        [r["scores"].get(detector) for r in common],
        [theirs[r["id"]]["scores"].get(detector) for r in common],
        seed=seed,
    )
    if found.reason:
        return None
    return {"difference": found.value, "interval": [found.low, found.high], "p_value": None, "n": found.n}
