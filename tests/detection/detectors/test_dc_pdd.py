from __future__ import annotations

import math
from pathlib import Path

import pytest

from detection.detectors.dc_pdd import DCPDD
from detection.method import Context, Part, Text
from detection.text.corpus_frequencies import Frequencies
from serving.model.spec import ModelSpec

CONTEXT = Context(corpus=Path("corpus"), model=ModelSpec(path="nowhere"))
# 6 tokens exist, 94 were counted: f = (counts + 1) / 100
FREQUENCIES = Frequencies(counts={1: 49, 2: 9, 3: 36}, total=94, vocabulary=6)


def detector(**options):
    made = DCPDD(Context(corpus=CONTEXT.corpus, model=CONTEXT.model, options={"dc_pdd": options}))
    made.__dict__["frequencies"] = FREQUENCIES  # instead of counting a corpus
    return made


def test_probabilities_are_weighed_by_rarity_and_capped():
    part = Part(suffix="", text="", logprobs=[math.log(0.001), math.log(0.9), math.log(0.002)], ids=[1, 2, 5])
    # 0.001 ln 2 = 0.000693; 0.9 ln 10 = 2.07, capped to 0.01; token 5 never occurs: 0.002 ln 100 = 0.009210
    assert detector().scores(part) == {"dc_pdd": pytest.approx((0.000693147 + 0.01 + 0.009210340) / 3)}
    assert detector(cap=5.0).scores(part) == {"dc_pdd": pytest.approx((0.000693147 + 2.0723266 + 0.009210340) / 3)}


def test_only_the_first_occurrence_of_a_token_counts():
    part = Part(suffix="", text="", logprobs=[math.log(0.002), math.log(0.001), math.log(0.5)], ids=[5, 1, 5])
    assert detector().scores(part) == {"dc_pdd": pytest.approx((0.009210340 + 0.000693147) / 2)}


def test_segments_have_their_own_first_occurrences(tokens, drive):
    table = tokens([math.log(0.5), math.log(0.002)], ["prompt", "answer"])
    table = type(table)(ids=(5, 5), logprobs=table.logprobs, segments=table.segments)
    scores, _ = drive(detector().examine(Text(id="a", text="ab", prompt="a")), lambda _: table)
    assert scores == {"dc_pdd": 0.01, "dc_pdd/prompt": 0.01, "dc_pdd/answer": pytest.approx(0.009210340)}


def test_no_tokens_no_score_and_an_impossible_token_adds_nothing():
    assert math.isnan(detector().scores(Part(suffix="", text="", logprobs=[]))["dc_pdd"])
    assert detector().scores(Part(suffix="", text="", logprobs=[-math.inf], ids=[1])) == {"dc_pdd": 0.0}
    assert math.isnan(detector().scores(Part(suffix="", text="", logprobs=[math.nan], ids=[1]))["dc_pdd"])


def test_a_probable_rare_token_speaks_for_a_member():
    known = Part(suffix="", text="", logprobs=[math.log(0.002)], ids=[5])
    common = Part(suffix="", text="", logprobs=[math.log(0.002)], ids=[1])
    unknown = Part(suffix="", text="", logprobs=[math.log(0.0001)], ids=[5])
    values = [detector().scores(part)["dc_pdd"] for part in (known, common, unknown)]
    assert values[0] == max(values)


def test_corpus_and_model_are_needed():
    with pytest.raises(ValueError, match="dc_pdd needs corpus: name one with --corpus"):
        DCPDD(Context(model=CONTEXT.model))
    with pytest.raises(ValueError, match=r"Context\(model="):
        DCPDD(Context(corpus=CONTEXT.corpus))
