"""The baseline: TF-IDF of the question, its category and lengths, into a multinomial logistic regression."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.idgen.estimators.rows import Categories, Row
from serving.files import write_text

FILE = "baseline.json"
_FEATURES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A fitted baseline, as it is saved: plain numbers.

    vocabulary, idf: of words and pairs of words; centre, spread: of (mean length, length ratio)
    classes: the labels it knows; weights (classes x features), biases: one row of weights for two classes, none for one
    """

    categories: Categories
    vocabulary: dict[str, int]
    idf: list[float]
    centre: list[float]
    spread: list[float]
    classes: list[int]
    weights: list[list[float]]
    biases: list[float]

    def probabilities(self, rows: Sequence[Row]) -> NDArray[np.float64]:
        """Rows x ``classes``."""
        if len(self.classes) == 1:
            return np.ones((len(rows), 1))
        features = _features(rows, self.categories, _vectorizer(self.vocabulary, self.idf), self.centre, self.spread)
        scores = np.asarray(features @ np.array(self.weights).T) + np.array(self.biases)
        if len(self.classes) == 2:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def save(self, folder: Path) -> None:
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "categories"}
        text = json.dumps({"kind": "baseline", "categories": self.categories.to_json(), **fields})
        write_text(folder / FILE, text)

    @classmethod
    def load(cls, folder: Path) -> Baseline:
        """ValueError if the folder holds none."""
        try:
            fields = json.loads((folder / FILE).read_text(encoding="utf-8"))
            fields.pop("kind")
            return cls(**{**fields, "categories": Categories(**fields["categories"])})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{folder} holds no baseline estimator ({FILE}): {error}") from error


def fit(rows: Sequence[Row]) -> Baseline:
    """The baseline of rows with labels. ValueError for none."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    labels = [row.label for row in rows if row.label is not None]
    if not rows or len(labels) < len(rows):
        raise ValueError(
            f"{len(rows) - len(labels)} of {len(rows)} rows have no label; there must be some, all with one"
        )
    categories = Categories.of(rows)
    classes = sorted(set(labels))
    empty: dict[str, Any] = {"vocabulary": {}, "idf": [], "centre": [0.0, 0.0], "spread": [1.0, 1.0]}
    if len(classes) == 1:
        return Baseline(categories=categories, classes=classes, weights=[], biases=[], **empty)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_features=_FEATURES, token_pattern=_WORDS)
    vectorizer.fit([_text(row) for row in rows])
    numbers = _numbers(rows, categories)
    centre, spread = numbers.mean(axis=0), numbers.std(axis=0)
    spread[spread < 1e-9] = 1.0
    model = LogisticRegression(C=1.0, max_iter=2000)
    model.fit(_features(rows, categories, vectorizer, centre.tolist(), spread.tolist()), labels)
    return Baseline(
        categories=categories,
        vocabulary={word: int(index) for word, index in vectorizer.vocabulary_.items()},
        idf=[float(value) for value in vectorizer.idf_],
        centre=centre.tolist(),
        spread=spread.tolist(),
        classes=[int(label) for label in model.classes_],
        weights=model.coef_.tolist(),
        biases=model.intercept_.tolist(),
    )


_WORDS = r"(?u)\S+"


def _text(row: Row) -> str:
    """The question's words, and the category as one word that no question spells."""
    return f"\u241e{'_'.join(row.category.split())}\u241e {row.question}"


def _vectorizer(vocabulary: dict[str, int], idf: list[float]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    made = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, vocabulary=vocabulary, token_pattern=_WORDS)
    made.idf_ = np.array(idf)
    return made


def _numbers(rows: Sequence[Row], categories: Categories) -> NDArray[np.float64]:
    return np.array([[categories.mean_length(row), categories.ratio(row)] for row in rows])


def _features(
    rows: Sequence[Row], categories: Categories, vectorizer: Any, centre: list[float], spread: list[float]
) -> Any:
    from scipy.sparse import csr_matrix, hstack

    numbers = (_numbers(rows, categories) - np.array(centre)) / np.array(spread)
    return hstack([vectorizer.transform([_text(row) for row in rows]), csr_matrix(numbers)]).tocsr()
