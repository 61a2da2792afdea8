from __future__ import annotations

import math

import pytest

from detection.audit import audit_dialogue
from detection.detectors import build
from detection.detectors.recall import ReCaLL
from detection.method import Context, Text, table
from serving.records import Score

TEXT = Text(id="a", text="Mars is red.")


def context(n=12, **more):
    return Context(non_members=tuple(f"Known {i}." for i in range(n)), **more)


def shots(demand):
    return demand.prompt.split("\n\n")[:-1]


def test_the_ratio_of_the_two_means(tokens, drive):
    def answer(demand):
        return tokens([-2.0, -4.0, -6.0], ["answer"] * 3) if demand.answer_only else tokens([-1.0, -3.0])

    scores, asked = drive(ReCaLL(context()).examine(TEXT), answer)
    assert scores == {"recall": 4.0 / 2.0}
    assert asked[0] == table(TEXT, False)
    (conditional,) = asked[1]
    assert conditional == Score(
        role="candidate", prompt=conditional.prompt, continuation="Mars is red.", answer_only=True
    )
    assert conditional.prompt.endswith(".\n\n")
    assert sorted(shots(conditional)) == sorted(f"Known {i}." for i in range(12))


def test_a_member_loses_more_by_a_foreign_prefix_and_scores_higher(tokens, drive):
    def score(alone, after):
        answer = {False: tokens([alone]), True: tokens([after], ["answer"])}
        return drive(ReCaLL(context()).examine(TEXT), lambda d: answer[d.answer_only])[0]["recall"]

    assert score(-1.0, -1.5) > score(-3.0, -3.1) > 1.0


def test_all_texts_have_the_same_prefix_drawn_by_the_seed(tokens, drive):
    def prefix(seed, text):
        detector = ReCaLL(context(30, seed=seed))
        asked = drive(detector.examine(text), lambda d: tokens([-1.0], ["answer"]))[1]
        return shots(asked[1][0])

    other = Text(id="b", text="Venus is hot.")
    assert prefix(0, TEXT) == prefix(0, other)
    assert prefix(0, TEXT) != prefix(1, TEXT)
    assert len(prefix(0, TEXT)) == 12


def test_a_text_is_never_its_own_prefix(tokens, drive):
    def prefix(text, **options):
        detector = ReCaLL(context(4, options={"recall": {"shots": 3, **options}}))
        asked = drive(detector.examine(Text(id="a", text=text)), lambda d: tokens([-1.0], ["answer"]))[1]
        return shots(asked[1][0])

    usual = prefix("Mars is red.")
    (last,) = {f"Known {i}." for i in range(4)} - set(usual)
    assert prefix(f" {usual[1]}\n") == [usual[0], usual[2], last]
    assert prefix(last) == usual
    detector = ReCaLL(context(3, options={"recall": {"shots": 3}}))  # no next one: a shot fewer
    asked = drive(detector.examine(Text(id="a", text="Known 1.")), lambda d: tokens([-1.0], ["answer"]))[1]
    assert sorted(shots(asked[1][0])) == ["Known 0.", "Known 2."]


def test_segments_come_from_the_same_tokens_asked_for_with_another_boundary(tokens, drive):
    text = Text(id="a", text="Which? Mars", prompt="Which?")

    def answer(demand):
        if not demand.answer_only:
            return tokens([-1.0, -2.0, -3.0], ["prompt", "prompt", "answer"])
        if demand.continuation == " Mars":
            return tokens([-6.0], ["answer"])
        return tokens([-3.0, -3.0, -6.0], ["answer"] * 3)

    scores, asked = drive(ReCaLL(context()).examine(text), answer)
    assert scores == {"recall": 2.0, "recall/prompt": 2.0, "recall/answer": 2.0}
    whole, part = asked[1]
    assert whole.prompt + whole.continuation == part.prompt + part.continuation
    assert part.prompt == whole.prompt + "Which?"


def test_where_the_context_is_too_short_half_as_many_shots_are_tried(tokens, drive):
    def answer(demand):
        cut = demand.answer_only and len(shots(demand)) > 3
        return tokens([-1.0 if cut else -2.0], ["answer"], dropped=5 if cut else 0)

    scores, asked = drive(ReCaLL(context()).examine(TEXT), answer)
    assert [len(shots(step[0])) for step in asked[1:]] == [12, 6, 3]
    assert shots(asked[3][0]) == shots(asked[1][0])[:3]
    assert scores == {"recall": 1.0}


def test_where_not_one_shot_fits_the_text_is_unscorable(tokens, drive):
    scores, asked = drive(ReCaLL(context()).examine(TEXT), lambda d: tokens([-1.0], dropped=int(d.answer_only)))
    assert math.isnan(scores["recall"])
    assert [len(shots(step[0])) for step in asked[1:]] == [12, 6, 3, 1]


@pytest.mark.parametrize(("logprobs", "dropped"), [([], 0), ([-1.0], 2)])
def test_a_text_without_tokens_or_longer_than_the_context_is_not_asked_about(logprobs, dropped, tokens, drive):
    scores, asked = drive(ReCaLL(context()).examine(Text(id="a", text="")), lambda _: tokens(logprobs, dropped=dropped))
    assert math.isnan(scores["recall"])
    assert len(asked) == 1


def test_a_certain_text_has_no_ratio(tokens, drive):
    scores, _ = drive(ReCaLL(context()).examine(TEXT), lambda _: tokens([0.0], ["answer"]))
    assert math.isnan(scores["recall"])


def test_too_few_non_members_are_an_error_that_says_how_to_mend_it():
    with pytest.raises(ValueError, match="recall needs non members: name a file"):
        ReCaLL(Context())
    twice = Context(non_members=("One.", "One. ", " ", "Two."))
    with pytest.raises(ValueError, match=r"takes 12 non-members, and 2 different .* give 10 more, or .* shots .* to 2"):
        ReCaLL(twice)


def test_con_recall_asks_for_the_same_prefix(tokens, drive):
    members = tuple(f"Member {i}." for i in range(12))
    chosen = build(["recall", "con_recall"], context(20, members=members))
    record, asked = drive(audit_dialogue(TEXT, chosen), lambda d: tokens([-2.0], ["answer"]))
    assert [len(step) for step in asked] == [1, 2]
    assert record["scores"] == {"recall": 1.0, "con_recall": 0.5}
