"""Samples become token ids and a mask that says which of them are learned.

Ids come from ``serving.rendering``, so a conversation is trained in the very ids it is served in. The mask is found by
rendering, never by searching for a token string: a turn is where the ids change when its text is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from serving.records import Message
from serving.rendering import render, render_with_continuation
from training.samples import Chat, Sample, Text


@dataclass(frozen=True, slots=True)
class Example:
    """One row: token ids, which of them are learned, and where documents begin (several in a packed row).

    learned[i] is True where token i is a target; the first token of a document never is, nothing predicts it.
    """

    ids: tuple[int, ...]
    learned: tuple[bool, ...]
    starts: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        assert len(self.ids) == len(self.learned)
        assert self.starts[0] == 0

    @property
    def targets(self) -> int:
        """Number of learned tokens."""
        return sum(self.learned)

    def labels(self) -> list[int]:
        """Ids of the learned tokens, -100 elsewhere."""
        return [token if learn else -100 for token, learn in zip(self.ids, self.learned, strict=True)]


@dataclass(slots=True)
class Counts:
    """What happened to the samples: used, cut at max_length, dropped because no learned token was left."""

    used: int = 0
    truncated: int = 0
    dropped: int = 0


@dataclass(slots=True)
class Tokeniser:
    """Turns samples into examples of at most ``max_length`` tokens and counts what it cuts and drops."""

    tokenizer: Any
    max_length: int
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        if not getattr(self.tokenizer, "is_fast", False):
            raise ValueError("training needs a fast tokenizer (tokenizer.json): the loss mask comes from its offsets")
        if self.tokenizer.eos_token_id is None:
            raise ValueError("the tokenizer has no EOS token: the model would never learn to stop; set eos_token")

    def all(self, samples: Iterable[Sample]) -> list[Example]:
        """Examples of the samples, in order, without those that have nothing to learn within ``max_length``."""
        examples = []
        for sample in samples:
            example = self.one(sample)
            self.counts.truncated += len(example.ids) > self.max_length
            example = truncated(example, self.max_length)
            if example.targets == 0:
                self.counts.dropped += 1
                continue
            self.counts.used += 1
            examples.append(example)
        return examples

    def one(self, sample: Sample) -> Example:
        """The whole sample, before truncation. It ends with a learned EOS (or the template's end of turn)."""
        if isinstance(sample, Chat):
            return self._chat(sample.messages)
        prompt, answer = (sample.text, "") if isinstance(sample, Text) else (sample.prompt, sample.answer)
        rendered = render_with_continuation(self.tokenizer, prompt, answer, add_generation_prompt=False)
        learned = [isinstance(sample, Text) or segment == "answer" for segment in rendered.segments]
        return _example([*rendered.ids, self.tokenizer.eos_token_id], [*learned, True])

    def _chat(self, messages: tuple[Message, ...]) -> Example:
        ids = list(render(self.tokenizer, messages, add_generation_prompt=False))
        learned = [False] * len(ids)
        ended = True
        for index, message in enumerate(messages):
            if message.role == "assistant":
                start, end = self._turn(messages, index, ids)
                learned[start:end] = [True] * (end - start)
                ended = end > start and self._ends(ids[end - 1])
        if messages[-1].role == "assistant" and not ended:
            ids.append(self.tokenizer.eos_token_id)  # a template, or none, that doesn't mark the end of an answer
            learned.append(True)
        return _example(ids, learned)

    def _turn(self, messages: tuple[Message, ...], index: int, ids: list[int]) -> tuple[int, int]:
        """Range of the ids that hold turn ``index`` and the special token that ends it.

        The turn's text is replaced by a sign that stands nowhere else: ids before the first and after the last
        difference belong to the template and to other turns. A token merged across the boundary counts to the turn.
        """
        everything = "".join(message.content for message in messages)
        sign = next(chr(code) for code in range(0xA66E, 0x10FFFF) if chr(code) not in everything)
        other = (*messages[:index], replace(messages[index], content=sign), *messages[index + 1 :])
        changed = render(self.tokenizer, other, add_generation_prompt=False)
        shortest = min(len(ids), len(changed))
        start = next((i for i in range(shortest) if ids[i] != changed[i]), shortest)
        tail = next((i for i in range(shortest - start) if ids[-1 - i] != changed[-1 - i]), shortest - start)
        end = len(ids) - tail
        stop = end
        while stop < len(ids) and not self._ends(ids[stop]) and not self.tokenizer.decode([ids[stop]]).strip():
            stop += 1
        return (start, stop + 1) if stop < len(ids) and self._ends(ids[stop]) else (start, end)

    def _ends(self, token: int) -> bool:
        return token == self.tokenizer.eos_token_id or token in self.tokenizer.all_special_ids


def truncated(example: Example, length: int) -> Example:
    """The first ``length`` tokens."""
    return example if len(example.ids) <= length else Example(example.ids[:length], example.learned[:length])


def _example(ids: list[int], learned: list[bool]) -> Example:
    return Example(tuple(ids), (False, *learned[1:]))
