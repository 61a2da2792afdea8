"""Values worked by hand; e^-0.2 = .8187308, e^-0.4 = .6703200, e^-0.6 = .5488116, e^-0.8 = .4493290, sum 3.4871914."""

from __future__ import annotations

import pytest

from evaluation.kieval.scores import ARMS, ablations, paper, released

W = (1.0, 0.8187308, 0.6703200, 0.5488116, 0.4493290)


def test_equal_scores() -> None:
    assert released([3] * 5) == pytest.approx(0.70)
    assert released([2] * 5) == pytest.approx(0.30)
    assert released([1] * 5) == pytest.approx(0.10)
    assert released([4] * 5) == pytest.approx(1.00)
    assert paper([3] * 5, rounds=5, stopped_early=False) == pytest.approx(2 / 3)
    assert paper([1] * 5, rounds=5, stopped_early=False) == 0.0
    assert paper([4] * 5, rounds=5, stopped_early=False) == pytest.approx(1.0)


def test_mixed_scores_with_an_early_stop() -> None:
    # paper: (1 + .8187308 / 3) / 3.4871914; released: (1 + .8187308 x .3) / 1.8187308
    assert paper([4, 2], rounds=5, stopped_early=True) == pytest.approx(0.365024, abs=1e-6)
    assert released([4, 2]) == pytest.approx(0.684884, abs=1e-6)


def test_a_stop_in_the_last_round_costs_nothing() -> None:
    scores = [4, 3, 2, 2, 1]
    assert paper(scores, rounds=5, stopped_early=True) == paper(scores, rounds=5, stopped_early=False)


def test_rounds_that_a_full_context_prevented_are_left_out() -> None:
    assert paper([4, 4], rounds=5, stopped_early=False) == pytest.approx(1.0)


def test_a_missing_verdict_keeps_its_place() -> None:
    # (1 + .67032 / 3) / (1 + .67032), then with released values and weights
    assert paper([4, None, 2], rounds=3, stopped_early=False) == pytest.approx(
        (1 + 0.5134171 / 3) / (1 + 0.5134171), abs=1e-6
    )
    assert released([4, None, 2]) == pytest.approx((1 + 0.67032 * 0.3) / 1.67032, abs=1e-6)
    assert released([4, None, 2]) != released([4, 2])


def test_single_round_and_none() -> None:
    assert released([3]) == pytest.approx(0.7)
    assert paper([3], rounds=1, stopped_early=False) == pytest.approx(2 / 3)
    assert paper([3], rounds=5, stopped_early=True) == pytest.approx(2 / 3 / sum(W))
    for scores in ([], [None], [None, None]):
        assert released(scores) is None
        assert paper(scores, rounds=5, stopped_early=True) is None


def test_more_scores_than_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"3 scores.*2 rounds"):
        paper([1, 2, 3], rounds=2, stopped_early=False)


def test_ablations() -> None:
    arms = ablations([4, 2, 4, 4, 4], rounds=5, stop_round=1)
    assert arms["decay+stop"] == pytest.approx(0.365024, abs=1e-6)
    assert arms["decay"] == pytest.approx((sum(W) - W[1] * 2 / 3) / sum(W), abs=1e-6)
    assert arms["constant+stop"] == pytest.approx((1 + 1 / 3) / 5)
    assert arms["constant"] == pytest.approx((4 + 1 / 3) / 5)
    never = ablations([4, 2, 4, 4, 4], rounds=5, stop_round=None)
    assert never["decay+stop"] == never["decay"]


def test_what_an_early_stop_hid_is_not_guessed() -> None:
    cut = ablations([4, 2], rounds=5, stop_round=1, stopped_early=True)
    assert tuple(cut) == ARMS
    assert cut["decay+stop"] == pytest.approx(0.365024, abs=1e-6)
    assert cut["constant+stop"] == pytest.approx((1 + 1 / 3) / 5)
    assert cut["decay"] is cut["constant"] is None
    # a stop in the last round hid nothing
    whole = ablations([4, 2], rounds=2, stop_round=1, stopped_early=True)
    assert whole["constant"] == whole["constant+stop"] == pytest.approx(2 / 3)


def test_ablations_with_missing_verdicts_and_a_full_context() -> None:
    arms = ablations([4, None, 1, None], rounds=5, stop_round=2)
    assert arms["constant+stop"] == pytest.approx(1 / 4)  # 1, -, 0, 0, 0: the last two were not reached
    assert arms["constant"] == pytest.approx(1 / 2)  # 1, -, 0, -, and a round that the context prevented
    assert arms["decay"] == pytest.approx(1 / (1 + 0.6703200), abs=1e-6)
    assert set(ablations([None], rounds=5, stop_round=None).values()) == {None}


def test_the_arms_contain_the_papers_score() -> None:
    """What the protocol reports is decay+stop where stops are obeyed, decay where they aren't."""
    scores = [4, 2, 1]
    assert ablations(scores, rounds=5, stop_round=2, stopped_early=True)["decay+stop"] == paper(
        scores, rounds=5, stopped_early=True
    )
    assert ablations(scores, rounds=3, stop_round=1)["decay"] == paper(scores, rounds=3, stopped_early=False)
