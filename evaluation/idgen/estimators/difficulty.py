"""Difficulty by linear regression on the category's mean difficulty, a judge's word on it, and the length ratio."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.idgen.estimators.rows import Categories, Row
from serving.files import write_text

FILE = "difficulty.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class DifficultyModel:
    """difficulty = intercept + weights . (category mean, judged, ratio).

    judged_mean: stands in where nobody judged; weight 0 if nobody judged any of the rows
    """

    categories: Categories
    intercept: float
    weights: tuple[float, float, float]
    judged_mean: float

    def predict(self, rows: Sequence[Row]) -> NDArray[np.float64]:
        means = [self.categories.difficulties.get(row.category, self.categories.difficulties[""]) for row in rows]
        features = _features(rows, means, self.categories, self.judged_mean)
        return np.asarray(self.intercept + features @ np.array(self.weights))

    def save(self, folder: Path) -> None:
        fields = {"intercept": self.intercept, "weights": self.weights, "judged_mean": self.judged_mean}
        text = json.dumps({"categories": self.categories.to_json(), **fields})
        write_text(folder / FILE, text)

    @classmethod
    def load(cls, folder: Path) -> DifficultyModel:
        """ValueError if the folder holds none."""
        try:
            fields = json.loads((folder / FILE).read_text(encoding="utf-8"))
            categories, weights = Categories(**fields.pop("categories")), tuple(fields.pop("weights"))
            return cls(categories=categories, weights=weights, **fields)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{folder} holds no model of the difficulty ({FILE}): {error}") from error


def fit(rows: Sequence[Row]) -> DifficultyModel:
    """Least squares; of equally good solutions the shortest. ValueError for rows without difficulty, or none.

    A row's own difficulty is no part of the category mean that it is predicted from.
    """
    values = [row.difficulty for row in rows if row.difficulty is not None]
    if not rows or len(values) < len(rows):
        raise ValueError(f"{len(rows) - len(values)} of {len(rows)} rows have no difficulty; all need one")
    categories = Categories.of(rows)
    judged = [row.judged for row in rows if row.judged is not None]
    judged_mean = float(np.mean(judged)) if judged else 0.0
    features = _features(rows, _without_itself(rows, values), categories, judged_mean)
    design = np.column_stack([np.ones(len(rows)), features])
    solution, *_ = np.linalg.lstsq(design, np.array(values), rcond=None)
    intercept, *weights = (float(value) for value in solution)
    return DifficultyModel(
        categories=categories,
        intercept=intercept,
        weights=(weights[0], weights[1], weights[2]),
        judged_mean=judged_mean,
    )


def _without_itself(rows: Sequence[Row], values: Sequence[float]) -> list[float]:
    """The mean of the others in the row's category; alone in it, of all others; alone altogether, its own."""
    totals: dict[str, tuple[float, int]] = {}
    for row, value in zip(rows, values, strict=True):
        for name in {row.category, ""}:
            total, count = totals.get(name, (0.0, 0))
            totals[name] = (total + value, count + 1)
    means = []
    for row, value in zip(rows, values, strict=True):
        total, count = next((totals[name] for name in (row.category, "") if totals[name][1] > 1), (2 * value, 2))
        means.append((total - value) / (count - 1))
    return means


def _features(
    rows: Sequence[Row], means: Sequence[float], categories: Categories, judged_mean: float
) -> NDArray[np.float64]:
    return np.array(
        [
            [mean, judged_mean if row.judged is None else row.judged, categories.ratio(row)]
            for row, mean in zip(rows, means, strict=True)
        ]
    ).reshape(len(rows), 3)
