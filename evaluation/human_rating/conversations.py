"""Single-turn conversations (a question and one reply) out of exam records.

Records are recognised by what they hold, so that every protocol's, and a user's own, can be read:

- ``rounds`` (kieval): the first round's question and reply, with the evaluator's scores; and the first answer;
- ``turns`` (mt_bench, pairwise): the first turn, with its rating;
- ``reply`` (static in mode generate): the reply, with whether it was right;
- ``question`` (or ``prompt``, ``instruction``) and ``reply`` (or ``response``, ``answer``, ``output``) side by side.

Records that hold no text to rate (static in mode letter or cloze; a prompt that didn't fit) yield nothing. Where a
question is the exam item's own, it is taken from the exam's items.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from evaluation.formats import chat_answer, chat_question
from evaluation.items import Item

Part = Literal["answer", "round", "reply"]

_QUESTIONS = ("question", "prompt", "instruction")
_REPLIES = ("reply", "response", "answer", "output")
_UNANSWERED = ("context", "unasked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What is rated, and what the annotators must not see.

    part: ``answer`` (kieval's first answer to the item), ``round`` (its first follow-up question), else ``reply``
    context: what came before the question ("" if nothing did)
    reference: a reference answer, "" if there is none
    scores: automatic scores of this reply, by name
    source: where the record stands
    """

    benchmark: str
    candidate: str
    part: Part
    question: str
    reply: str
    context: str = ""
    reference: str = ""
    item_id: str = ""
    source: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)


def conversations(
    record: Mapping[str, Any], *, candidate: str, source: str, items: Mapping[str, Item]
) -> Iterator[Conversation]:
    """The conversations of one record. A candidate that the record names goes before ``candidate``.

    items: the exam's items by id, as far as they are known
    """
    item = items.get(str(record.get("item_id", "")))
    named = record.get("candidate") or record.get("model")
    common: dict[str, Any] = {
        "benchmark": item.benchmark if item else _text(record.get("benchmark") or record.get("subject")),
        "candidate": named if isinstance(named, str) else candidate,
        "item_id": _text(record.get("item_id") or record.get("id")),
        "source": source,
    }
    if isinstance(record.get("rounds"), list):
        yield from _interview(record, item, common)
    elif isinstance(record.get("turns"), list):
        turn = _first(record["turns"])
        reference = item.references[0] if item and item.references else ""
        scores = _numbers("", {"rating": turn.get("rating"), "score": turn.get("score")})
        yield from _pair(turn, "", reference, scores, common)
    elif isinstance(record.get("reply"), str) and item is not None and "question" not in record:
        scores = _numbers("", {"correct": record.get("correct")})
        yield from _pair({**record, "question": chat_question(item)}, "", chat_answer(item), scores, common)
    else:
        numbers = {name: value for name, value in record.items() if name in ("score", "rating", "overall", "correct")}
        yield from _pair(
            record, _text(record.get("context")), _text(record.get("reference")), _numbers("", numbers), common
        )


def _interview(record: Mapping[str, Any], item: Item | None, common: dict[str, Any]) -> Iterator[Conversation]:
    first = record.get("first_answer")
    answer = first.get("text") if isinstance(first, Mapping) else None
    asked = chat_question(item) if item else ""
    answered = answer or record["rounds"] or record.get("stop_reason") != "context"
    if isinstance(answer, str) and isinstance(first, Mapping) and item and answered:
        yield Conversation(
            part="answer",
            question=asked,
            reply=answer,
            reference=chat_answer(item),
            scores=_numbers("answer_", {"correct": first.get("correct")}),
            **common,
        )
    turn = _first(record["rounds"])
    if isinstance(turn.get("question"), str) and isinstance(turn.get("reply"), str):
        verdict = turn.get("verdict")
        judged = verdict if isinstance(verdict, Mapping) else {}
        marks = {name: mark.get("score") for name, mark in judged.items() if isinstance(mark, Mapping)}
        whole = {
            f"dialogue_{name}": value for part in ("scores", "ablations") for name, value in _mapping(record, part)
        }
        before = f"{asked}\n\n{answer}".strip() if isinstance(answer, str) else asked
        yield Conversation(
            part="round",
            question=turn["question"],
            reply=turn["reply"],
            context=before,
            scores=_numbers("kieval_", {**marks, "overall": turn.get("overall", marks.get("overall")), **whole}),
            **common,
        )


def _pair(
    row: Mapping[str, Any], context: str, reference: str, scores: dict[str, float], common: dict[str, Any]
) -> Iterator[Conversation]:
    question = next((row[name] for name in _QUESTIONS if isinstance(row.get(name), str)), None)
    reply = next((row[name] for name in _REPLIES if isinstance(row.get(name), str)), None)
    if question is not None and reply is not None and row.get("finish_reason") not in _UNANSWERED:
        yield Conversation(
            part="reply", question=question, reply=reply, context=context, reference=reference, scores=scores, **common
        )


def _mapping(record: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    """The entries of a record's part; of the interview as a whole: its score in each variant and arm of Table 8."""
    part = record.get(name)
    yield from part.items() if isinstance(part, Mapping) else ()


def _first(rows: list[Any]) -> Mapping[str, Any]:
    return rows[0] if rows and isinstance(rows[0], Mapping) else {}


def _numbers(prefix: str, values: Mapping[str, Any]) -> dict[str, float]:
    """The finite numbers among the values (true is 1), their names prefixed."""
    return {
        f"{prefix}{name}": float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int) else ""
