from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score, roc_curve

from detection.statistics.measurement import measurement
from detection.statistics.metrics import (
    auc,
    auc_p_value,
    benjamini_hochberg,
    conformal_p_values,
    hanley_mcneil_error,
    minimum_detectable_auc,
    roc_points,
    tpr_at_fpr,
)

# The specification's example: twenty members, twenty non-members, many ties.
SCORES = [9] * 10 + [5] * 6 + [1] * 4 + [7] + [3] * 9 + [0] * 10
LABELS = [1] * 20 + [0] * 20


@st.composite
def tied(draw):
    """Labels with both classes present, and scores of which many are equal."""
    n = draw(st.integers(2, 60))
    labels = [1, 0, *draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))]
    scores = draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n))
    return labels, scores


def test_the_example_of_the_specification():
    assert auc(LABELS, SCORES) == pytest.approx(0.885)
    assert tpr_at_fpr(LABELS, SCORES, 0.05) == 0.8
    assert tpr_at_fpr(LABELS, SCORES, 0.01) == 0.5


@given(tied())
def test_auc_equals_sklearn_with_ties(data):
    assert auc(*data) == pytest.approx(roc_auc_score(*data), abs=1e-12)


@given(tied(), st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0]))
def test_tpr_equals_the_best_point_of_sklearns_curve(data, level):
    fpr, tpr, _ = roc_curve(*data, drop_intermediate=False)
    assert tpr_at_fpr(*data, level) == pytest.approx(tpr[fpr <= level + 1e-12].max())


@given(tied())
def test_roc_points_equal_sklearns_curve_and_enclose_the_auc(data):
    points = roc_points(*data)
    fpr, tpr, thresholds = roc_curve(*data, drop_intermediate=False)
    np.testing.assert_allclose([p.fpr for p in points], fpr, atol=1e-12)
    np.testing.assert_allclose([p.tpr for p in points], tpr, atol=1e-12)
    np.testing.assert_allclose([p.threshold for p in points], thresholds)
    assert np.trapezoid(tpr, fpr) == pytest.approx(auc(*data))


@given(tied())
def test_auc_sees_only_the_order(data):
    labels, scores = data
    value = auc(labels, scores)
    assert auc(labels, [3 * s**3 + 7 for s in scores]) == value
    assert auc(labels, [-s for s in scores]) == pytest.approx(1 - value)
    assert auc([1 - label for label in labels], scores) == pytest.approx(1 - value)
    assert auc(labels * 2, scores * 2) == pytest.approx(value)


def test_the_level_is_counted_without_rounding_errors():
    # 29 of 100 non-members lie at or above the members: 0.29 * 100 is 28.999999999999996
    assert tpr_at_fpr([1] + [0] * 100, [5] + [9] * 29 + [0] * 71, 0.29) == 1.0
    assert tpr_at_fpr([1] + [0] * 100, [5] + [9] * 30 + [0] * 70, 0.29) == 0.0
    with pytest.raises(ValueError, match=r"1\.5"):
        tpr_at_fpr(LABELS, SCORES, 1.5)


@pytest.mark.parametrize("labels", [[], [1, 1], [0, 0]])
def test_one_class_only_is_undefined(labels):
    scores = [0.5] * len(labels)
    assert math.isnan(auc(labels, scores))
    assert math.isnan(tpr_at_fpr(labels, scores, 0.05))
    assert math.isnan(auc_p_value(labels, scores))
    assert roc_points(labels, scores) == []


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [([0, 2], [1, 2], "0 .non-member"), ([0, 1], [1, math.nan], "finite"), ([0, 1], [1], "equal length")],
)
def test_incomplete_data_is_refused(labels, scores, message):
    with pytest.raises(ValueError, match=message):
        auc(labels, scores)


def test_p_value_by_hand():
    # two members above two non-members: one of the 6 arrangements
    assert auc_p_value([1, 1, 0, 0], [4, 3, 2, 1]) == pytest.approx(1 / 6)
    assert auc_p_value([0, 0, 1, 1], [4, 3, 2, 1]) == 1.0
    assert auc_p_value([1, 0, 1, 0], [2, 2, 2, 2]) == 1.0
    assert auc_p_value(LABELS, SCORES) < 1e-4


