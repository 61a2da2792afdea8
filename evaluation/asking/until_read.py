"""Asking roles until their replies can be read, and running several such conversations side by side."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar

from evaluation.asking.form import Form, ValueT
from serving.records import Ask, Completion, Demand, Prompt, Sampling, Score, Yielded, derive_seed

SAMPLED_TEMPERATURE: Final = 0.7
"""Of retries and votes: a seed means nothing at temperature 0."""

RecordT = TypeVar("RecordT")
Status = Literal["given", "unreadable", "context"]
"""Whether there is a value; else whether no attempt could be read, or the prompt did not fit."""
Sending = Callable[[Callable[[], list[Ask]]], Generator[Yielded, Any, list[Completion]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[ValueT]):
    """What came of asking: ``value`` is None unless ``status`` is ``given``."""

    value: ValueT | None
    attempts: int
    status: Status


def sampling(max_tokens: int, temperature: float, *step: str | int, stop: tuple[str, ...] = ()) -> Sampling:
    """How one step of a protocol is sampled.

    step: (experiment seed, item id, step, attempt), of which its own seed is derived. A seed means nothing at
    temperature 0; one value there lets equal requests share an answer.
    """
    seed = derive_seed(*step) if temperature else 0
    return Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed, stop=stop)


def at_once(make: Callable[[], list[Ask]]) -> Generator[Yielded, Any, list[Completion]]:
    """The answers to what is asked, as they come."""
    completions: list[Completion] = yield make()
    return completions


def ask_until_read(
    role: str | Sequence[str],
    prompts: Sequence[Prompt | Callable[[], Prompt]],
    steps: Sequence[str],
    form: Form[ValueT],
    *,
    retries: int,
    seed: int,
    item_id: str,
    greedy: bool = True,
    send: Sending = at_once,
) -> Generator[Yielded, Any, list[Reading[ValueT]]]:
    """One reading per prompt: all asked in one list, then those that could not be read once more, sampled.

    role: who is asked, or one per prompt
    prompts: one that is a function is made anew for every attempt
    steps: a name per prompt, from which the seeds of its retries are derived
    greedy: whether the first attempt is; votes are sampled from the start
    send: how a list is asked; it may ask, and have it made, several times (``kieval.conversation``)
    """
    roles = [role] * len(prompts) if isinstance(role, str) else role
    readings: dict[int, Reading[ValueT]] = {}
    waiting = list(range(len(prompts)))
    for attempt in range(retries + 1):
        if not waiting:
            break

        def make(indices: Sequence[int] = tuple(waiting), attempt: int = attempt) -> list[Ask]:
            temperature = 0.0 if greedy and attempt == 0 else SAMPLED_TEMPERATURE
            return [
                Ask(
                    role=roles[index],
                    prompt=prompt() if callable(prompt := prompts[index]) else prompt,
                    sampling=sampling(form.max_tokens, temperature, seed, item_id, steps[index], attempt),
                    schema=form.schema,
                )
                for index in indices
            ]

        completions = yield from send(make)
        for index, completion in zip(waiting, completions, strict=True):
            fits = completion.finish_reason != "context"
            value = form.read(completion) if fits else None
            status: Status = "context" if not fits else "unreadable" if value is None else "given"
            readings[index] = Reading(value=value, attempts=attempt + 1, status=status)
        waiting = [index for index in waiting if readings[index].status == "unreadable"]
    return [readings[index] for index in range(len(prompts))]


def together(dialogues: Sequence[Generator[Yielded, Any, RecordT]]) -> Generator[Yielded, Any, list[RecordT]]:
    """Several dialogues as one, step by step: what all of them ask next is one list, and each sees only the answers to
    its own demands."""
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
