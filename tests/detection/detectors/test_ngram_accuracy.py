from __future__ import annotations

import math
from itertools import pairwise

import pytest

from detection.detectors import build
from detection.detectors.ngram_accuracy import NgramAccuracy, ngram_hits
from detection.method import Context, Text
from serving.records import TokenScores

TEXT = Text(id="a", text="It is often small because the whole area is cold.")


def tokens(greedy, segments=None):
    n = len(segments or greedy)
    return TokenScores(
        ids=tuple(range(n)), logprobs=(-1.0,) * n, segments=tuple(segments or ["prompt"] * n), greedy=tuple(greedy)
    )


def test_all_five_tokens_must_be_greedy():
    # 26 entries: places 1, 6, 11, 16, 21. One miss at entry 8 spoils the place 6 only; entry 0 is in no place.
    greedy = [False, *[True] * 25]
    assert ngram_hits(greedy, 5, 5) == 5
    greedy[8] = False
    assert ngram_hits(greedy, 5, 5) == 4


def test_places_are_evenly_spaced_and_rounded_down():
    # 20 entries: 1 + i * 14 / 4 = 1, 4.5, 8, 11.5, 15
    for wrong, spoiled in ((0, 0), (3, 1), (4, 2), (8, 2), (19, 1)):
        greedy = [i != wrong for i in range(20)]
        assert ngram_hits(greedy, 5, 5) == 5 - spoiled, wrong


def test_it_is_what_generating_would_say():
    # A model that goes on with the following number, unless it stands at 6: it says 0 there.
    text = [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 9, 0]

    def follows(last):
        return 0 if last == 6 else last + 1

    def generated(start):
        said = text[:start]
        for _ in range(5):
            said.append(follows(said[-1]))
        return said[start:] == text[start : start + 5]

    places = [2 + i * (len(text) - 5 - 2) // 4 for i in range(5)]
    expected = sum(generated(place) for place in places)
    greedy = [follows(before) == token for before, token in pairwise(text)]
    assert ngram_hits(greedy, 5, 5) == expected == 4


def test_a_text_of_six_tokens_is_too_short_and_of_seven_is_one_place():
    assert ngram_hits([True] * 5, 5, 5) is None
    assert ngram_hits([True] * 6, 5, 5) == 5
    assert ngram_hits([True] * 5 + [False], 5, 5) == 0
    assert ngram_hits([], 5, 5) is None
    assert ngram_hits([True, True, False], 1, 1) == 1


def test_the_original_against_its_rewrites(drive):
    def answer(score):
        if score.prompt == TEXT.text:
            return tokens([True] * 26)
        return tokens([False, *[True] * 25] if rewrites.index(score.prompt) == 0 else [False] * 26)

    rewrites = [score.prompt for score in next(NgramAccuracy(Context()).examine(TEXT))[1:]]
    scores, asked = drive(NgramAccuracy(Context()).examine(TEXT), answer)
    assert scores["ngram_accuracy"] == pytest.approx(1.0 - 1 / 3)
    assert len(asked[0]) == NgramAccuracy.passes == len({*rewrites, TEXT.text})


def test_equal_scores_are_equal_floats(drive):
    # 1 of 5 places everywhere: exactly 0, for ranks tell -3e-17 from it
    table = tokens([True] * 6 + [False] * 20)
    scores, _ = drive(NgramAccuracy(Context()).examine(TEXT), lambda score: table)
    assert scores["ngram_accuracy"] == 0.0


def test_the_text_is_scored_as_for_all_other_detectors():
    text = Text(id="a", text="It is often small.", prompt="It is often")
    detectors = build(["min_k_plus_plus", "ngram_accuracy"])
    shared = next(detectors[0].examine(text))
    assert next(detectors[1].examine(text))[0] == shared


def test_format_tokens_are_in_no_place(drive):
    table = tokens([False] * 3 + [True] * 6, ["bos", "template", "template", *["prompt"] * 4, "answer", "answer"])
    scores, _ = drive(NgramAccuracy(Context()).examine(TEXT), lambda score: table)
    assert scores["ngram_accuracy"] == 0.0  # 1 - 1
    table = tokens([False] * 3 + [True] * 5, ["bos", "template", "template", *["prompt"] * 5])
    scores, _ = drive(NgramAccuracy(Context()).examine(TEXT), lambda score: table)
    assert math.isnan(scores["ngram_accuracy"])


def test_an_engine_that_knows_no_greedy_tokens_is_unscorable(drive):
    scores, _ = drive(NgramAccuracy(Context()).examine(TEXT), lambda score: tokens((), ["prompt"] * 20))
    assert math.isnan(scores["ngram_accuracy"])


def test_what_has_no_rewrite_asks_nothing(drive):
    scores, asked = drive(NgramAccuracy(Context()).examine(Text(id="a", text="日本語")), None)
    assert math.isnan(scores["ngram_accuracy"])
    assert asked == []


def test_requests_depend_on_seed_and_id_only():
    asked = next(NgramAccuracy(Context(seed=1)).examine(TEXT))
    assert next(NgramAccuracy(Context(seed=1)).examine(TEXT)) == asked
    assert next(NgramAccuracy(Context(seed=2)).examine(TEXT)) != asked
