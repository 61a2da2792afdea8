from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detection.statistics import bootstrap
from detection.statistics.bootstrap import auc_interval, draw_counts, paired_difference, resample
from detection.statistics.metrics import auc, tpr_at_fpr

RNG = np.random.default_rng(3)
LABELS = np.array([1] * 100 + [0] * 100)


def test_counts_are_resamples_of_each_group():
    (first, second), *rest = draw_counts([5, 3], seed=1, resamples=50)
    assert not rest
    assert first.shape == (50, 5)
    assert second.shape == (50, 3)
    assert (first.sum(axis=1) == 5).all()
    assert (second.sum(axis=1) == 3).all()
    assert first.min() >= 0


def test_block_size_changes_no_number(monkeypatch):
    members, others = RNG.normal(size=30), RNG.normal(size=20)
    whole = resample(members, others, seed=5, resamples=100, levels=(0.05,))
    monkeypatch.setattr(bootstrap, "_CELLS", 7 * 50)
    blocks = resample(members, others, seed=5, resamples=100, levels=(0.05,))
    assert (whole.auc == blocks.auc).all()
    assert (whole.tpr == blocks.tpr).all()


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_each_resample_equals_the_statistic_of_the_texts_drawn(members, others):
    members, others = np.array(members, dtype=float), np.array(others, dtype=float)
    fast = resample(members, others, seed=9, resamples=4, levels=(0.0, 0.3))
    (drawn_members, drawn_others), *_ = draw_counts([len(members), len(others)], seed=9, resamples=4)
    for b in range(4):
        scores = np.concatenate([np.repeat(members, drawn_members[b]), np.repeat(others, drawn_others[b])])
        labels = [1] * len(members) + [0] * len(others)
        assert fast.auc[b] == pytest.approx(auc(labels, scores))
        assert fast.tpr[b] == pytest.approx([tpr_at_fpr(labels, scores, 0.0), tpr_at_fpr(labels, scores, 0.3)])


def test_the_interval_lies_around_the_value_and_not_its_mirror():
    scores = RNG.normal(size=200) + 0.9 * LABELS
    value = auc(LABELS, scores)
    low, high = auc_interval(LABELS, scores, seed=0)
    assert 0.7 < value < 0.8
    assert low < value < high
    assert low > 0.6
    width = high - low
    assert width == pytest.approx(2 * 1.96 * math.sqrt(value * (1 - value) / 100 * 1.0), rel=0.4)


def test_a_seed_gives_the_same_interval_and_another_seed_another():
    scores = RNG.normal(size=200)
    assert auc_interval(LABELS, scores, seed=4) == auc_interval(LABELS, scores, seed=4)
    assert auc_interval(LABELS, scores, seed=4) != auc_interval(LABELS, scores, seed=5)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    labels = np.array([1] * 60 + [0] * 60)
    noise = np.random.default_rng(11).normal(size=(200, 120))
    hits = [low <= 0.5 <= high for low, high in (auc_interval(labels, row, seed=1, resamples=300) for row in noise)]
    assert 0.89 <= np.mean(hits) <= 0.99


def test_perfect_separation_and_one_class():
    assert auc_interval([1, 1, 0, 0], [3, 4, 1, 2], seed=0) == (1.0, 1.0)
    assert all(map(math.isnan, auc_interval([1, 1], [3, 4], seed=0)))


def test_a_paired_difference_is_tighter_than_two_intervals():
    shared = RNG.normal(size=200) * 3
    first = shared + 1.5 * LABELS
    second = shared + 1.0 * LABELS
    found = paired_difference(LABELS.tolist(), first.tolist(), second.tolist(), seed=2)
    assert found.value == pytest.approx(auc(LABELS, first) - auc(LABELS, second))
    assert 0 < found.low < found.value < found.high
    one = auc_interval(LABELS, first, seed=2)
    assert found.high - found.low < (one.high - one.low) / 2


def test_a_difference_of_a_score_with_itself_is_nothing():
    scores = RNG.normal(size=200).tolist()
    found = paired_difference(LABELS.tolist(), scores, scores, seed=2)
    assert (found.value, found.low, found.high, found.n) == (0.0, 0.0, 0.0, 200)


def test_only_labelled_texts_that_both_score_are_compared():
    found = paired_difference([1, 0, 1, None, 0], [2.0, 1.0, None, 5.0, 3.0], [1.0, 2.0, 9.0, 5.0, math.nan], seed=0)
    assert (found.value, found.n) == (1.0, 2)
    alone = paired_difference([1, 1], [1.0, 2.0], [1.0, 2.0], seed=0)
    assert math.isnan(alone.value)
    assert "no non-member" in alone.reason
    with pytest.raises(ValueError, match="lengths differ"):
        paired_difference([1, 0], [1.0], [1.0, 2.0], seed=0)
