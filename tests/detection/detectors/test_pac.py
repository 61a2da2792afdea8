from __future__ import annotations

import math

import pytest

from detection.detectors.pac import PAC, polarised_distance
from detection.method import Context, Text

TEXT = Text(id="a", text="the quick brown fox")


def test_distance_between_the_top_5_and_the_bottom_30_percent():
    # 20 tokens -1, -2, ... -20: the top 1 is -1, the bottom 6 are -15 to -20 with mean -17.5
    assert polarised_distance([-float(i) for i in range(1, 21)]) == 16.5


def test_counts_are_rounded_up_and_at_least_one():
    assert polarised_distance([-1.0, -4.0]) == 3.0
    assert polarised_distance([-2.0]) == 0.0
    # 21 tokens: 2 of the top (1.05), 7 of the bottom (6.3)
    assert polarised_distance([-float(i) for i in range(21)]) == -0.5 + 17.0
    assert math.isnan(polarised_distance([]))
    assert math.isnan(polarised_distance([-1.0, math.nan]))


def test_copies_minus_text_so_that_a_text_spoiled_by_swaps_scores_high(tokens, drive):
    def score(own, swapped):
        def answer(demand):
            return tokens(own if demand.prompt == TEXT.text else swapped)

        return drive(PAC(Context()).examine(TEXT), answer)

    known, asked = score([-0.1, -0.3], [-0.1, -8.1])
    assert known == {"pac": pytest.approx(8.0 - 0.2)}
    assert len(asked[0]) == 6 == PAC.passes
    assert known["pac"] > score([-1.0, -7.0], [-1.0, -8.0])[0]["pac"] == pytest.approx(1.0)


def test_the_mean_is_over_the_copies_distances(tokens, drive):
    seen: list[str] = []

    def answer(demand):
        if demand.prompt == TEXT.text:
            return tokens([-1.0, -2.0])
        seen.append(demand.prompt)
        return tokens([-1.0, -1.0 - len(seen)])

    scores, _ = drive(PAC(Context(options={"pac": {"copies": 3}})).examine(TEXT), answer)
    assert scores == {"pac": pytest.approx((1 + 2 + 3) / 3 - 1)}


def test_segments_are_those_of_the_copies(tokens, drive):
    text = Text(id="a", text="Which planet is red? Mars", prompt="Which planet is red?")

    def answer(demand):
        own = demand.prompt == text.prompt
        return tokens([-1.0, -2.0 if own else -4.0, -1.0], ["prompt", "prompt", "answer"])

    scores, _ = drive(PAC(Context()).examine(text), answer)
    assert scores == {"pac": 2.0, "pac/prompt": 2.0, "pac/answer": 0.0}


@pytest.mark.parametrize("string", ["", "one", "one one"])
def test_a_text_whose_words_cannot_be_swapped_is_unscorable(string, tokens, drive):
    scores, _ = drive(PAC(Context()).examine(Text(id="a", text=string)), lambda _: tokens([-1.0, -2.0]))
    assert math.isnan(scores["pac"])
