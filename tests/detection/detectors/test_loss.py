from __future__ import annotations

import math

import pytest

from detection.detectors.loss import Loss
from detection.method import Context, Text


def test_loss_is_the_mean_log_probability(tokens, drive):
    scores, _ = drive(Loss(Context()).examine(Text(id="a", text="abc")), lambda _: tokens([-1.0, -2.0, -6.0]))
    assert scores == {"loss": -3.0}


def test_prompt_and_answer_have_their_own_scores_and_bos_has_none(tokens, drive):
    table = tokens([-9.0, -1.0, -2.0, -6.0], ["bos", "prompt", "answer", "answer"])
    scores, _ = drive(Loss(Context()).examine(Text(id="a", text="ab", prompt="a")), lambda _: table)
    assert scores == {"loss": -3.0, "loss/prompt": -1.0, "loss/answer": -4.0}


def test_a_text_without_predicted_tokens_is_unscorable(tokens, drive):
    scores, _ = drive(Loss(Context()).examine(Text(id="a", text="")), lambda _: tokens([]))
    assert math.isnan(scores["loss"])


def test_higher_means_more_likely_a_member(tokens, drive):
    known, _ = drive(Loss(Context()).examine(Text(id="a", text="a")), lambda _: tokens([-0.1, -0.2]))
    new, _ = drive(Loss(Context()).examine(Text(id="a", text="a")), lambda _: tokens([-3.0, -2.0]))
    assert known["loss"] == pytest.approx(-0.15)
    assert known["loss"] > new["loss"]
