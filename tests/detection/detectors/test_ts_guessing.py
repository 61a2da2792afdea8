from __future__ import annotations

import math

import pytest

from detection.detectors.ts_guessing import TSGuessing, guesses, maskable, plain
from detection.method import Context, Text
from evaluation.formats import neutral_text
from evaluation.items import make_item
from serving.records import Completion

CHOICES = ("the cold river", "Jupiter", "an old ship", "-5")


def item(choices=CHOICES, answer="B"):
    question = "What is big?\nOption A is [MASK]"
    return make_item(benchmark="arc", split="test", subject="", question=question, choices=choices, answer=answer)


def text(one=None):
    one = one or item()
    return Text(id=one.id, text=neutral_text(one), item=one)


def completion(said, complete=True, finish_reason="stop"):
    return Completion(text=said, finish_reason=finish_reason, prompt_tokens=1, output_tokens=1, complete=complete)


def masked_letter(ask):
    return ask.prompt[0].content.split("The text of option ")[1][0]


def test_every_wrong_option_is_masked_once():
    asks = next(TSGuessing(Context()).examine(text()))
    assert [masked_letter(ask) for ask in asks] == ["A", "C", "D"]
    first = asks[0].prompt[0].content
    assert "| A. [MASK]\n| B. Jupiter\n| C. an old ship\n| D. -5" in first
    assert "the cold river" not in first
    assert "arc benchmark" in first
    assert all(ask.sampling.temperature == 0.0 and ask.sampling.max_tokens == 64 for ask in asks)


def test_exact_matches_and_overlap(drive):
    replies = {"A": "A. The cold river.\nIt is cold", "C": "an older ship", "D": "5"}
    scores, _ = drive(TSGuessing(Context()).examine(text()), lambda ask: completion(replies[masked_letter(ask)]))
    assert scores["ts_guessing"] == pytest.approx(1 / 3)  # "5" is not "-5"
    # "an ... ship": 2 of 3 words both ways; digits only overlap as words
    assert scores["ts_guessing@rouge_l"] == pytest.approx((1 + 2 / 3 + 1) / 3)


def test_an_empty_reply_is_wrong_and_a_missing_one_unscorable(drive):
    scores, _ = drive(TSGuessing(Context()).examine(text()), lambda ask: completion(" \n"))
    assert scores == {"ts_guessing": 0.0, "ts_guessing@rouge_l": 0.0}
    for missing in (completion("", False, "context"), completion("", False, "length")):
        scores, _ = drive(TSGuessing(Context()).examine(text()), lambda ask, missing=missing: missing)
        assert all(math.isnan(value) for value in scores.values())
        assert list(scores) == ["ts_guessing", "ts_guessing@rouge_l"]


def test_a_cut_guess_counts_as_it_is_for_the_option_would_have_had_room(drive):
    long = "word " * 40 + "end"
    one = item(("x", "y", long), "A")
    asks = next(TSGuessing(Context()).examine(text(one)))
    assert [ask.sampling.max_tokens for ask in asks] == [64, len(long) + 16]
    cut = completion("word " * 50, False, "length")
    scores, _ = drive(TSGuessing(Context()).examine(text(one)), lambda ask: cut)
    assert scores["ts_guessing"] == 0.0


def test_options_that_the_others_give_away_are_not_masked():
    assert maskable(item(("Yes", "No", "perhaps so"), "A")) == [2]
    assert maskable(item(("same", "Same.", "other", "right"), "D")) == [2]
    # ROUGE-L of "x y z a" and "x y z b": 3 of 4 = 0.75; of "x y z a" and "x y c d": 0.5
    assert maskable(item(("x y z a", "x y z b", "x y c d", "right"), "D")) == [2]
    assert maskable(item(("", "two\nlines", "+", "right"), "D")) == [2]
    assert maskable(item((), "42")) == []
    assert maskable(item(("only",), "A")) == []


def test_of_many_wrong_options_three_are_drawn_by_seed_and_id():
    many = item(("red", "green", "blue", "black", "white", "brown"), "A")
    drawn = {
        tuple(masked_letter(ask) for ask in next(TSGuessing(Context(seed=seed)).examine(text(many))))
        for seed in range(20)
    }
    assert len(drawn) > 1
    assert all(len(set(letters)) == 3 and list(letters) == sorted(letters) and "A" not in letters for letters in drawn)
    one = TSGuessing(Context(options={"ts_guessing": {"masks": 1}}))
    assert next(one.examine(text(many))) == next(one.examine(text(many)))
    assert len(next(one.examine(text(many)))) == 1


def test_a_text_without_such_an_item_asks_nothing(drive):
    for other in (Text(id="a", text="one two"), text(item((), "42")), text(item(("yes", "no"), "A"))):
        scores, asked = drive(TSGuessing(Context()).examine(other), None)
        assert all(math.isnan(value) for value in scores.values())
        assert list(scores) == ["ts_guessing", "ts_guessing@rouge_l"]
        assert asked == []


def test_overlap_of_options_without_words_is_unknown(drive):
    scores, _ = drive(TSGuessing(Context()).examine(text(item(("+", "%"), "A"))), lambda ask: completion("%"))
    assert scores["ts_guessing"] == 1.0
    assert math.isnan(scores["ts_guessing@rouge_l"])


@pytest.mark.parametrize(
    ("reply", "spelled"),
    [
        ("Paris", "Paris"),
        ("\n| Paris\nand more", "Paris"),
        ("B. Paris", "Paris"),
        ("Option B: Paris", "Paris"),
        ("(b) Paris", "Paris"),
        ("B.Paris", "Paris"),
        ("A. Paris", "A. Paris"),
        ("Bern", "Bern"),
        ("", ""),
    ],
)
def test_a_guess_is_the_first_line_without_its_label(reply, spelled):
    assert guesses(reply, "B")[1] == spelled


def test_an_option_that_looks_like_a_label_can_be_guessed():
    assert "b. b. king" in map(plain, guesses("B. B. King", "B"))


def test_a_question_cannot_pass_for_the_prompt():
    for ask in next(TSGuessing(Context(benchmark="x\ny")).examine(text())):
        lines = ask.prompt[0].content.splitlines()
        assert not any(line.startswith("Option") for line in lines)
        assert "x y benchmark" in lines[0]
