from __future__ import annotations

import math

import pytest

from detection.detectors.con_recall import ConReCall
from detection.method import Context, Text

TEXT = Text(id="a", text="Mars is red.")


def context(**options):
    return Context(
        non_members=tuple(f"Unknown {i}." for i in range(12)),
        members=tuple(f"Known {i}." for i in range(12)),
        options={"con_recall": options},
    )


def by_prefix(tokens, alone, after_non_members, after_members):
    def answer(demand):
        if not demand.answer_only:
            return tokens([alone])
        return tokens([after_non_members if "Unknown" in demand.prompt else after_members], ["answer"])

    return answer


@pytest.mark.parametrize(("gamma", "score"), [(0.5, 2.0), (0.0, 2.5), (1.0, 1.5)])
def test_the_contrast_of_both_prefixes_over_the_text_alone(gamma, score, tokens, drive):
    scores, asked = drive(ConReCall(context(gamma=gamma)).examine(TEXT), by_prefix(tokens, -2.0, -5.0, -2.0))
    assert scores == {"con_recall": score}
    assert len(asked[1]) == 2 == ConReCall.passes - 1


def test_members_score_higher(tokens, drive):
    known, _ = drive(ConReCall(context()).examine(TEXT), by_prefix(tokens, -1.0, -1.5, -0.9))
    new, _ = drive(ConReCall(context()).examine(TEXT), by_prefix(tokens, -3.0, -3.1, -3.1))
    assert known["con_recall"] > new["con_recall"]


def test_segments(tokens, drive):
    text = Text(id="a", text="Which? Mars", prompt="Which?")

    def answer(demand):
        if not demand.answer_only:
            return tokens([-1.0, -2.0], ["prompt", "answer"])
        scale = 3.0 if "Unknown" in demand.prompt else 2.0
        both = [-1.0 * scale, -2.0 * scale]
        return tokens(both[-1:] if demand.continuation == " Mars" else both, None)

    scores, _ = drive(ConReCall(context()).examine(text), answer)
    assert scores == {"con_recall": 2.0, "con_recall/prompt": 2.0, "con_recall/answer": 2.0}


def test_both_prefixes_have_equally_many_shots(tokens, drive):
    def answer(demand):
        too_long = demand.prompt.count("Unknown") > 6  # of the non-members only
        return tokens([-1.0], ["answer"], dropped=int(too_long))

    scores, asked = drive(ConReCall(context()).examine(TEXT), answer)
    assert [demand.prompt.count("nown ") for demand in asked[-1]] == [6, 6]
    assert scores == {"con_recall": 0.5}


def test_a_member_under_examination_is_never_its_own_prefix(tokens, drive):
    _, asked = drive(ConReCall(context()).examine(Text(id="a", text="Known 3.")), lambda _: tokens([-1.0]))
    assert all("Known 3." not in demand.prompt for demand in asked[1])


def test_unscorable_without_tokens(tokens, drive):
    scores, _ = drive(ConReCall(context()).examine(Text(id="a", text="")), lambda _: tokens([]))
    assert math.isnan(scores["con_recall"])


def test_members_are_needed_too():
    with pytest.raises(ValueError, match="con_recall needs members: name a file"):
        ConReCall(Context(non_members=("a",)))
    with pytest.raises(ValueError, match="con_recall: its prefix takes 2 members, and 1 different"):
        ConReCall(Context(non_members=("a", "b"), members=("c",), options={"con_recall": {"shots": 2}}))
