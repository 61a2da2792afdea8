from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from detection.blind import BlindBaseline
from detection.statistics.gain import Difference
from detection.verdict import HEADLINE, Finding, decide, verdict

GAIN = Difference(value=0.3, low=0.2, high=0.4, n=400)
LEAKED = Finding(name="min_k@20", auc=0.8, low=0.75, high=0.85, p_value=1e-9, minimum_auc=0.58, gain=GAIN)
CLEAN = Finding(name="loss", auc=0.51, low=0.46, high=0.56, p_value=0.4, minimum_auc=0.58, gain=GAIN)
FAIR = BlindBaseline(auc=0.5, auc_ci=(0.45, 0.55), n=400, n_members=200)


def test_contaminated_needs_one_headline_detector_with_both_controls():
    found = decide([LEAKED, CLEAN], True, {})
    assert found.outcome == "contaminated"
    assert found.reason == "min_k@20 AUC 0.800 [0.750, 0.850], gain over the base +0.300 [+0.200, +0.400], p 2e-09"
    assert [f.p_value_adjusted for f in found.findings] == pytest.approx([2e-9, 0.4])


@pytest.mark.parametrize(
    ("change", "fair", "words"),
    [
        ({}, False, "not a fair test"),
        ({}, None, "no blind baseline"),
        ({"gain": None}, True, "no untouched base"),
        ({"gain": replace(GAIN, low=-0.01)}, True, "the untouched base model scores as well"),
        ({"p_value": 0.03}, True, "not after the correction"),
        ({"low": 0.49}, True, None),
    ],
)
def test_each_condition_is_needed(change, fair, words):
    found = decide([replace(LEAKED, **change), CLEAN], fair, {})
    assert found.outcome != "contaminated"
    if words:
        assert found.outcome == "inconclusive"
        assert words in found.reason


def test_a_test_that_may_be_unfair_convicts_nobody():
    blind = BlindBaseline(auc=0.56, auc_ci=(0.42, 0.70), n=64, n_members=32)
    found = verdict(records(2.0, seed=1), records(0.0, seed=2), blind, seed=0)
    assert found.outcome == "inconclusive"
    assert found.reason.endswith(
        "; but it cannot be told whether the test is fair: without a model an AUC of up to 0.70 is possible, and 0.60 "
        "is the most"
    )
    assert verdict(records(2.0, seed=1), records(0.0, seed=2), replace(blind, by_design=True), seed=0).outcome == (
        "contaminated"
    )


def test_not_detected_needs_power():
    assert decide([CLEAN, replace(CLEAN, name="min_k@20")], True, {}).outcome == "not detected"
    weak = decide([replace(CLEAN, minimum_auc=0.7)], True, {})
    assert weak.outcome == "inconclusive"
    assert "an AUC of 0.70 with 80% power, 0.65 is wanted" in weak.reason
    assert "nothing" in decide([replace(CLEAN, minimum_auc=None)], True, {}).reason


def test_an_interval_below_chance_is_inconclusive():
    below = replace(CLEAN, auc=0.4, low=0.35, high=0.45, p_value=0.99)
    assert decide([below], True, {}).outcome == "inconclusive"
    assert decide([below], True, {}).reason.startswith("below chance")


def test_set_level_tests_share_the_correction_and_block_an_acquittal():
    found = decide([CLEAN], True, {"exchangeability": 1e-4, "codec": None})
    assert found.outcome == "inconclusive"
    assert "exchangeability (p 0.0002)" in found.reason
    assert decide([CLEAN], True, {"exchangeability": 0.3}).outcome == "not detected"
    # 0.02 alone stands; beside four others it's 5 * 0.02 = 0.1
    lone = replace(LEAKED, p_value=0.02)
    assert decide([lone], True, {}).outcome == "contaminated"
    others = {f"test{i}": 0.9 for i in range(4)}
    assert decide([lone], True, others).outcome == "inconclusive"
    assert "codec" in decide([LEAKED], True, {"codec": 1e-3}).reason


def test_without_any_auc():
    found = decide([], True, {}, HEADLINE)
    assert found.outcome == "inconclusive"
    assert found.not_tested == HEADLINE


def records(shift, n=200, seed=0, names=HEADLINE):
    noise = np.random.default_rng(seed).normal(size=(n, 3))
    return [
        {
            "id": str(i),
            "label": i % 2,
            "scores": {k: float(z) + shift * (i % 2) for k, z in zip(names, row, strict=True)},
        }
        for i, row in enumerate(noise)
    ]


def test_from_records_to_the_verdict():
    cheater, base = records(2.0, seed=1), records(0.0, seed=2)
    found = verdict(cheater, base, FAIR, seed=0)
    assert found.outcome == "contaminated"
    assert [finding.name for finding in found.findings] == list(HEADLINE)
    row = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert row["outcome"] == "contaminated"
    assert row["findings"][0]["gain"]["low"] > 0
    assert verdict(cheater, cheater, FAIR, seed=0).outcome == "inconclusive"
    assert verdict(cheater, None, FAIR, seed=0).outcome == "inconclusive"
    assert verdict(cheater, base, None, seed=0).outcome == "inconclusive"
    assert verdict(base, records(0.0, seed=3), FAIR, seed=0).outcome == "not detected"
    assert verdict(cheater[:4], base[:4], FAIR, seed=0).outcome == "inconclusive"


def test_headline_detectors_that_did_not_run_are_named():
    found = verdict(records(2.0, names=("loss", "x", "y")), None, FAIR, seed=0)
    assert found.not_tested == ("min_k@20", "min_k_plus_plus@20")


def test_a_base_without_scores_gives_no_gain():
    base = [{**row, "scores": {}} for row in records(0.0)]
    found = verdict(records(2.0), base, FAIR, seed=0)
    assert found.outcome == "inconclusive"
    assert found.to_json()["findings"][0]["gain"] is None
    json.dumps(found.to_json(), allow_nan=False)


def test_candidate_and_base_must_be_paired():
    with pytest.raises(ValueError, match="same texts"):
        verdict(records(1.0), records(0.0)[::-1], FAIR, seed=0)


def test_a_detector_that_scores_all_texts_alike_acquits_nobody():
    blank = [{**record, "scores": dict.fromkeys(HEADLINE, -1.0)} for record in records(0.0)]
    found = verdict(blank, None, None, seed=0)
    assert found.outcome == "inconclusive"
    assert found.reason == "all texts have the same score, so nothing could show: " + ", ".join(HEADLINE)
