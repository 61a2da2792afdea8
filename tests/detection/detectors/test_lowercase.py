from __future__ import annotations

import math

import pytest

from detection.detectors.lowercase import Lowercase
from detection.method import Context, Text, table


def test_the_ratio_of_two_means_each_over_its_own_tokens(tokens, drive):
    tables = {"Mars": tokens([-1.0, -3.0]), "mars": tokens([-2.0, -4.0, -9.0])}
    scores, asked = drive(Lowercase(Context()).examine(Text(id="a", text="Mars")), lambda d: tables[d.prompt])
    assert scores == {"lowercase": pytest.approx(5.0 / 2.0)}
    assert [demand.prompt for demand in asked[0]] == ["Mars", "mars"]


def test_segments_are_lower_cased_apart_and_the_plain_table_is_the_shared_one(tokens, drive):
    text = Text(id="a", text="Why ΣΑΣ? Mars", prompt="Why ΣΑΣ")
    tables = {
        "? Mars": tokens([-1.0, -2.0, -6.0], ["prompt", "answer", "answer"]),
        "? mars": tokens([-2.0, -6.0], ["prompt", "answer"]),
    }
    detector = Lowercase(Context(full_vocabulary=True))
    scores, asked = drive(detector.examine(text), lambda d: tables[d.continuation])
    assert scores == {"lowercase": 4.0 / 3.0, "lowercase/prompt": 2.0, "lowercase/answer": 1.5}
    assert asked[0][0] == table(text, True)
    assert (asked[0][1].prompt, asked[0][1].moments) == ("why σας", False)


def test_a_text_without_capitals_is_asked_once_and_scores_one(tokens, drive):
    detector = Lowercase(Context(full_vocabulary=True))
    scores, asked = drive(detector.examine(Text(id="a", text="mars")), lambda _: tokens([-1.0, -3.0]))
    assert scores == {"lowercase": 1.0}
    assert asked[0][0] == asked[0][1]


@pytest.mark.parametrize("logprobs", [[], [0.0, 0.0]])
def test_no_tokens_or_nothing_but_certain_ones_are_unscorable(logprobs, tokens, drive):
    scores, _ = drive(Lowercase(Context()).examine(Text(id="a", text="A")), lambda _: tokens(logprobs))
    assert math.isnan(scores["lowercase"])


def test_who_remembers_the_capitals_scores_higher(tokens, drive):
    def score(upper, lower):
        answer = {"A b": tokens(upper), "a b": tokens(lower)}
        return drive(Lowercase(Context()).examine(Text(id="a", text="A b")), lambda d: answer[d.prompt])[0]["lowercase"]

    assert score([-0.5, -0.5], [-2.0, -2.0]) > score([-2.0, -2.0], [-2.5, -2.5])
