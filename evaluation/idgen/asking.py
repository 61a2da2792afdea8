"""Questions to a seed's roles, answered in free text or in a small JSON form, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.asking.form import Answer, Fields, Form, ValueT
from evaluation.asking.until_read import Reading, ask_until_read
from evaluation.templates import render
from serving.records import Ask, Completion, Message, Prompt, Sampling, Yielded


@dataclass(slots=True)
class Desk:
    """Where one seed's questions are asked: it derives seeds and counts calls and tokens by role.

    retries: further attempts, sampled at temperature 0.7, at an answer that can't be used; the first is greedy
    """

    seed: int
    item_id: str
    retries: int
    cost: dict[str, dict[str, int]] = field(default_factory=dict)

    def send(self, make: Callable[[], list[Ask]]) -> Generator[Yielded, Any, list[Completion]]:
        """The answers to what is asked, each charged to its role."""
        asks = make()
        completions: list[Completion] = yield asks
        for ask, completion in zip(asks, completions, strict=True):
            part = self.cost.setdefault(ask.role, {"calls": 0, "prompt": 0, "output": 0})
            part["calls"] += 1
            part["prompt"] += completion.prompt_tokens
            part["output"] += completion.output_tokens
        return completions

    def write(self, asked: Sequence[tuple[str, Prompt]], tokens: int) -> Generator[Yielded, Any, list[Completion]]:
        """One free text for each (role, prompt), asked together, at temperature 0."""
        sampling = Sampling(max_tokens=tokens)
        return self.send(lambda: [Ask(role=role, prompt=prompt, sampling=sampling) for role, prompt in asked])

    def read(
        self, asked: Sequence[tuple[str, Prompt]], steps: Sequence[str], form: Form[ValueT]
    ) -> Generator[Yielded, Any, list[Reading[ValueT]]]:
        """A reading for each (role, prompt), asked together."""
        return ask_until_read(
            [role for role, _ in asked],
            [prompt for _, prompt in asked],
            [f"idgen/{step}" for step in steps],
            form,
            retries=self.retries,
            seed=self.seed,
            item_id=self.item_id,
            send=self.send,
        )

    def decide(
        self, asked: Sequence[tuple[str, Prompt]], step: str, fields: Fields
    ) -> Generator[Yielded, Any, list[Answer | None]]:
        """An answer in the form for each (role, prompt); None where no attempt could be read."""
        steps = [f"{step}/{index}" for index in range(len(asked))]
        readings = yield from self.read(asked, steps, fields.form())
        return [reading.value for reading in readings]


def prompt(name: str, **values: Any) -> Prompt:
    """A prompt file as a user's message."""
    return (Message(role="user", content=render(name, **values)),)
