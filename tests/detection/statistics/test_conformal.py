from __future__ import annotations

import json
import math
import time

import numpy as np
import pytest

from detection.audit import score_lines, summarise
from detection.blind import blind_baseline
from detection.method import Text
from detection.statistics.conformal import conformal, summary


def record(i, label, **scores):
    return {
        "id": i, "label": label, "tokens": 3, "part_tokens": {"": 3}, "overlong": 0, "dropped": 0, "scores": scores
    }  # fmt: skip


def test_unlabelled_texts_are_compared_with_all_known_non_members():
    rows = [record(0, None, loss=-1.0), record(1, None, loss=-9.0), record(2, 0, loss=-2.0), record(3, 1, loss=0.0)]
    known = [record(i, 0, loss=value) for i, value in enumerate([-3.0, -4.0, None])]
    # references are -2, -3, -4: (1 + 0) / 4 and (1 + 3) / 4; labelled texts have none
    assert conformal(rows, known) == {"loss": [0.25, 1.0, None, None]}
    assert conformal(rows, ()) == {"loss": [0.5, 1.0, None, None]}
    assert conformal(rows[:2], ()) == {"loss": [None, None]}
    assert conformal([record(0, None, loss=None)], known) == {"loss": [None]}


def test_the_summary_corrects_over_the_texts():
    found = summary([0.01, 0.04, 0.5, None], 99)
    assert found == {"n_reference": 99, "n": 3, "least": 0.01, "n_at_5": 2, "n_flagged": 1}  # 0.04 * 3 / 2 = 0.06
    assert summary([], 0) == {"n_reference": 0, "n": 0, "least": None, "n_at_5": 0, "n_flagged": 0}


def test_p_values_of_non_members_are_uniform():
    rng = np.random.default_rng(0)
    known = [record(i, 0, loss=float(value)) for i, value in enumerate(rng.normal(size=999))]
    rows = [record(i, None, loss=float(value)) for i, value in enumerate(rng.normal(size=4000))]
    values = conformal(rows, known)["loss"]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(values) <= level) == pytest.approx(level, abs=0.04)


def test_without_labels_metrics_hold_the_distribution_and_the_comparison():
    rows = [record(i, None, loss=-float(i)) for i in range(5)]
    known = [record(i, 0, loss=-10.0 - i) for i in range(39)]
    metrics = summarise(rows, known)["loss"]
    assert (metrics["auc"], metrics["p_value_adjusted"], metrics["n"]) == (None, None, 0)
    assert metrics["reason"] == "no labelled text with a score"
    assert (metrics["mean"], metrics["quartiles"]) == (-2.0, [-4.0, -3.0, -2.0, -1.0, 0.0])
    assert metrics["conformal"] == {"n_reference": 39, "n": 5, "least": 0.025, "n_at_5": 5, "n_flagged": 5}
    lines = [json.loads(line) for line in score_lines(rows, known)]
    assert lines[0] == {"id": 0, "scores": {"loss": 0.0}, "conformal": {"loss": 0.025}}
    assert "conformal" not in summarise(rows)["loss"]
    assert next(json.loads(line) for line in score_lines(rows)) == {"id": 0, "scores": {"loss": 0.0}}


def test_labelled_texts_have_no_conformal_p_values():
    rows = [record(i, i % 2, loss=-float(i)) for i in range(6)]
    assert "conformal" not in summarise(rows)["loss"]
    assert all("conformal" not in json.loads(line) for line in score_lines(rows))


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ((1, 1, 1), "one class only: no non-member (label 0) with a score"),
        ((0, 0, 0), "one class only: no member (label 1) with a score"),
        ((None, None, None), "no labelled text with a score"),
        ((1, 0, None), None),
    ],
)
def test_three_texts(labels, reason):
    metrics = summarise([record(i, label, loss=-1.0 - i) for i, label in enumerate(labels)])["loss"]
    assert metrics.get("reason") == reason
    assert metrics["mean"] == -2.0
    if reason is None:
        assert (metrics["auc"], metrics["p_value"], metrics["minimum_auc"]) == (1.0, 0.5, None)
        assert metrics["conformal"] == {"n_reference": 1, "n": 1, "least": 0.5, "n_at_5": 0, "n_flagged": 0}
    else:
        assert metrics["auc"] is metrics["auc_ci"] is metrics["p_value"] is None


def test_unscorable_texts_only():
    metrics = summarise([record(i, i % 2, loss=None) for i in range(3)])["loss"]
    assert (metrics["n"], metrics["n_unscorable"], metrics["mean"], metrics["quartiles"]) == (0, 3, None, None)


def test_ten_thousand_texts_take_seconds():
    rng = np.random.default_rng(0)
    labels = [int(label) for label in rng.integers(0, 2, 10_000)]
    values = rng.normal(size=(10_000, 8)) + 0.1 * np.array(labels)[:, None]
    rows = [record(i, label, **{f"s{j}": float(v) for j, v in enumerate(values[i])}) for i, label in enumerate(labels)]
    words = [f"w{j}" for j in range(500)]
    texts = [Text(id=i, text=" ".join(rng.choice(words, 20)), label=label) for i, label in enumerate(labels)]
    began = time.perf_counter()
    metrics = summarise(rows)
    lines = list(score_lines(rows))
    assert time.perf_counter() - began < 20
    began = time.perf_counter()
    blind = blind_baseline(texts, seed=0)
    assert time.perf_counter() - began < 20
    assert len(lines) == 10_000
    assert metrics["s0"]["auc"] == pytest.approx(0.528, abs=0.02)  # Phi(0.1 / sqrt 2)
    low, high = metrics["s0"]["auc_ci"]
    assert high - low == pytest.approx(2 * 1.96 / math.sqrt(12 * 2500), rel=0.1)
    assert blind.fair
