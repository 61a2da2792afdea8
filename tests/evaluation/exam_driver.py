"""Drives a protocol by hand, with the answers of imaginary models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from evaluation.items import Item, make_item
from serving.records import Ask, Completion, Dialogue, Score, TokenScores

Reply = Callable[[Any], Any]


def make_items(n: int, subjects: tuple[str, ...] = ("physics",)) -> list[Item]:
    return [
        make_item(
            benchmark="t",
            split="test",
            subject=subjects[i % len(subjects)],
            question=f"Question number {i}?",
            choices=[f"one {i}", f"two {i}", f"three {i}", f"four {i}"],
            answer="ABCD"[i % 4],
        )
        for i in range(n)
    ]


def said(text: str, finish_reason: Any = "stop") -> Completion:
    return Completion(text=text, finish_reason=finish_reason, prompt_tokens=1, output_tokens=1)


def scored(logprob: float, segment: Any = "answer") -> TokenScores:
    return TokenScores(ids=(1,), logprobs=(logprob,), segments=(segment,))


def drive(dialogue: Dialogue[dict[str, Any]], answer: Reply) -> tuple[list[Ask | Score], dict[str, Any]]:
    """Runs one dialogue: ``answer`` gives the reply to each Ask or Score. Returns all demands, and the record."""
    demands: list[Ask | Score] = []
    try:
        wanted = next(dialogue)
        while True:
            batch = [wanted] if isinstance(wanted, Ask | Score) else list(wanted)
            demands += batch
            replies = [answer(one) for one in batch]
            wanted = dialogue.send(replies[0] if isinstance(wanted, Ask | Score) else replies)
    except StopIteration as end:
        return demands, end.value


def scripted(**replies: list[Completion]) -> Reply:
    """Each role's completions in order; the last one is repeated."""
    left: dict[str, Iterator[Completion]] = {role: iter(given) for role, given in replies.items()}
    last: dict[str, Completion] = {}

    def answer(ask: Ask) -> Completion:
        last[ask.role] = next(left[ask.role], last.get(ask.role, said("")))
        return last[ask.role]

    return answer
