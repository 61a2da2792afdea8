from __future__ import annotations

import math

import pytest

from detection.detectors.guided import Guided
from detection.method import Context, Text
from evaluation.items import make_item
from serving.records import Completion

TEXT = Text(id="a", text="Alpha beta gamma delta one two three four")
NAMED = Context(benchmark="Some\nBench")


def completion(text, finish_reason="length"):
    return Completion(text=text, finish_reason=finish_reason, prompt_tokens=1, output_tokens=1, complete=False)


def test_the_difference_of_two_overlaps(drive):
    def answer(ask):
        return completion(" one two three four five six" if "Some Bench" in ask.prompt else " one, too")

    scores, asked = drive(Guided(NAMED).examine(TEXT), answer)
    # Guided: cut to four words, all right. General: 1 of 2 words right, 1 of 4 found.
    assert scores["guided"] == pytest.approx(1.0 - 2 * 0.5 * 0.25 / 0.75)
    ((named, general),) = asked
    for ask in (named, general):
        assert ask.prompt.endswith("\n\nAlpha beta gamma delta")
        assert ask.sampling.temperature == 0.0
        assert ask.sampling.max_tokens == len(" one two three four")
    assert "Some Bench dataset" in named.prompt
    assert "dataset" not in general.prompt


def test_an_item_names_its_benchmark_and_split(drive):
    item = make_item(benchmark="arc", split="test", subject="", question="?", choices=(), answer="x")
    _, asked = drive(Guided(Context()).examine(Text(id="a", text="one two", item=item)), lambda ask: completion(""))
    assert "test split of the arc dataset" in asked[0][0].prompt
    _, asked = drive(Guided(NAMED).examine(Text(id="a", text="one two", item=item)), lambda ask: completion(""))
    assert "test split of the Some Bench dataset" in asked[0][0].prompt


def test_the_same_answer_twice_or_none_is_no_evidence(drive):
    for reply in (" one two", ""):
        scores, _ = drive(Guided(NAMED).examine(TEXT), lambda ask, reply=reply: completion(reply))
        assert scores["guided"] == 0.0


@pytest.mark.parametrize(
    ("context", "text"),
    [(Context(), "one two three"), (NAMED, "one"), (NAMED, ""), (NAMED, "one ???")],
)
def test_what_is_unscorable_asks_nothing(drive, context, text):
    scores, asked = drive(Guided(context).examine(Text(id="a", text=text)), None)
    assert math.isnan(scores["guided"])
    assert asked == []


def test_no_room_is_unscorable(drive):
    scores, _ = drive(Guided(NAMED).examine(TEXT), lambda ask: completion("", "context"))
    assert math.isnan(scores["guided"])


def test_the_text_is_data():
    text = "{{ 7 * 7 }} {% raw %} one two three"
    named, _ = next(Guided(NAMED).examine(Text(id="a", text=text)))
    assert named.prompt.endswith("{{ 7 * 7 }}")