def test_hanley_mcneil_by_hand():
    # at 0.5 it is the exact null spread sqrt((m + n + 1) / (12 m n))
    assert hanley_mcneil_error(0.5, 20, 30) == pytest.approx(math.sqrt(51 / (12 * 600)))
    # A = 0.8, m = n = 2: Q1 = 2/3, Q2 = 1.28/1.8; (0.16 + 0.026667 + 0.071111) / 4
    assert hanley_mcneil_error(0.8, 2, 2) == pytest.approx(math.sqrt(0.2577778 / 4), abs=1e-6)
    assert hanley_mcneil_error(1.0, 5, 5) == 0.0


def test_minimum_detectable_auc():
    # 200 and 200, by hand: 1.960 * 0.02890 + 0.8416 * 0.02843 = 0.0806
    assert minimum_detectable_auc(200, 200) == pytest.approx(0.5806, abs=2e-4)
    assert minimum_detectable_auc(50, 50) > 0.65 > minimum_detectable_auc(60, 60)
    assert minimum_detectable_auc(200, 50) == pytest.approx(minimum_detectable_auc(50, 200), abs=0.005)
    assert math.isnan(minimum_detectable_auc(2, 2))
    assert math.isnan(minimum_detectable_auc(0, 9))


def test_minimum_detectable_auc_has_the_power_it_claims():
    """Normal scores with that AUC: a one-sided test at 0.025 rejects in 80% of samples (four standard errors: 5%)."""
    from scipy.stats import norm

    rng = np.random.default_rng(0)
    shift = math.sqrt(2) * norm.ppf(minimum_detectable_auc(60, 60))
    labels = [1] * 60 + [0] * 60
    noise = rng.normal(size=(1000, 120)) + shift * np.array(labels)
    assert np.mean([auc_p_value(labels, row) <= 0.025 for row in noise]) == pytest.approx(0.8, abs=0.05)


def test_benjamini_hochberg_by_hand():
    # sorted .01 .02 .03 .5, times 4/rank: .04 .04 .04 .5
    assert benjamini_hochberg([0.5, 0.01, None, 0.03, math.nan, 0.02]) == pytest.approx(
        [0.5, 0.04, None, 0.04, None, 0.04]
    )
    assert benjamini_hochberg([None]) == [None]
    assert benjamini_hochberg([]) == []


def test_conformal_p_values_by_hand():
    assert conformal_p_values([9.0, 3.0, 0.0, None, math.nan], [1, 2, 3, 4]) == [0.2, 0.6, 1.0, None, None]
    assert conformal_p_values([1.0], []) == [None]


def test_measurement_of_a_column():
    found = measurement([*LABELS, None, 1, 0], [*SCORES, 99.0, None, math.nan])
    assert (found["n"], found["n_members"], found["n_unscorable"]) == (40, 20, 2)
    assert found["auc"] == pytest.approx(0.885)
    assert found["auc_ci"][0] < 0.885 < found["auc_ci"][1]
    assert (found["tpr_at_1"], found["tpr_at_5"]) == (None, 0.8)
    assert found["tpr_at_5_ci"][0] <= 0.8 <= found["tpr_at_5_ci"][1]
    assert "reason" not in found
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("labels", "scores", "reason"),
    [
        ([], [], "no labelled text"),
        ([None, None], [1.0, 2.0], "no labelled text"),
        ([0, 0], [1.0, 2.0], "no member"),
        ([1, 1], [1.0, 2.0], "no non-member"),
        ([1, 0], [1.0, None], "no non-member"),
    ],
)
def test_measurement_gives_a_reason_where_there_is_no_metric(labels, scores, reason):
    found = measurement(labels, scores)
    assert reason in found["reason"]
    assert [found[key] for key in ("auc", "auc_ci", "tpr_at_1", "tpr_at_5_ci", "p_value", "minimum_auc")] == [None] * 6


def test_small_sets_with_ties_have_an_exact_p_value():
    # the one member is the highest of three: 1 of 3 ways to deal it
    assert auc_p_value([1, 0, 0], [1.0, 0.0, 0.0]) == pytest.approx(1 / 3)
    # members 1 1 1 0, others 0 0 0 0: U is greatest whenever the three ones fall to the members: 5 of C(8, 4) = 70 ways
    assert auc_p_value([1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0]) == pytest.approx(5 / 70)
