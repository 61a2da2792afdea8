"""Asking within a conversation that may outgrow a model's context, with an account of what it cost.

Oldest rounds first: a prompt that leaves no room for its answer is asked again with one more of the oldest rounds left
out, until it fits or only the current round is left. What was left out of a role's prompt once stays out of its later
ones, for conversations only grow. All of it is a function of the answers, so a run can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.items import Item
from evaluation.kieval.prompts import Round
from serving.records import Ask, Completion, Yielded


@dataclass(slots=True)
class Conversation:
    """One item's conversation so far.

    dropped: by role, the oldest rounds that its last prompt left out
    tokens: by role, ``prompt`` and ``output`` tokens and ``calls``, of the prompts that were answered
    """

    item: Item
    first_answer: str = ""
    turns: list[Round] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def about(cls, item: Item, roles: Sequence[str]) -> Conversation:
        """A conversation that hasn't begun."""
        return cls(
            item=item,
            dropped=dict.fromkeys(roles, 0),
            tokens={role: {"prompt": 0, "output": 0, "calls": 0} for role in roles},
        )

    def charge(self, role: str, completion: Completion) -> None:
        """Adds an answer to the account; a prompt that didn't fit was never read by the model and costs nothing."""
        if completion.finish_reason == "context":
            return
        spent = self.tokens[role]
        spent["prompt"] += completion.prompt_tokens
        spent["output"] += completion.output_tokens
        spent["calls"] += 1

    def ask(
        self, role: str, make: Callable[[int], Sequence[Ask]], *, droppable: int
    ) -> Generator[Yielded, Any, list[Completion]]:
        """The answers to what ``make(dropped)`` asks the role, with as few rounds dropped as its context allows.

        droppable: the earlier rounds that may be left out; 0 takes the first answers as they are
        """
        while True:
            asks = list(make(self.dropped[role]))
            completions: list[Completion] = yield asks
            for completion in completions:
                self.charge(role, completion)
            lacking = any(lacks_room(ask, completion) for ask, completion in zip(asks, completions, strict=True))
            if not lacking or self.dropped[role] >= droppable:
                return completions
            self.dropped[role] += 1


def lacks_room(ask: Ask, completion: Completion) -> bool:
    """Whether the context was too short: for the prompt, or for the answer, which was cut before its max_tokens."""
    cut = completion.finish_reason == "length" and completion.output_tokens < ask.sampling.max_tokens
    return completion.finish_reason == "context" or cut
