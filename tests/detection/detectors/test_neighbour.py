from __future__ import annotations

import math

import pytest

from detection.detectors.neighbour import Neighbour
from detection.method import Context, Text, table

TEXT = Text(id="a", text="the quick brown fox jumps over the lazy dog", label=1)


def test_the_text_is_compared_with_the_mean_of_its_copies(tokens, drive):
    copies: list[str] = []

    def answer(demand):
        if demand.prompt == TEXT.text:
            return tokens([-1.0, -2.0])
        copies.append(demand.prompt)
        return tokens([-3.0] if len(copies) % 2 else [-5.0, -5.0])

    detector = Neighbour(Context(full_vocabulary=True, options={"neighbour": {"copies": 4}}))
    scores, asked = drive(detector.examine(TEXT), answer)
    assert scores == {"neighbour": -1.5 - -4.0}
    assert asked[0][0] == table(TEXT, True)
    assert [demand.moments for demand in asked[0][1:]] == [False] * 4


def test_by_default_there_are_25_copies_none_of_them_the_text(tokens, drive):
    _, asked = drive(Neighbour(Context()).examine(TEXT), lambda _: tokens([-1.0]))
    copies = [demand.prompt for demand in asked[0][1:]]
    assert len(copies) == 25 == Neighbour.passes - 1
    assert TEXT.text not in copies
    assert len(set(copies)) > 10


def test_copies_depend_on_seed_and_id_alone(tokens, drive):
    def asked(seed, identity):
        detector = Neighbour(Context(seed=seed))
        return drive(detector.examine(Text(id=identity, text=TEXT.text)), lambda _: tokens([-1.0]))[1]

    assert asked(0, "a") == asked(0, "a")
    assert asked(0, "a") != asked(1, "a")
    assert asked(0, "a") != asked(0, "b")


def test_segments_of_the_copies_are_compared_with_those_of_the_text(tokens, drive):
    text = Text(id="a", text="Which planet is red? Mars", prompt="Which planet is red?")

    def answer(demand):
        own = demand.prompt == text.prompt
        assert demand.continuation == " Mars"
        return tokens([-1.0, -3.0] if own else [-2.0, -8.0], ["prompt", "answer"])

    scores, _ = drive(Neighbour(Context()).examine(text), answer)
    assert scores == {"neighbour": 3.0, "neighbour/prompt": 1.0, "neighbour/answer": 5.0}


@pytest.mark.parametrize("string", ["", "one", " one ", "ha ha ha"])
def test_a_text_that_has_no_neighbour_is_unscorable(string, tokens, drive):
    scores, asked = drive(Neighbour(Context()).examine(Text(id="a", text=string)), lambda _: tokens([-1.0]))
    assert math.isnan(scores["neighbour"])
    assert len(asked[0]) == 1


def test_a_copy_without_a_score_spoils_the_comparison(tokens, drive):
    scores, _ = drive(Neighbour(Context()).examine(TEXT), lambda d: tokens([-1.0] if d.prompt == TEXT.text else []))
    assert math.isnan(scores["neighbour"])


def test_options_are_checked():
    with pytest.raises(ValueError, match=r"neighbour\.copies.*its options: copies, percent"):
        Neighbour(Context(options={"neighbour": {"copies": 0}}))
