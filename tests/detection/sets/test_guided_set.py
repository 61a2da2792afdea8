from __future__ import annotations

import math

import pytest

from detection.method import Context, Text
from detection.sets import build
from detection.sets.guided import bootstrap_p


def run(drive, values, labels=None, **options):
    texts = [Text(id=i, text="t", label=None if labels is None else labels[i]) for i in range(len(values))]
    (test,) = build(["guided_set"], Context(seed=1, options={"guided_set": options}))
    figures, asked = drive(test.examine(texts, [{"guided": value} for value in values]), None)
    assert asked == []
    return figures


def test_a_gain_everywhere_has_the_least_p(drive):
    figures = run(drive, [0.1, 0.3] * 5)
    assert figures["p_value"] == 1 / 10_001
    assert figures["mean"] == pytest.approx(0.2)
    assert (figures["n"], figures["n_unscorable"], figures["resamples"]) == (10, 0, 10_000)


def test_no_gain_and_a_loss_have_p_one(drive):
    assert run(drive, [0.0] * 10)["p_value"] == 1.0
    assert run(drive, [-0.1] * 10)["p_value"] == 1.0


def test_gains_that_cancel_lie_in_the_middle(drive):
    # A resample of five +0.1 and five -0.1 is a binomial of 10 fair draws: P(mean <= 0) = 1/2 + C(10, 5) / 2^11 = 0.623
    p = run(drive, [0.1, -0.1] * 5)["p_value"]
    assert p == pytest.approx(0.5 + 252 / 2**11, abs=0.015)
    assert p == run(drive, [0.1, -0.1] * 5)["p_value"]


def test_one_loss_among_ten():
    # Only the loss drawn at least 5 times in 10 makes the mean 0 or less: P(Binomial(10, 1/10) >= 5) = 0.001635
    p = bootstrap_p([0.1] * 9 + [-0.1], seed=0, resamples=200_000)
    assert p == pytest.approx(0.001635, abs=0.0004)


def test_known_non_members_are_the_control(drive):
    figures = run(drive, [0.2] * 10 + [-0.4, 0.0, math.nan], [1] * 10 + [0, 0, 0])
    assert (figures["n"], figures["non_member_n"]) == (10, 2)
    assert figures["p_value"] == 1 / 10_001
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
