from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from detection.statistics.measurement import measurement
from detection.statistics.metrics import Classes, auc, classes
from detection.statistics.roc_intervals import (
    auc_interval,
    delong_variance,
    newcombe,
    placements,
    tpr_interval,
)

RNG = np.random.default_rng(3)
LABELS = np.array([1] * 100 + [0] * 100)


def separated(n):
    return Classes(members=np.arange(n) + 1000.0, non_members=np.arange(n) * 1.0)


@pytest.mark.parametrize(("n", "low"), [(10, 0.80), (32, 0.94), (100, 0.98)])
def test_separated_groups_claim_no_certainty(n, low):
    found = auc_interval(separated(n))
    assert (round(found.low, 2), found.high) == (low, 1.0)
    mirrored = auc_interval(Classes(members=separated(n).non_members, non_members=separated(n).members))
    assert mirrored == pytest.approx((0.0, 1 - found.low))


def test_newcombes_bounds_solve_his_equation():
    z, area, m, n = 1.959964, 0.8, 20, 30
    for bound in newcombe(area, m, n, z):
        weight = (m + n) / 2 - 1
        spread = bound * (1 - bound) * (1 + weight * (1 - bound) / (2 - bound) + weight * bound / (1 + bound))
        assert abs(area - bound) == pytest.approx(z * math.sqrt(spread / (m * n)))


def test_delongs_variance_by_hand():
    # members 3, 1; non-members 2, 0: shares beaten 1, 1/2; shares above 1/2, 1. Both variances 1/8, over 2 each.
    found = placements(Classes(members=np.array([3.0, 1.0]), non_members=np.array([2.0, 0.0])))
    assert found.members.tolist() == [1.0, 0.5]
    assert found.non_members.tolist() == [0.5, 1.0]
    assert delong_variance(found) == pytest.approx(0.125)


def test_the_interval_is_the_union_of_newcombe_and_delong():
    scores = RNG.normal(size=200) + 0.9 * LABELS
    groups = classes(LABELS, scores)
    low, high = auc_interval(groups)
    error = math.sqrt(delong_variance(placements(groups))) / (groups.auc() * (1 - groups.auc()))
    logit = math.log(groups.auc() / (1 - groups.auc()))
    delong = [1 / (1 + math.exp(-(logit + side * 1.959964 * error))) for side in (-1, 1)]
    other = newcombe(groups.auc(), 100, 100, 1.959964)
    assert (low, high) == pytest.approx((min(delong[0], other.low), max(delong[1], other.high)))
    assert low < auc(LABELS, scores) < high


def test_one_class_and_scores_all_alike():
    assert all(map(math.isnan, auc_interval(classes([1, 1], [3, 4]))))
    low, high = auc_interval(classes([1, 0] * 20, [1.0] * 40))
    assert low == pytest.approx(1 - high)
    assert low < 0.4


@pytest.mark.parametrize(("n", "area"), [(10, 0.95), (32, 0.99), (32, 0.5)])
def test_the_interval_holds_the_truth_as_often_as_it_says(n, area):
    rng = np.random.default_rng(11)
    shift = math.sqrt(2) * norm.ppf(area)
    hits = []
    for _ in range(400):
        low, high = auc_interval(Classes(members=rng.normal(shift, 1, n), non_members=rng.normal(size=n)))
        hits.append(low <= area <= high)
    assert np.mean(hits) >= 0.93


def test_a_rate_without_enough_non_members_is_none_and_says_why():
    rng = np.random.default_rng(0)

    def measured(non_members):
        return measurement([1] * 40 + [0] * non_members, rng.normal(size=40 + non_members).tolist())

    few = measured(99)
    assert (few["tpr_at_1"], few["tpr_at_1_ci"]) == (None, None)
    assert few["tpr_at_1_reason"] == "99 non-members; a false-positive rate of 1% takes 100"
    assert few["tpr_at_5"] is not None
    some = measured(100)
    assert some["tpr_at_1"] is not None
    assert "tpr_at_1_reason" not in some
    assert some["tpr_at_1_warning"] == "100 non-members are few for a false-positive rate of 1%; better 500"
    assert "tpr_at_1_warning" not in measured(500)


@pytest.mark.parametrize(("n", "area", "level"), [(100, 0.8, 0.01), (100, 0.95, 0.05), (500, 0.95, 0.01)])
def test_the_rates_interval_holds_the_truth(n, area, level):
    rng = np.random.default_rng(5)
    shift = math.sqrt(2) * norm.ppf(area)
    truth = norm.sf(norm.isf(level) - shift)
    found = [
        tpr_interval(Classes(members=rng.normal(shift, 1, n), non_members=rng.normal(size=n)), level)
        for _ in range(300)
    ]
    assert np.mean([low <= truth <= high for low, high in found]) >= 0.95
