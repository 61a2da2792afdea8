"""Cross-validation: accuracy of the label against the majority class, and rank correlations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluation.idgen.estimators import difficulty
from evaluation.idgen.estimators.rows import Row
from evaluation.statistics import mean_of


class Estimator(Protocol):
    """What is validated: probabilities of its classes."""

    @property
    def classes(self) -> list[int]: ...

    def probabilities(self, rows: Sequence[Row]) -> NDArray[np.float64]: ...


def validate(
    rows: Sequence[Row], fit: Callable[[Sequence[Row]], Estimator], *, folds: int = 5, seed: int = 0
) -> dict[str, Any]:
    """Each row predicted by an estimator that has not seen it; every mean, too, is of the other folds.

    ``accuracy`` and ``majority`` (the most frequent label of the other folds) over all rows, ``gain`` their paired
    difference with its 95% interval; ``spearman`` of expected label and label; ``difficulty`` {spearman,
    pearson, mean_absolute_error, by_mean: the error of predicting the mean}. Correlations are None where a side is
    constant.

    ValueError for fewer rows than folds, or fewer than two folds.
    """
    if not 2 <= folds <= len(rows):
        raise ValueError(f"{folds} folds of {len(rows)} rows; there must be at least two, and a row for each")
    labels = np.array([row.label for row in rows])
    hardness = np.array([row.difficulty for row in rows], dtype=float)
    predicted, majority = np.zeros(len(rows), dtype=int), np.zeros(len(rows), dtype=int)
    expected, hard, mean = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
    parts = np.array_split(np.random.default_rng(seed).permutation(len(rows)), folds)
    for part in parts:
        held = set(part.tolist())
        seen = [row for index, row in enumerate(rows) if index not in held]
        unseen = [rows[index] for index in part]
        estimator = fit(seen)
        chances = estimator.probabilities(unseen)[:, : len(estimator.classes)]
        predicted[part] = np.array(estimator.classes)[chances.argmax(axis=1)]
        expected[part] = chances @ np.array(estimator.classes) / chances.sum(axis=1)
        counts = Counter(row.label for row in seen)
        majority[part] = min(counts, key=lambda label: (-counts[label], label))
        hard[part] = difficulty.fit(seen).predict(unseen)
        mean[part] = np.mean([row.difficulty for row in seen if row.difficulty is not None])
    right, by_majority = predicted == labels, majority == labels
    gain = right.astype(float) - by_majority.astype(float)
    gained = mean_of(gain.tolist(), seed=seed, scale=(-1.0, 1.0))
    return {
        "n": len(rows),
        "folds": folds,
        "accuracy": float(right.mean()),
        "majority": float(by_majority.mean()),
        **gained.to_json("gain", "gain_interval"),
        "spearman": _spearman(expected, labels),
        "difficulty": {
            "spearman": _spearman(hard, hardness),
            "pearson": _pearson(hard, hardness),
            "mean_absolute_error": float(np.abs(hard - hardness).mean()),
            "by_mean": float(np.abs(mean - hardness).mean()),
        },
    }


def _spearman(a: Any, b: Any) -> float | None:
    from scipy.stats import rankdata

    return _pearson(rankdata(np.round(a, 12)), rankdata(np.round(b, 12)))


def _pearson(a: Any, b: Any) -> float | None:
    if np.ptp(a) < 1e-12 or np.ptp(b) < 1e-12:
        return None
    return float(np.corrcoef(a, b)[0, 1])
