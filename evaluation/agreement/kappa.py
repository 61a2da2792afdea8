"""Agreement on labels beyond chance: Cohen's kappa (1960; weighted 1968), Fleiss' (1971), Krippendorff's alpha (2004).

Weights "linear" and "quadratic" count a disagreement by the distance of the two labels' numbers, so they need numeric
labels. (scikit-learn counts in positions of the sorted labels instead: the same wherever the labels are consecutive
whole numbers; where 1, 2 and 4 occur and nobody gave a 3, 2 and 4 are one step apart there and two here.)

Kappa is not defined where chance alone explains everything: both annotators gave one and the same label throughout.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from evaluation.agreement.figures import RESAMPLES, Figure
from evaluation.statistics import percentile_interval

Label = str | int | float | bool
Labels = Sequence[Label | None]
Weights = Literal["none", "linear", "quadratic"]
WEIGHTS: Final = ("none", "linear", "quadratic")


def cohen_kappa(
    a: Labels, b: Labels, *, weights: Weights = "none", seed: int = 0, resamples: int = RESAMPLES
) -> Figure:
    """Kappa of two annotators over the rows both rated (None: not rated), with a bootstrap interval over those rows.

    resamples: 0 for no interval
    ValueError for lists of unequal length, or for weights with labels that aren't numbers.
    """
    pairs = rated_by_both(a, b)
    if not pairs:
        return Figure(value=None, n=0, reason="no row is rated by both")
    order = label_order([label for pair in pairs for label in pair])
    cost = disagreement(order, weights)
    table = confusion(pairs, order)
    value = float(_kappas(table[None, :, :], cost)[0])
    if math.isnan(value):
        return Figure(value=None, n=len(pairs), reason=f"both gave the label {order[0]!r} to every row they share")
    if resamples < 1:
        return Figure(value=value, n=len(pairs))
    # Drawing rows with replacement is drawing a multinomial over the table's cells.
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(len(pairs), table.ravel() / len(pairs), size=resamples)
    spread = _kappas(drawn.reshape(resamples, len(order), len(order)), cost)
    kept = spread[~np.isnan(spread)]
    return Figure(value=value, n=len(pairs), interval=percentile_interval(kept), dropped=resamples - len(kept))


def pairwise_kappa(annotators: Mapping[str, Labels], *, weights: Weights = "none") -> dict[str, Any]:
    """Cohen's kappa of every two annotators, and the mean over the pairs that have one.

    ``{"mean": float | None, "weights": ..., "pairs": [{"annotators": [a, b], "kappa", "n", "reason"?}, ...]}``; each
    pair counts once in the mean, however many rows it shares. KIEval's .624 is this mean.
    """
    pairs: list[dict[str, Any]] = []
    values = []
    for (a, first), (b, second) in combinations(annotators.items(), 2):
        figure = cohen_kappa(first, second, weights=weights, resamples=0)
        reason = {"reason": figure.reason} if figure.reason else {}
        pairs.append({"annotators": [a, b], "kappa": figure.value, "n": figure.n, **reason})
        values += [] if figure.value is None else [figure.value]
    return {"mean": sum(values) / len(values) if values else None, "weights": weights, "pairs": pairs}


def fleiss_kappa(annotators: Sequence[Labels]) -> dict[str, Any]:
    """Fleiss' kappa; it needs the same number of ratings in every row.

    That number is the commonest one of at least 2 (of equally common ones the larger); rows with another number are
    left out and counted. ``{"value", "n", "raters", "rows_left_out", "reason"?}``.
    """
    rows = [[label for label in row if label is not None] for row in zip(*annotators, strict=True)]
    counts = Counter(len(row) for row in rows if len(row) >= 2)
    if not counts:
        return {"value": None, "n": 0, "raters": None, "rows_left_out": len(rows), "reason": "no row has two ratings"}
    raters = max(counts, key=lambda count: (counts[count], count))
    used = [row for row in rows if len(row) == raters]
    order = label_order([label for row in used for label in row])
    result: dict[str, Any] = {"value": None, "n": len(used), "raters": raters, "rows_left_out": len(rows) - len(used)}
    if len(order) == 1:
        return {**result, "reason": f"every rating is {order[0]!r}"}
    from statsmodels.stats.inter_rater import fleiss_kappa as fleiss

    table = [[row.count(label) for label in order] for row in used]
    return {**result, "value": float(fleiss(np.array(table), method="fleiss"))}


def krippendorff_alpha(annotators: Sequence[Labels], *, weights: Weights = "none") -> dict[str, Any]:
    """Krippendorff's alpha (2004): as Fleiss' kappa, but rows with any number of ratings from two on count.

    Within a row of m ratings each ordered pair weighs 1 / (m - 1); alpha is 1 - observed / expected disagreement, the
    latter over all pairs of ratings. ``weights``: none (nominal), linear, quadratic (Krippendorff's interval metric).
    ``{"value", "n", "ratings", "rows_left_out", "reason"?}``: rows with two ratings or more, and their ratings.
    """
    everything = [[label for label in row if label is not None] for row in zip(*annotators, strict=True)]
    rows = [row for row in everything if len(row) >= 2]
    ratings = [label for row in rows for label in row]
    result: dict[str, Any] = {
        "value": None,
        "n": len(rows),
        "ratings": len(ratings),
        "rows_left_out": len(everything) - len(rows),
    }
    if not rows:
        return {**result, "reason": "no row has two ratings"}
    order = label_order(ratings)
    if len(order) == 1:
        return {**result, "reason": f"every rating is {order[0]!r}"}
    cost = disagreement(order, weights)
    counts = np.array([[row.count(label) for label in order] for row in rows], dtype=np.float64)
    observed = (np.einsum("ri,ij,rj->r", counts, cost, counts) / (counts.sum(axis=1) - 1)).sum()
    margins = counts.sum(axis=0)
    expected = margins @ cost @ margins / (len(ratings) - 1)
    return {**result, "value": float(1 - observed / expected)}


def rated_by_both(a: Labels, b: Labels) -> list[tuple[Label, Label]]:
    """The label pairs of rows that both rated. ValueError for unequal lengths."""
    if len(a) != len(b):
        raise ValueError(f"there are {len(a)} labels of one and {len(b)} of the other; pairs need as many of both")
    return [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]


def label_order(labels: Sequence[Label]) -> list[Label]:
    """The labels that occur, each once: by size if all are numbers, else as sorted text."""
    distinct = list(dict.fromkeys(labels))
    numbers = _numbers(distinct)
    if numbers is not None:
        return [label for _, label in sorted(zip(numbers, distinct, strict=True), key=lambda pair: pair[0])]
    return sorted(distinct, key=str)


def confusion(pairs: Sequence[tuple[Label, Label]], order: Sequence[Label]) -> NDArray[np.int64]:
    """Counts, first annotator's labels down, second's across."""
    place = {label: index for index, label in enumerate(order)}
    table = np.zeros((len(order), len(order)), dtype=np.int64)
    for x, y in pairs:
        table[place[x], place[y]] += 1
    return table


def disagreement(order: Sequence[Label], weights: Weights) -> NDArray[np.float64]:
    """The cost of each pair of labels: 0 on the diagonal. ValueError for weights without numeric labels."""
    if weights not in WEIGHTS:
        raise ValueError(f"weights is {weights!r}; it must be one of {', '.join(WEIGHTS)}")
    if weights == "none":
        return 1.0 - np.eye(len(order))
    numbers = _numbers(order)
    if numbers is None:
        text = next(label for label in order if _numbers([label]) is None)
        raise ValueError(f"weights {weights} needs labels that are numbers, but one is {text!r}; use weights none")
    distance = np.abs(np.subtract.outer(numbers, numbers))
    return np.asarray(distance**2 if weights == "quadratic" else distance, dtype=np.float64)


def _kappas(tables: NDArray[np.int64], cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 - observed cost / cost expected by chance, of each table in shape (tables, labels, labels); NaN for 0 / 0."""
    n = tables.sum(axis=(1, 2))
    observed = (tables * cost).sum(axis=(1, 2)) * n
    expected = np.einsum("ti,ij,tj->t", tables.sum(axis=2), cost, tables.sum(axis=1))
    with np.errstate(all="ignore"):
        return np.asarray(np.where(expected > 0, 1.0 - observed / expected, np.nan))


def _numbers(labels: Sequence[Label]) -> list[float] | None:
    """The labels as numbers; None if one isn't a finite number."""
    try:
        values = [float(label) for label in labels]
    except (TypeError, ValueError):
        return None
    return values if all(math.isfinite(value) for value in values) else None
