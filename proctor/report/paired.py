"""Paired comparison of two sets of records on the items they share: within a run, and between two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.statistics import mcnemar, paired_mean, sign_flip, welch
from proctor.report.item_score import Scored

Rows = Sequence[Mapping[str, Any]]


def paired(a: Sequence[Scored], b: Sequence[Scored], *, seed: int) -> dict[str, Any] | None:
    """Mean of a - b over the items that both have a result for; None without any.

    difference, interval: 95%, over items (``statistics.mean_of``); n: items; only_a, only_b: where one did better
    p_value: McNemar's exact test for right/wrong results, else a two-sided sign-flip permutation test
    unpaired: items that only one of the two has, or has a result for
    """
    first, second = ({row.item: row.score for row in rows if row.score is not None} for rows in (a, b))
    common = [key for key in first if key in second]
    if not common:
        return None
    x, y = [first[k] for k in common], [second[k] for k in common]
    found = paired_mean(x, y, seed=seed)
    assert found is not None
    binary = all(row.right_or_wrong for row in [*a, *b]) and {*x, *y} <= {0.0, 1.0}  # a tie earns a share
    p_value = (
        mcnemar([v == 1 for v in x], [v == 1 for v in y]).p_value
        if binary
        else sign_flip([p - q for p, q in zip(x, y, strict=True)], seed=seed)
    )
    return {
        "a": sum(x) / len(x),
        "b": sum(y) / len(y),
        **found.to_json("difference"),
        "p_value": p_value,
        "n": len(common),
        "only_a": sum(p > q for p, q in zip(x, y, strict=True)),
        "only_b": sum(p < q for p, q in zip(x, y, strict=True)),
        "unpaired": len({row.item for row in [*a, *b]}) - len(common),
    }


def gap_difference(a: Rows, b: Rows) -> dict[str, Any] | None:
    """Loss gap of a minus that of b (nats per token, untouched minus leaked), paired by text; Welch's interval, test.

    Only texts that are of the same half in both: in runs of two seeds others leak. None where a half has fewer than 2
    texts that both score.
    """
    scored = {(r["id"], r["label"]): r["scores"].get("loss") for r in b}
    halves: dict[int, list[float]] = {0: [], 1: []}
    for row in a:
        mine, theirs = row["scores"].get("loss"), scored.get((row["id"], row["label"]))
        if row["label"] is not None and mine is not None and theirs is not None:
            halves[row["label"]].append(theirs - mine)  # a score is minus the loss
    found = welch(halves[0], halves[1])
    if found is None:
        return None
    # without any spread there is no test: no difference is none, any other can't be weighed
    p_value = 1.0 if found.interval is None and found.difference == 0 else found.p_value
    interval = None if found.interval is None else list(found.interval)
    return {
        "difference": found.difference,
        "interval": interval,
        "p_value": p_value,
        "n": len(halves[0]) + len(halves[1]),
    }


def auc_difference(a: Rows, b: Rows, detector: str) -> dict[str, Any] | None:
    """AUC of a minus AUC of b on the same texts: paired (``detection.statistics.gain``)."""
    from detection.statistics.gain import paired_difference

    theirs = {r["id"]: r for r in b}
    common = [r for r in a if r["id"] in theirs and r["label"] == theirs[r["id"]]["label"]]
    if not common:
        return None
    found = paired_difference(
        [r["label"] for r in common],
        [r["scores"].get(detector) for r in common],
        [theirs[r["id"]]["scores"].get(detector) for r in common],
    )
    if found.reason:
        return None
    return {"difference": found.value, "interval": [found.low, found.high], "p_value": found.p_value, "n": found.n}
