"""Oldest rounds first: what is left out when a context is full, and what the records say about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.items import Item
from evaluation.kieval.conversation import lacks_room
from evaluation.kieval.interview import KIEval
from evaluation.kieval.options import KIEvalOptions
from evaluation.kieval.prompts import Round, evaluator
from evaluation.kieval.verdict import ASPECTS
from evaluation.registry import build
from serving.records import Ask, Completion, Message, Sampling
from tests.evaluation.exam_driver import drive, said

NONE_DROPPED = {"candidate": 0, "interactor": 0, "evaluator": 0}


def text_of(ask: Ask) -> str:
    return ask.prompt if isinstance(ask.prompt, str) else "\n".join(message.content for message in ask.prompt)


class Actors:
    """Three models that number what they say; a role in ``room`` refuses prompts that show more rounds than that."""

    def __init__(self, **room: int) -> None:
        self.room = room
        self.said = 0
        self.asks: list[Ask] = []
        self.refused: list[Ask] = []

    def __call__(self, ask: Ask) -> Completion:
        self.asks.append(ask)
        text = text_of(ask)
        shown = sum(f"QUESTION-{i}." in text for i in range(100))
        if shown > self.room.get(ask.role, 100):
            self.refused.append(ask)
            return Completion(text="", finish_reason="context", prompt_tokens=999, output_tokens=0)
        if ask.role == "evaluator":
            judged = {name: {"comment": f"SHOWN-{shown}", "score": 3} for name in (*ASPECTS, "overall")}
            return said(json.dumps({**judged, "reason": "none", "stop": False}))
        if ask.role == "interactor":
            self.said += 1
            return said(f"QUESTION-{self.said}.")
        return said(f"REPLY-{self.said}.")


def interview(item: Item, actors: Callable[[Ask], Completion], **options: Any) -> dict[str, Any]:
    protocol = build("kieval", options, seed=7)
    return drive(next(iter(protocol.dialogues([item]))), actors)[1]


def last(actors: Actors, role: str) -> str:
    return text_of([ask for ask in actors.asks if ask.role == role][-1])


def test_nothing_is_dropped_where_everything_fits(item: Item) -> None:
    record = interview(item, Actors(), rounds=3)
    assert [turn["dropped_rounds"] for turn in record["rounds"]] == [NONE_DROPPED] * 3
    assert (record["dropped_rounds"], record["stop_reason"]) == (0, "rounds")


def test_the_candidate_keeps_the_item_its_first_answer_and_the_newest_rounds(item: Item) -> None:
    actors = Actors(candidate=2)
    record = interview(item, actors, rounds=4)
    assert (record["rounds_completed"], record["stop_reason"], record["dropped_rounds"]) == (4, "rounds", 2)
    assert [turn["dropped_rounds"]["candidate"] for turn in record["rounds"]] == [0, 0, 1, 2]
    assert all(turn["dropped_rounds"]["evaluator"] == 0 for turn in record["rounds"])
    prompt = [ask for ask in actors.asks if ask.role == "candidate"][-1].prompt
    assert isinstance(prompt, tuple)
    assert [message.role for message in prompt] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "What bends light?" in prompt[1].content
    assert prompt[2:] == (
        Message(role="assistant", content="REPLY-0."),
        Message(role="user", content="QUESTION-3."),
        Message(role="assistant", content="REPLY-3."),
        Message(role="user", content="QUESTION-4."),
    )


def test_what_was_dropped_stays_dropped(item: Item) -> None:
    """One refusal per round at most, and never one more than the rounds that are left out."""
    actors = Actors(candidate=2, interactor=1, evaluator=3)
    record = interview(item, actors, rounds=5)
    assert record["rounds_completed"] == 5
    assert len(actors.refused) == 3 + 3 + 2
    assert record["rounds"][4]["dropped_rounds"] == {"candidate": 3, "interactor": 3, "evaluator": 2}


def test_interactor_and_evaluator_are_told_and_rounds_keep_their_numbers(item: Item) -> None:
    actors = Actors(interactor=2, evaluator=2)
    interview(item, actors, rounds=4)
    asked = last(actors, "interactor")
    assert "\n\nRound 1 is left out here.\n\n" in asked
    assert [f"QUESTION-{i}." in asked for i in (1, 2, 3)] == [False, True, True]
    assert "Right answer" in asked
    judged = last(actors, "evaluator")
    assert "\n\nRounds 1 to 2 are left out here.\n\nRound 3. Interviewer:\n| QUESTION-3." in judged
    assert "Round 3. Your verdict:" in judged
    assert judged.endswith("Judge the candidate's reply of round 4.")
    assert "| REPLY-0." in judged
    assert "REPLY-2." not in judged


def test_plain_candidates_too(item: Item) -> None:
    actors = Actors(candidate=1)
    interview(item, actors, rounds=2, candidate_format="plain")
    assert last(actors, "candidate").endswith("Assistant: REPLY-0.\nUser: QUESTION-2.\nAssistant:")
    assert "QUESTION-1." not in last(actors, "candidate")


@pytest.mark.parametrize(("role", "rounds", "missing"), [("candidate", 0, 0), ("evaluator", 1, 1)])
def test_the_current_round_is_never_dropped(item: Item, role: str, rounds: int, missing: int) -> None:
    record = interview(item, Actors(**{role: 0}), rounds=3)
    assert (record["rounds_completed"], record["stop_reason"]) == (rounds, "context")
    assert (record["missing_verdicts"], record["dropped_rounds"]) == (missing, 0)


def test_an_interactor_may_be_left_with_the_item_alone(item: Item) -> None:
    actors = Actors(interactor=0)
    record = interview(item, actors, rounds=3)
    assert (record["rounds_completed"], record["dropped_rounds"]) == (3, 2)
    assert "Rounds 1 to 2 are left out here." in last(actors, "interactor")


def test_a_dialogue_ends_where_even_that_is_too_much(item: Item) -> None:
    judged = iter(range(100))

    def actors(ask: Ask) -> Completion:
        if ask.role == "candidate" and next(judged) >= 2:
            return said("", "context")
        return Actors()(ask)

    record = interview(item, actors, rounds=5)
    assert (record["rounds_completed"], record["stop_reason"], record["dropped_rounds"]) == (1, "context", 1)
    assert record["scores"]["released"] == pytest.approx(0.7)
    assert record["scores"]["paper"] == pytest.approx(2 / 3)


def test_a_verdict_that_the_context_cuts_is_asked_again_with_less(item: Item) -> None:
    """Room for part of an answer is no room: the verdict would be cut at each attempt."""
    actors = Actors()

    def tight(ask: Ask) -> Completion:
        if ask.role == "evaluator" and "QUESTION-1." in text_of(ask) and "QUESTION-2." in text_of(ask):
            return Completion(text='{"accu', finish_reason="length", complete=False, prompt_tokens=5, output_tokens=3)
        return actors(ask)

    record = interview(item, tight, rounds=2)
    assert [turn["attempts"] for turn in record["rounds"]] == [1, 1]
    assert record["missing_verdicts"] == 0
    assert record["rounds"][1]["dropped_rounds"]["evaluator"] == 1


def test_an_answer_that_used_all_its_tokens_is_taken_as_it_is(item: Item) -> None:
    asks: list[Ask] = []

    def long_winded(ask: Ask) -> Completion:
        asks.append(ask)
        if ask.role == "candidate":
            return Completion(text="and so on", finish_reason="length", prompt_tokens=5, output_tokens=256)
        return Actors()(ask)

    record = interview(item, long_winded, rounds=2)
    assert record["dropped_rounds"] == 0
    assert len(asks) == 7


def test_the_account_of_tokens(item: Item) -> None:
    """said() counts 1 prompt and 1 output token; refused prompts (999 tokens) cost nothing."""
    record = interview(item, Actors(candidate=1), rounds=2)
    assert record["tokens"] == {
        "candidate": {"prompt": 3, "output": 3, "calls": 3},
        "interactor": {"prompt": 2, "output": 2, "calls": 2},
        "evaluator": {"prompt": 2, "output": 2, "calls": 2},
    }


def test_summary_counts_what_was_left_out(item: Item) -> None:
    protocol = KIEval(KIEvalOptions(rounds=2), seed=1)
    records = [
        interview(item, Actors(), rounds=2),
        interview(item, Actors(candidate=1), rounds=2),
        interview(item, Actors(candidate=0), rounds=2),
    ]
    summary = protocol.summarise(json.loads(json.dumps(records)))
    assert summary["overflow"] == {"dialogues_with_dropped_rounds": 1, "ended_by_context": 1}
    # candidate: 3, 3 and 1 answers; evaluator: 2, 2 and 0
    assert summary["tokens"]["candidate"] == {kind: pytest.approx(7 / 3) for kind in ("prompt", "output", "calls")}
    assert summary["tokens"]["evaluator"]["calls"] == pytest.approx(4 / 3)
    assert protocol.summarise([])["tokens"]["candidate"] == {"prompt": None, "output": None, "calls": None}


def test_a_real_engine_runs_out_of_room(item: Item, tmp_path: Path) -> None:
    """A random model whose context holds one round of the evaluator's prompt, and 8 tokens of verdict, but not two."""
    from serving.engines.transformers_engine import TransformersBackend
    from serving.model.spec import ModelSpec
    from serving.rendering import render
    from tests.serving.serving_models import chatml, save_model

    tokenizer = chatml()
    turn = Round(question="Q" * 16, reply="R" * 16)
    prompt = evaluator(item, "A" * 16, [turn], 4000, comment_length=None)
    length = len(render(tokenizer, prompt)) + 8 + 1
    folder = save_model(tmp_path / "tiny", tokenizer, max_position_embeddings=length)
    backend = TransformersBackend(ModelSpec(path=str(folder), engine="transformers", dtype="float32"))

    def answer(ask: Ask) -> Completion:
        return backend.generate([ask.request()])[0]

    for max_tokens, lacking in ((8, False), (9, True)):
        ask = Ask(role="evaluator", prompt=prompt, sampling=Sampling(max_tokens=max_tokens))
        completion = answer(ask)
        assert (completion.finish_reason, completion.output_tokens) == ("length", 8)
        assert lacks_room(ask, completion) is lacking

    options = {"rounds": 2, "verdict": "free", "evaluator_tokens": 8, "candidate_tokens": 8, "interactor_tokens": 8}
    record = interview(item, answer, retries=0, **options)
    assert (record["rounds_completed"], record["stop_reason"]) == (2, "rounds")
    assert record["rounds"][1]["dropped_rounds"]["evaluator"] == record["dropped_rounds"] == 1
