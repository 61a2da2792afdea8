"""A candidate's answer to an open question: 0-shot or with the shipped exemplars, the same for all."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field

from evaluation.benchmarks.reading import decode
from evaluation.items import Item
from evaluation.lm_examiner import answering
from evaluation.lm_examiner.marking import ExaminerOptions
from evaluation.templates import well_formed
from serving.records import Ask, Completion, Message, Prompt, Sampling, Yielded, derive_seed

AnswerFormat = Literal["chat", "plain"]
ANSWER_TOKENS: Final = 200
PLAIN_STOPS: Final = ("\n",)


@cache
def exemplars() -> tuple[tuple[str, str], ...]:
    """The shipped (question, answer) pairs."""
    import json

    data = (resources.files("evaluation.lm_examiner") / "data" / "exemplars.jsonl").read_bytes()
    rows = [json.loads(line) for line in decode(data, "exemplars.jsonl").splitlines() if line.strip()]
    return tuple((row["question"], row["answer"]) for row in rows)


def ask(role: str, question: str, *, how: AnswerFormat, shots: int = 0, max_tokens: int = ANSWER_TOKENS) -> Ask:
    """The demand for a greedy answer. ``plain`` (a base model): ``Question: ...\\nAnswer:``, cut at the line break."""
    stop = PLAIN_STOPS if how == "plain" else ()
    return Ask(
        role=role, prompt=prompt(question, how=how, shots=shots), sampling=Sampling(max_tokens=max_tokens, stop=stop)
    )


def prompt(question: str, *, how: AnswerFormat, shots: int = 0) -> Prompt:
    shown = exemplars()[:shots]
    if how == "plain":
        asked = " ".join(well_formed(question).split())
        return "\n\n".join([*(f"Question: {q}\nAnswer: {a}" for q, a in shown), f"Question: {asked}\nAnswer:"])
    messages: list[Message] = []
    for q, a in shown:
        messages += [Message(role="user", content=q), Message(role="assistant", content=a)]
    return (*messages, Message(role="user", content=question))


def question_of(item: Item) -> str:
    """The item as it is asked: with its passage, and its options where it has some."""
    from evaluation.formats import options_block

    parts = [item.context, item.question, options_block(item) if item.choices else ""]
    return "\n".join(part for part in parts if part)


class GroupOptions(ExaminerOptions):
    """Those of every examiner (``evaluation.lm_examiner.marking``), and:

    plain: models without a chat template, asked in plain text where they answer
    """

    plain: tuple[str, ...] = Field(default=(), strict=False)


class Answers(NamedTuple):
    """texts: by model, as the examiner sees them; rows: the same for the record, with ``finish_reason``"""

    texts: dict[str, str]
    rows: dict[str, dict[str, Any]]


def answer(names: Sequence[str], question: str, options: GroupOptions) -> Generator[Yielded, Any, Answers]:
    """The question answered by each of ``names``, all asked together."""
    completions: list[Completion] = yield [
        answering.ask(
            name,
            question,
            how="plain" if name in options.plain else "chat",
            shots=options.few_shot,
            max_tokens=options.answer_tokens,
        )
        for name in names
    ]
    texts = {name: well_formed(c.text).strip() for name, c in zip(names, completions, strict=True)}
    reasons = {name: c.finish_reason for name, c in zip(names, completions, strict=True)}
    return Answers(texts, {name: {"text": texts[name], "finish_reason": reasons[name]} for name in names})


def input_order(names: Sequence[str], *, seed: int, key: str) -> list[str]:
    """The order in which a schedule takes them, drawn for each question: it decides where a comparison doesn't."""
    return sorted(names, key=lambda name: derive_seed(seed, key, "order", name))


def check_names(names: Sequence[str], *, least: int, taken: Sequence[str] = ()) -> None:
    """ValueError for too few models, a repeated name, or one that is a role of the protocol."""
    if len(names) < least:
        raise ValueError(f"there are {len(names)} models ({', '.join(names) or 'none'}); it takes at least {least}")
    for place, name in enumerate(names):
        if name in names[:place] or name in taken or not name.strip():
            raise ValueError(f"the model name {name!r} is {'repeated' if name in names[:place] else 'taken or blank'}")


def check_plain(protocol: str, options: GroupOptions, answering_models: Sequence[str]) -> None:
    """ValueError if ``plain`` names a model that doesn't answer."""
    for name in options.plain:
        if name not in answering_models:
            raise ValueError(f"{protocol}.plain: {name!r} is no model that answers; {', '.join(answering_models)} do")
