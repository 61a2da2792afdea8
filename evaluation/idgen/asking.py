"""One question to a role, answered in free text or in a small JSON form, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.asking.form import COMMENT_CHARACTERS, DECODER, SAMPLED_TEMPERATURE, whole
from evaluation.templates import render
from serving.records import Ask, Completion, Message, Prompt, Sampling, Yielded, derive_seed

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A JSON object with these keys in this order: a number stands for a text of at most so many characters (printable
    ASCII, see ``evaluation.protocols.verdicts``), a tuple for the values that are allowed."""

    fields: Mapping[str, int | tuple[int, ...] | tuple[str, ...]]

    def schema(self) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        for name, what in self.fields.items():
            if isinstance(what, int):
                properties[name] = {"type": "string", "pattern": f"^{COMMENT_CHARACTERS}{{0,{what}}}$"}
            else:
                kind = "integer" if isinstance(what[0], int) else "string"
                properties[name] = {"type": kind, "enum": list(what)}
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}

    def tokens(self) -> int:
        """Enough max_tokens for any answer of this form: its greatest length in characters, and one for the end."""
        longest = {
            name: "x" * what if isinstance(what, int) else max(what, key=lambda value: len(str(value)))
            for name, what in self.fields.items()
        }
        return len(json.dumps(longest)) + 1

    def parse(self, text: str) -> Answer | None:
        """The answer; None if it was cut, lacks a key, holds a value that isn't allowed, or says one thing twice."""
        try:
            value = DECODER.decode(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        read: Answer = {}
        for name, what in self.fields.items():
            given = value.get(name)
            if not isinstance(what, int) and isinstance(what[0], int):
                given = whole(given)
            if isinstance(what, int):
                if not isinstance(given, str):
                    return None
            elif type(given) is not type(what[0]) or given not in what:
                return None
            read[name] = given
        return read


@dataclass(slots=True)
class Desk:
    """Where one seed's questions are asked: it derives seeds and counts calls and tokens by role.

    retries: further attempts, sampled at temperature 0.7, at an answer that can't be used; the first is greedy
    """

    seed: int
    item_id: str
    retries: int
    cost: dict[str, dict[str, int]] = field(default_factory=dict)

    def ask(self, role: str, prompt: Prompt, step: str, attempt: int, tokens: int, form: Form | None = None) -> Ask:
        return Ask(
            role=role,
            prompt=prompt,
            sampling=Sampling(
                max_tokens=tokens,
                temperature=SAMPLED_TEMPERATURE if attempt else 0.0,
                seed=derive_seed(self.seed, self.item_id, f"idgen/{step}", attempt) if attempt else 0,
            ),
            schema=None if form is None else form.schema(),
        )

    def charge(self, role: str, completion: Completion) -> None:
        part = self.cost.setdefault(role, {"calls": 0, "prompt": 0, "output": 0})
        part["calls"] += 1
        part["prompt"] += completion.prompt_tokens
        part["output"] += completion.output_tokens

    def write(self, role: str, prompt: Prompt, step: str, tokens: int) -> Generator[Yielded, Any, Completion]:
        """One free text, at temperature 0."""
        completion: Completion = yield self.ask(role, prompt, step, 0, tokens)
        self.charge(role, completion)
        return completion

    def decide(
        self, asked: Sequence[tuple[str, Prompt]], step: str, form: Form
    ) -> Generator[Yielded, Any, list[Answer | None]]:
        """An answer in the form for each (role, prompt), asked together; None where no attempt could be read."""
        answers: list[Answer | None] = [None] * len(asked)
        waiting = list(range(len(asked)))
        for attempt in range(self.retries + 1):
            if not waiting:
                break
            demands = [self.ask(*asked[index], f"{step}/{index}", attempt, form.tokens(), form) for index in waiting]
            completions: list[Completion] = yield demands
            again = []
            for index, completion in zip(waiting, completions, strict=True):
                self.charge(asked[index][0], completion)
                if completion.finish_reason == "context":
                    continue
                answers[index] = form.parse(completion.text)
                if answers[index] is None:
                    again.append(index)
            waiting = again
        return answers


def prompt(name: str, **values: Any) -> Prompt:
    """A prompt file as a user's message."""
    return (Message(role="user", content=render(name, **values)),)
