from __future__ import annotations

import math

import pytest

from detection.detectors import build
from detection.detectors.cdd import CDD, peak
from detection.method import Context, Text
from serving.model.spec import ModelSpec
from serving.records import Completion

TEXT = Text(id="a", text="Question: why?\nAnswer: so", prompt="Question: why?\nAnswer:")


def completion(text, finish_reason="length"):
    return Completion(text=text, finish_reason=finish_reason, prompt_tokens=1, output_tokens=1, complete=False)


def detector(**options):
    return CDD(Context(seed=3, options={"cdd": options}))


def test_the_peak_counts_distances_up_to_alpha_of_the_longest_answer():
    # 20 tokens: within 1. Distances 0, 1, 2, and 20 - 1 of a single token.
    greedy = list(range(20))
    sampled = [greedy, [99, *greedy[1:]], [99, 98, *greedy[2:]], greedy[:1]]
    assert peak(greedy, sampled, 0.05) == 0.5
    # An answer of 40 tokens allows 2 for all.
    assert peak(greedy, [*sampled[:3], list(range(100, 140))], 0.05) == 0.75
    # 19 tokens allow none but equals.
    assert peak(greedy[:19], [greedy[:19], greedy[1:19]], 0.05) == 0.5


def test_limits_of_the_threshold_survive_floating_point():
    # 0.29 * 100 is 28.999999999999996
    greedy = list(range(100))
    assert peak(greedy, [[*range(200, 229), *greedy[29:]]], 0.29) == 1.0
    assert peak(greedy, [[*range(200, 230), *greedy[30:]]], 0.29) == 0.0


def test_one_greedy_answer_and_fifty_samples_are_asked_for_together(drive):
    scores, asked = drive(detector().examine(TEXT), lambda ask: completion(" so it is"))
    assert scores == {"cdd": 1.0}
    (asks,) = asked
    assert {ask.prompt for ask in asks} == {TEXT.prompt}
    assert {ask.sampling.max_tokens for ask in asks} == {100}
    assert [ask.sampling.temperature for ask in asks] == [0.0] + [0.8] * 50
    assert len({ask.sampling.seed for ask in asks[1:]}) == 50
    again = next(detector().examine(TEXT))
    assert again == asks
    assert next(CDD(Context(seed=4)).examine(TEXT))[1:] != asks[1:]


def test_answers_are_compared_by_words_where_there_is_no_tokenizer(drive):
    answers = iter([" a b c", "a b c\n", " a b x", ""])
    scores, _ = drive(detector(samples=3).examine(TEXT), lambda ask: completion(next(answers)))
    assert scores["cdd"] == pytest.approx(1 / 3)


def test_only_the_first_words_count(drive):
    answers = iter(["a b c d", "a b x y"])
    scores, _ = drive(detector(samples=1, length=2).examine(TEXT), lambda ask: completion(next(answers)))
    assert scores["cdd"] == 1.0


def test_a_model_brings_its_own_tokens(drive, tiny_model):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    long = "the quick brown fox jumps over it"
    tokens = len(tokenizer(long, add_special_tokens=False)["input_ids"])
    context = Context(model=ModelSpec(path=str(tiny_model)), options={"cdd": {"samples": 2, "alpha": 1 / tokens}})
    answers = iter([long, f" {long}", f"{long} <|endoftext|>"])
    scores, _ = drive(CDD(context).examine(TEXT), lambda ask: completion(next(answers)))
    assert scores["cdd"] == 0.5  # a special token that is spelled out is several tokens of text


def test_without_a_prompt_the_first_half_of_the_text_is_answered(drive):
    _, asked = drive(detector().examine(Text(id=1, text="one two three four")), lambda ask: completion("x"))
    assert {ask.prompt for ask in asked[0]} == {"one two"}


@pytest.mark.parametrize("text", ["", "word", " \n"])
def test_a_text_without_a_beginning_asks_nothing(drive, text):
    scores, asked = drive(detector().examine(Text(id="a", text=text)), None)
    assert math.isnan(scores["cdd"])
    assert asked == []


@pytest.mark.parametrize("greedy", [completion("", "context"), completion("", "length")])
def test_no_room_and_reasoning_without_an_end_are_unscorable(drive, greedy):
    scores, _ = drive(detector().examine(TEXT), lambda ask: greedy)
    assert math.isnan(scores["cdd"])


def test_who_says_nothing_has_recited_nothing(drive):
    silence = Completion(text=" \n", finish_reason="stop", prompt_tokens=1, output_tokens=1)
    scores, _ = drive(detector().examine(TEXT), lambda ask: silence)
    assert scores["cdd"] == 0.0


def test_wrong_options():
    with pytest.raises(ValueError, match=r"cdd\.temperature"):
        build(["cdd"], Context(options={"cdd": {"temperature": 0.0}}))
