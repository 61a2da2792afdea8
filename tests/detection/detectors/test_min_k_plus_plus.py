from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detection.detectors.min_k_plus_plus import MinKPlusPlus
from detection.method import Context, Part, Text

DETECTOR = MinKPlusPlus(Context(full_vocabulary=True))


def moments(p):
    mu = sum(x * math.log(x) for x in p)
    return mu, math.sqrt(sum(x * (math.log(x) - mu) ** 2 for x in p))


def test_moments_are_weighted_by_probability(tokens, drive):
    mu, sigma = moments([0.7, 0.2, 0.1])
    table = tokens([math.log(0.2)], means=[mu], stds=[sigma])
    scores, asked = drive(DETECTOR.examine(Text(id="a", text="ab")), lambda _: table)
    assert scores["min_k_plus_plus@20"] == pytest.approx(-1.1486, abs=5e-5)
    assert asked[0].moments


def test_without_spread_the_score_is_zero():
    for sigma in (0.0, 1e-7):
        part = Part(suffix="", text="", logprobs=[-1.0, -12.0], means=[-1.0, -1.0], stds=[sigma, sigma])
        assert set(DETECTOR.scores(part).values()) == {0.0}


@pytest.mark.parametrize("broken", ["logprobs", "means", "stds"])
@pytest.mark.parametrize("sigma", [1.0, 0.0])
def test_a_token_that_is_not_a_number_leaves_the_text_without_a_score(broken, sigma):
    """It had z = 0, above any ordinary token."""
    columns = {"logprobs": [-1.0, -2.0], "means": [-1.0, -1.5], "stds": [sigma, sigma]}
    columns[broken][1] = math.nan
    scores = DETECTOR.scores(Part(suffix="", text="", **columns))
    assert all(map(math.isnan, scores.values()))


def test_the_lowest_k_are_chosen_after_standardising():
    # z = (-2, -1, 0, 1, -3): the most improbable token (-9) is what its flat distribution leads one to expect
    part = Part(
        suffix="",
        text="",
        logprobs=[-3.0, -2.0, -9.0, 0.0, -4.0],
        means=[-1.0, -1.0, -9.0, -1.0, -1.0],
        stds=[1.0, 1.0, 4.0, 1.0, 1.0],
    )
    scores = DETECTOR.scores(part)
    assert scores["min_k_plus_plus@20"] == -3.0
    assert scores["min_k_plus_plus@40"] == -2.5
    assert scores["min_k_plus_plus@60"] == -2.0


def test_a_table_without_moments_is_refused(tokens, drive):
    with pytest.raises(ValueError, match="without moments"):
        drive(DETECTOR.examine(Text(id="a", text="ab")), lambda _: tokens([-1.0]))


def test_no_tokens_no_score(tokens, drive):
    scores, _ = drive(DETECTOR.examine(Text(id="a", text="")), lambda _: tokens([]))
    assert all(map(math.isnan, scores.values()))


@given(st.lists(st.floats(-20, 0), min_size=1, max_size=30), st.floats(-5, 5), st.floats(0.1, 10))
def test_shifting_and_stretching_every_distribution_changes_nothing(logprobs, shift, factor):
    plain = Part(suffix="", text="", logprobs=logprobs, means=[-3.0] * len(logprobs), stds=[2.0] * len(logprobs))
    moved = Part(
        suffix="",
        text="",
        logprobs=[factor * value + shift for value in logprobs],
        means=[factor * -3.0 + shift] * len(logprobs),
        stds=[factor * 2.0] * len(logprobs),
    )
    assert DETECTOR.scores(moved) == pytest.approx(DETECTOR.scores(plain), abs=1e-9)
