"""Details on which published codes differ, where no other test has the value.

The others: k is rounded up (detectors/test_min_k, test_detector_base, test_pac); weighted moments and sigma 0
(detectors/test_min_k_plus_plus, serving/test_serving_token_scoring); per example and per token (test_loss_gap); TPR at
FPR <= a level (test_metrics); texts of 0 or 1 tokens, BOS, the boundary of prompt and answer, truncation, padding and
order (test_audit, serving/test_serving_token_scoring, serving/test_serving_rendering); the reference model's tokenizer
(detectors/test_reference, detectors/test_table_arithmetic_on_a_model); a cache's key
(serving/test_serving_fingerprint, serving/test_serving_ledger).
"""

from __future__ import annotations

import json

import pytest

from detection.audit import audit_dialogue, read_texts, summarise
from detection.detectors import build
from detection.statistics.metrics import auc, classes
from detection.statistics.roc_intervals import auc_interval


def test_the_interval_of_an_auc_of_0_736_lies_around_it_and_not_around_0_264():
    # 20 non-members score 0 to 19; 36 members lie above 15 of them, 14 members above 14: 736 of 1000 pairs
    scores = [float(i) for i in range(20)] + [14.5] * 36 + [13.5] * 14
    labels = [0] * 20 + [1] * 50
    assert auc(labels, scores) == pytest.approx(0.736)
    low, high = auc_interval(classes(labels, scores))
    assert low < 0.736 < high
    assert low > 0.5
    mirrored = auc_interval(classes(labels, [-score for score in scores]))
    assert mirrored == pytest.approx((1 - high, 1 - low))


def test_label_0_is_a_label_and_null_is_none(tmp_path, tokens, drive):
    rows = [{"text": "a b", "label": 1}, {"text": "c d", "label": 0}, {"text": "e f", "label": None}, {"text": "g h"}]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    texts = read_texts(tmp_path / "texts.jsonl")
    assert [text.label for text in texts] == [1, 0, None, None]
    records = [drive(audit_dialogue(text, build(["loss"])), lambda _: tokens([-1.0]))[0] for text in texts]
    found = summarise(records)["loss"]
    assert (found["n"], found["n_members"]) == (2, 1)
    assert found["auc"] == 0.5
