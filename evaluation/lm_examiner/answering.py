"""A candidate's answer to an open question: 0-shot or with the shipped exemplars, the same for all."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final, Literal

from evaluation.benchmarks.reading import decode
from evaluation.items import Item
from evaluation.templates import well_formed
from serving.records import Ask, Message, Prompt, Sampling

AnswerFormat = Literal["chat", "plain"]
ANSWER_TOKENS: Final = 200
PLAIN_STOPS: Final = ("\n",)


@cache
def exemplars() -> tuple[tuple[str, str], ...]:
    """The shipped (question, answer) pairs."""
    import json

    data = (resources.files("evaluation") / "data" / "examiner_exemplars.jsonl").read_bytes()
    rows = [json.loads(line) for line in decode(data, "examiner_exemplars.jsonl").splitlines() if line.strip()]
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
