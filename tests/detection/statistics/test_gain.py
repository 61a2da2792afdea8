from __future__ import annotations

import math

import numpy as np
import pytest

from detection.statistics.gain import p_value, paired_difference
from detection.statistics.metrics import auc, classes
from detection.statistics.roc_intervals import auc_interval

RNG = np.random.default_rng(3)
LABELS = np.array([1] * 100 + [0] * 100)


def test_a_paired_difference_is_tighter_than_two_intervals():
    shared = RNG.normal(size=200) * 3
    first = shared + 1.5 * LABELS
    second = shared + 1.0 * LABELS
    found = paired_difference(LABELS.tolist(), first.tolist(), second.tolist())
    assert found.value == pytest.approx(auc(LABELS, first) - auc(LABELS, second))
    assert 0 < found.low < found.value < found.high
    one = auc_interval(classes(LABELS, first))
    assert found.high - found.low < (one.high - one.low) / 2


def test_a_difference_of_a_score_with_itself_is_nothing():
    scores = RNG.normal(size=200).tolist()
    found = paired_difference(LABELS.tolist(), scores, scores)
    assert (found.value, found.low, found.high, found.n) == (0.0, 0.0, 0.0, 200)


def test_only_labelled_texts_that_both_score_are_compared():
    found = paired_difference([1, 0, 1, None, 0], [2.0, 1.0, None, 5.0, 3.0], [1.0, 2.0, 9.0, 5.0, math.nan])
    assert (found.value, found.n) == (1.0, 2)
    alone = paired_difference([1, 1], [1.0, 2.0], [1.0, 2.0])
    assert math.isnan(alone.value)
    assert "no non-member" in alone.reason
    with pytest.raises(ValueError, match="lengths differ"):
        paired_difference([1, 0], [1.0], [1.0, 2.0])


def test_separated_groups_have_no_certain_gain():
    """A bootstrap of two AUCs of 1 gives [0, 0]."""
    labels = [1] * 10 + [0] * 10
    first, second = RNG.permutation(10), RNG.permutation(10)
    found = paired_difference(labels, [*(first + 50.0), *range(10)], [*(second + 50.0), *range(10)])
    assert (found.value, found.p_value) == (0.0, 1.0)
    assert found.low < -0.1 < 0.1 < found.high


@pytest.mark.parametrize(("n", "areas"), [(10, (0.99, 0.9)), (32, (0.75, 0.5)), (32, (0.9, 0.6))])
def test_the_interval_of_a_gain_holds_the_truth(n, areas):
    """The paired bootstrap holds the first in 87 of 100."""
    from scipy.stats import norm

    rng = np.random.default_rng(6)
    labels = np.array([1] * n + [0] * n)
    shifts = [math.sqrt(2) * norm.ppf(area) for area in areas]
    hits = []
    for _ in range(300):
        shared = rng.normal(size=2 * n)
        columns = [(shared + rng.normal(size=2 * n)) / math.sqrt(2) + shift * labels for shift in shifts]
        found = paired_difference(labels.tolist(), *(column.tolist() for column in columns))
        hits.append(found.low <= areas[0] - areas[1] <= found.high)
    assert np.mean(hits) >= 0.93


def test_the_paired_test_keeps_its_level_and_finds_a_difference():
    rng = np.random.default_rng(2)
    p_values = []
    for _ in range(400):
        shared = rng.normal(size=200) + LABELS
        p_values.append(p_value(*(classes(LABELS, shared + rng.normal(size=200)) for _ in range(2))))
    assert 0.02 <= np.mean(np.array(p_values) <= 0.05) <= 0.08
    shared = rng.normal(size=200)
    assert p_value(classes(LABELS, shared + 2 * LABELS), classes(LABELS, shared)) < 1e-6
    assert paired_difference(LABELS.tolist(), shared.tolist(), (3 * shared).tolist()).p_value == 1.0
