from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detection.statistics import bootstrap
from detection.statistics.bootstrap import draw_counts, paired_difference, resample
from detection.statistics.metrics import auc, classes
from detection.statistics.roc_intervals import auc_interval

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
    whole = resample(members, others, seed=5, resamples=100)
    monkeypatch.setattr(bootstrap, "_CELLS", 7 * 50)
    blocks = resample(members, others, seed=5, resamples=100)
    assert (whole == blocks).all()


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_each_resample_equals_the_statistic_of_the_texts_drawn(members, others):
    members, others = np.array(members, dtype=float), np.array(others, dtype=float)
    fast = resample(members, others, seed=9, resamples=4)
    (drawn_members, drawn_others), *_ = draw_counts([len(members), len(others)], seed=9, resamples=4)
    for b in range(4):
        scores = np.concatenate([np.repeat(members, drawn_members[b]), np.repeat(others, drawn_others[b])])
        labels = [1] * len(members) + [0] * len(others)
        assert fast[b] == pytest.approx(auc(labels, scores))


def test_a_column_is_resampled_once_however_many_it_meets(monkeypatch):
    first, second, third = (RNG.normal(size=200).tolist() for _ in range(3))
    drawn = []
    monkeypatch.setattr(bootstrap, "resample", lambda *a, **k: drawn.append(1) or resample(*a, **k))
    bootstrap._resampled.cache_clear()
    for other in (second, third, second):
        paired_difference(LABELS.tolist(), first, other, seed=2)
    assert len(drawn) == 3


def test_a_paired_difference_is_tighter_than_two_intervals():
    shared = RNG.normal(size=200) * 3
    first = shared + 1.5 * LABELS
    second = shared + 1.0 * LABELS
    found = paired_difference(LABELS.tolist(), first.tolist(), second.tolist(), seed=2)
    assert found.value == pytest.approx(auc(LABELS, first) - auc(LABELS, second))
    assert 0 < found.low < found.value < found.high
    one = auc_interval(classes(LABELS, first))
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
