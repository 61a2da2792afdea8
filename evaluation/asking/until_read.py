"""Asking a role until its reply can be read, and running several such conversations side by side."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from evaluation.asking.form import SAMPLED_TEMPERATURE
from serving.records import Ask, Completion, Demand, Prompt, Sampling, Score, Yielded, derive_seed

ValueT = TypeVar("ValueT")
RecordT = TypeVar("RecordT")
Status = Literal["given", "unreadable", "context"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[ValueT]):
    """What came of asking: ``value`` is None unless ``status`` is ``given``."""

    value: ValueT | None
    attempts: int
    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Generic[ValueT]):
    """How a reply is asked for and read.

    read: the value of a completion, or None; schema: the grammar of a structured reply, None for free text
    """

    read: Callable[[Completion], ValueT | None]
    max_tokens: int
    schema: Mapping[str, Any] | None = None


def ask_until_read(
    role: str,
    prompts: Sequence[Prompt],
    steps: Sequence[str],
    form: Form[ValueT],
    *,
    retries: int,
    seed: int,
    item_id: str,
) -> Generator[Yielded, Any, list[Reading[ValueT]]]:
    """One reading per prompt: all asked in one list, then those that could not be read once more, sampled.

    steps: a name per prompt, from which the seeds of its retries are derived
    """

    def ask(index: int, attempt: int) -> Ask:
        return Ask(
            role=role,
            prompt=prompts[index],
            sampling=Sampling(
                max_tokens=form.max_tokens,
                temperature=SAMPLED_TEMPERATURE if attempt else 0.0,
                # a seed means nothing at temperature 0; one value lets equal requests share an answer
                seed=derive_seed(seed, item_id, steps[index], attempt) if attempt else 0,
            ),
            schema=form.schema,
        )

    readings: dict[int, Reading[ValueT]] = {}
    waiting = list(range(len(prompts)))
    for attempt in range(retries + 1):
        if not waiting:
            break
        completions: list[Completion] = yield [ask(index, attempt) for index in waiting]
        for index, completion in zip(waiting, completions, strict=True):
            fits = completion.finish_reason != "context"
            value = form.read(completion) if fits else None
            status: Status = "context" if not fits else "unreadable" if value is None else "given"
            readings[index] = Reading(value=value, attempts=attempt + 1, status=status)
        waiting = [index for index in waiting if readings[index].status == "unreadable"]
    return [readings[index] for index in range(len(prompts))]


def together(dialogues: Sequence[Generator[Yielded, Any, RecordT]]) -> Generator[Yielded, Any, list[RecordT]]:
    """Several dialogues as one, step by step: what all of them ask next is one list."""
    results: dict[int, RecordT] = {}
    asked: dict[int, Yielded] = {}

    def advance(index: int, answer: Any) -> None:
        try:
            asked[index] = dialogues[index].send(answer)
        except StopIteration as end:
            asked.pop(index, None)
            results[index] = end.value

    for index in range(len(dialogues)):
        advance(index, None)
    while asked:
        now = sorted(asked.items())
        answers = iter((yield [demand for _, wanted in now for demand in _listed(wanted)]))
        for index, wanted in now:
            got = [next(answers) for _ in _listed(wanted)]
            advance(index, got[0] if isinstance(wanted, Ask | Score) else got)
    return [results[index] for index in range(len(dialogues))]


def _listed(wanted: Yielded) -> Sequence[Demand]:
    return [wanted] if isinstance(wanted, Ask | Score) else wanted
