from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.idgen.estimators import baseline, classifier, difficulty
from evaluation.idgen.estimators.rows import Categories, Row, read_rows
from evaluation.idgen.estimators.validation import validate
from tests.fixtures.tiny import make_model

HARD = ["prove", "derive", "integral", "theorem"]
EASY = ["name", "colour", "animal", "spell"]


def rows(number: int = 80, seed: int = 0, *, noise: bool = False) -> list[Row]:
    """Hard words make an item discriminate and difficult; with ``noise`` labels are drawn without looking."""
    draw = random.Random(seed)
    found = []
    for index in range(number):
        hard = draw.random() < 0.5
        text = " ".join(draw.choice(HARD if hard else EASY) for _ in range(draw.randint(4, 12)))
        label = draw.choice((0, 3)) if noise else 3 * hard
        found.append(
            Row(
                item=str(index),
                question=f"{text} {index}",
                category="science" if hard else "language",
                label=label,
                difficulty=2.0 + draw.random() if hard else draw.random(),
            )
        )
    return found


def test_features_by_hand() -> None:
    table = Categories.of(
        [Row(item="1", question="one two", category="a"), Row(item="2", question="one " * 6, category="a")]
    )
    new = Row(item="3", question="three words here", category="a")
    assert (table.mean_length(new), table.ratio(new)) == (4, 0.75)
    unseen = Row(item="4", question="", category="b")
    assert (table.mean_length(unseen), table.ratio(unseen)) == (4, 0.25)
    assert classifier.text(new, table) == "a[SEP]three words here[SEP]4[SEP]0.75"


def test_the_baseline_beats_the_majority_class_where_words_tell() -> None:
    found = validate(rows(), baseline.fit)
    assert found["accuracy"] > 0.95
    assert 0.4 < found["majority"] < 0.6
    assert found["gain_interval"][0] > 0.2
    assert found["spearman"] > 0.7
    assert found["difficulty"]["spearman"] > 0.5
    assert found["difficulty"]["mean_absolute_error"] < found["difficulty"]["by_mean"]


def test_the_baseline_gains_nothing_from_noise() -> None:
    low, high = validate(rows(noise=True), baseline.fit)["gain_interval"]
    assert low < 0.1
    assert high < 0.3


def test_saved_and_loaded_it_predicts_the_same(tmp_path: Path) -> None:
    new = [Row(item="n", question="prove this unseen thing", category="other"), *rows(5, seed=9)]
    for labels in ((0, 3), (0, 1, 3), (2,)):
        data = [
            Row(item=r.item, question=r.question, category=r.category, label=labels[i % len(labels)], difficulty=1.0)
            for i, r in enumerate(rows(30))
        ]
        made = baseline.fit(data)
        made.save(tmp_path)
        again = baseline.Baseline.load(tmp_path)
        assert np.array_equal(made.probabilities(new), again.probabilities(new))
        assert made.probabilities(new).sum(axis=1) == pytest.approx(1)
    assert json.loads((tmp_path / "baseline.json").read_text())["classes"] == [2]
    with pytest.raises(ValueError, match="holds no baseline estimator"):
        baseline.Baseline.load(tmp_path / "nothing")


