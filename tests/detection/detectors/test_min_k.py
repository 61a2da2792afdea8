from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detection.detectors.min_k import PERCENTS, MinK
from detection.method import Context, Part, Text

LOGPROBS = st.lists(st.floats(-50.0, 0.0), min_size=1, max_size=200)


def scores_of(logprobs):
    return MinK(Context()).scores(Part(suffix="", text="", logprobs=logprobs))


def test_four_tokens_and_twenty_percent_are_one_token(tokens, drive):
    table = tokens([-1.0, -7.0, -3.0, -2.0])
    scores, _ = drive(MinK(Context()).examine(Text(id="a", text="abcd")), lambda _: table)
    assert scores == {
        "min_k@5": -7.0,
        "min_k@10": -7.0,
        "min_k@20": -7.0,
        "min_k@30": -5.0,
        "min_k@40": -5.0,
        "min_k@50": -5.0,
        "min_k@60": -4.0,
    }


def test_a_text_of_no_token_is_unscorable_under_every_k():
    assert list(map(math.isnan, scores_of([]).values())) == [True] * len(PERCENTS)


@given(LOGPROBS)
def test_equals_an_independent_reference(logprobs):
    ascending = np.sort(np.array(logprobs, dtype=np.float64))
    for k in PERCENTS:
        count = next(c for c in range(1, len(logprobs) + 1) if 100 * c >= k * len(logprobs))
        assert scores_of(logprobs)[f"min_k@{k}"] == pytest.approx(ascending[:count].mean(), rel=1e-12, abs=1e-12)


@given(LOGPROBS, st.randoms())
def test_order_of_tokens_does_not_matter_and_more_tokens_never_lower_it(logprobs, random):
    shuffled = list(logprobs)
    random.shuffle(shuffled)
    scores = list(scores_of(logprobs).values())
    assert scores == list(scores_of(shuffled).values())
    assert all(a <= b + 1e-9 for a, b in pairwise(scores))
    assert scores[-1] <= sum(logprobs) / len(logprobs) + 1e-9
