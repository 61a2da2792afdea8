from __future__ import annotations

import math

import numpy as np
import pytest

from detection.method import Context, Text
from detection.sets import build
from evaluation.statistics import sign_flip


def run(drive, values, labels=None, **options):
    texts = [Text(id=i, text="t", label=None if labels is None else labels[i]) for i in range(len(values))]
    (test,) = build(["guided_set"], Context(seed=1, options={"guided_set": options}))
    figures, asked = drive(test.examine(texts, [{"guided": value} for value in values]), None)
    assert asked == []
    return figures


def test_a_gain_everywhere_has_the_least_p(drive):
    figures = run(drive, [0.1, 0.3] * 5)
    assert figures["p_value"] == 1 / 2**10  # one of all ways to flip ten signs is as extreme
    assert figures["mean"] == pytest.approx(0.2)
    assert (figures["n"], figures["n_unscorable"], figures["resamples"]) == (10, 0, 10_000)


def test_no_gain_and_a_loss_have_p_one(drive):
    assert run(drive, [0.0] * 10)["p_value"] == 1.0
    assert run(drive, [-0.1] * 10)["p_value"] == 1.0


def test_gains_that_cancel_lie_in_the_middle(drive):
    # Ten fair signs: P(mean >= 0) = 1/2 + C(10, 5) / 2^11 = 0.623
    p = run(drive, [0.1, -0.1] * 5)["p_value"]
    assert p == pytest.approx(0.5 + 252 / 2**11)
    assert p == run(drive, [0.1, -0.1] * 5)["p_value"]


def test_one_loss_among_ten():
    # As extreme are at most one minus among ten signs: 11 of 2^10 ways. Resampled instances made it 0.0016.
    values = [0.1] * 9 + [-0.1]
    assert sign_flip(values, seed=0, alternative="greater") == pytest.approx(11 / 2**10)
    assert sign_flip(values, seed=0, alternative="greater", resamples=1_000) == pytest.approx(11 / 2**10, abs=0.01)


def test_the_test_of_noise_keeps_its_level(drive):
    rng = np.random.default_rng(4)
    p_values = [run(drive, rng.exponential(size=10) - 1)["p_value"] for _ in range(200)]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.09


def test_known_non_members_are_the_control(drive):
    figures = run(drive, [0.2] * 10 + [-0.4, 0.0, math.nan], [1] * 10 + [0, 0, 0])
    assert (figures["n"], figures["non_member_n"]) == (10, 2)
    assert figures["p_value"] == 1 / 2**10
    assert figures["non_member_mean"] == pytest.approx(-0.2)


@pytest.mark.parametrize("values", [[], [0.5], [0.5] * 9, [0.5] * 9 + [None, math.nan]])
def test_too_few_texts_are_no_test(drive, values):
    figures = run(drive, values)
    assert figures["p_value"] is None
    assert f"{min(len(values), 9)} texts" in figures["reason"]
    assert figures["n_unscorable"] == max(0, len(values) - 9)


def test_scores_of_other_detectors_are_no_scores(drive):
    (test,) = build(["guided_set"], Context())
    figures, _ = drive(test.examine([Text(id=1, text="t")], [{"loss": -1.0}]), None)
    assert figures["mean"] is None
    assert figures["p_value"] is None