@pytest.mark.parametrize("labels", [(0, 3), (0, 1, 3), (0, 1, 2, 3)])
def test_probabilities_are_those_of_scikit_learn(labels: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.linear_model import LogisticRegression

    seen = []
    fit = LogisticRegression.fit

    def remembering(self: LogisticRegression, x: Any, y: Any) -> Any:
        seen.append((self, x))
        return fit(self, x, y)

    monkeypatch.setattr(LogisticRegression, "fit", remembering)
    data = [
        Row(item=row.item, question=row.question, category=row.category, label=labels[index % len(labels)])
        for index, row in enumerate(rows(40))
    ]
    made = baseline.fit(data)
    ((model, x),) = seen
    assert np.allclose(made.probabilities(data), model.predict_proba(x), atol=1e-12)


def test_difficulty_is_a_linear_regression(tmp_path: Path) -> None:
    """difficulty = 1 + 0.5 judged, exactly: the other weights are 0."""
    data = [
        Row(item=str(i), question="w " * (i % 7 + 1), category="ab"[i % 2], difficulty=1 + 0.5 * (i % 4), judged=i % 4)
        for i in range(24)
    ]
    made = difficulty.fit(data)
    assert made.weights[1] == pytest.approx(0.5, abs=1e-6)
    assert made.predict(data) == pytest.approx([row.difficulty for row in data])
    made.save(tmp_path)
    assert np.array_equal(difficulty.DifficultyModel.load(tmp_path).predict(data), made.predict(data))
    nobody = difficulty.fit([Row(item="1", question="a", category="x", difficulty=2.0)])
    assert nobody.predict([Row(item="2", question="b c", category="new")]).shape == (1,)


def test_a_rows_own_difficulty_does_not_predict_it() -> None:
    """Each row alone in its category: its mean is that of all others, else the fit would be exact."""
    data = [Row(item=str(i), question="w", category=str(i), difficulty=float(i % 3)) for i in range(12)]
    assert np.abs(difficulty.fit(data).predict(data) - [row.difficulty for row in data]).max() > 0.1


@pytest.mark.parametrize("broken", [[], [Row(item="1", question="q", category="c")]])
def test_rows_that_teach_nothing_are_refused(broken: list[Row]) -> None:
    for fit in (baseline.fit, difficulty.fit):
        with pytest.raises(ValueError, match="rows have no"):
            fit(broken)
    with pytest.raises(ValueError, match="5 folds of"):
        validate(broken, baseline.fit)


def test_rows_of_an_analysed_exam(tmp_path: Path) -> None:
    items = [{"id": str(i), "question": f"Q{i}?", "subject": "s"} for i in range(4)]
    known = [
        {"item": "0", "label": 2, "difficulty": 1.5},
        {"item": "1", "label": None, "difficulty": 1.0},
        {"item": "9", "label": 1, "difficulty": 1.0},
    ]
    records = [{"drafts": [{"question": "Q0?", "critic": {"difficulty": 3}}, {"question": "Q1?", "critic": None}]}]
    for name, part in (("items", items), ("rows", known), ("records", records)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    (row,) = read_rows(tmp_path / "items.jsonl", tmp_path / "rows.jsonl", tmp_path / "records.jsonl")
    assert row == Row(item="0", question="Q0?", category="s", label=2, difficulty=1.5, judged=3.0)
    assert len(read_rows(tmp_path / "items.jsonl")) == 4
    (tmp_path / "rows.jsonl").write_text('{"item": "9", "label": 1, "difficulty": 1}\n')
    with pytest.raises(ValueError, match="are they of the same exam"):
        read_rows(tmp_path / "items.jsonl", tmp_path / "rows.jsonl")


def test_the_classifier_learns_is_saved_and_loaded(tmp_path: Path) -> None:
    base = make_model(tmp_path / "tiny")
    data = rows(16)
    training = classifier.Training(epochs=6, learning_rate=1e-2, batch_size=8, max_tokens=40)
    made = classifier.fit(data, base, training)
    right = np.array(made.classes)[made.probabilities(data).argmax(axis=1)] == [row.label for row in data]
    assert right.mean() > 0.9
    made.save(tmp_path / "out")
    assert not list((tmp_path / "out").glob("*.bin"))
    again = classifier.Classifier.load(tmp_path / "out")
    assert np.allclose(again.probabilities(data), made.probabilities(data), atol=1e-6)
    twice = classifier.fit(data, base, training)
    assert np.array_equal(twice.probabilities(data), made.probabilities(data))
    with pytest.raises(ValueError, match="holds no classifier"):
        classifier.Classifier.load(tmp_path / "tiny")


def test_a_long_question_is_cut_and_what_follows_it_is_not(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(make_model(tmp_path / "tiny"), local_files_only=True)
    row = Row(item="1", question="colour animal " * 400, category="c")
    table = Categories.of([row])
    text = classifier._fitting(row, tokenizer, table, 60)
    assert text.endswith("[SEP]800[SEP]1.00")
    assert len(tokenizer(text)["input_ids"]) <= 60


@pytest.mark.real
def test_a_real_model_takes_a_classification_head(smollm: Path, tmp_path: Path) -> None:
    data = rows(6)
    training = classifier.Training(epochs=1, learning_rate=1e-5, batch_size=6, max_tokens=32)
    chances = classifier.fit(data, smollm, training).probabilities(data)
    assert chances.shape == (6, 2)
    assert np.isfinite(chances).all()
