"""The figures of marked answers: full marks, dimensions, levels, domains, later rounds; and the gain by exemplars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.lm_examiner.levels import LEVELS, UNCLASSIFIED
from evaluation.lm_examiner.marking import FULL, MAXIMA
from evaluation.statistics import mean, mean_of, wilson
from serving.records import derive_seed

Rows = Sequence[Mapping[str, Any]]


def figures(rows: Rows, *, seed: int, name: str = "all") -> dict[str, Any]:
    """Of rows {marks, overall}: how many have marks, the share of full marks (overall 5) with Wilson's interval, and
    the mean of each mark with its interval and its share of the best mark (the radar's axes).
    """
    marked = [row for row in rows if row["marks"] is not None]
    full = sum(row["overall"] == FULL for row in marked)
    interval = wilson(full, len(marked))
    dimensions = {}
    for dimension, most in MAXIMA.items():
        values = [float(row["marks"][dimension]) for row in marked]
        found = mean_of(values, seed=derive_seed(seed, "marks", name, dimension), scale=(1.0, float(most)))
        dimensions[dimension] = {
            **found.to_json(),
            "of_maximum": None if found.mean is None else found.mean / most,
        }
    return {
        "n": len(marked),
        "full_marks": full,
        "full_marks_share": full / len(marked) if marked else None,
        "full_marks_share_interval": list(interval) if interval else None,
        "dimensions": dimensions,
        "unmarked": len(rows) - len(marked),
    }


def by(rows: Rows, key: str, *, seed: int, order: Sequence[str] = ()) -> dict[str, Any]:
    """``figures`` for each value of a column, those in ``order`` first."""
    values = {row[key] for row in rows}
    names = [name for name in order if name in values] + sorted(values - set(order))
    return {name: figures([row for row in rows if row[key] == name], seed=seed, name=f"{key}/{name}") for name in names}


def by_level(rows: Rows, *, seed: int) -> dict[str, Any]:
    return by(rows, "level", seed=seed, order=(*LEVELS, UNCLASSIFIED))


def few_shot_gain(zero: Sequence[Mapping[str, Any]], shots: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Per level the mean over models of (share of full marks with exemplars / without), less 1.

    zero, shots: each model's ``by_level`` figures, in one order. A model without full marks at 0 shots, or without
    marks, has no ratio: it is left out and counted. ValueError for unequal lengths.
    """
    if len(zero) != len(shots):
        raise ValueError(f"there are {len(zero)} models without exemplars and {len(shots)} with; pairs need both")
    gains = {}
    for level in LEVELS:
        ratios = []
        for before, after in zip(zero, shots, strict=True):
            low = before.get(level, {}).get("full_marks_share")
            high = after.get(level, {}).get("full_marks_share")
            if low and high is not None:
                ratios.append(high / low)
        average = mean(ratios)
        gains[level] = {
            "gain": None if average is None else average - 1,
            "models": len(ratios),
            "left_out": len(zero) - len(ratios),
        }
    return gains
