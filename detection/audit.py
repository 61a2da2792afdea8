"""The audit: every chosen detector examines every text, and the scores are weighed against the labels.

``audit_dialogue`` is what a scheduler drives, one per text; ``summarise`` and ``verdict`` are arithmetic on records.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypedDict

from detection.detectors.base import Detector, Text, parts, table
from detection.metrics import benjamini_hochberg, measurement
from detection.texts import exam_texts, read_texts
from detection.verdict import Verdict, verdict
from serving.records import Ask, Demand, Dialogue, Score, TokenScores, Yielded

__all__ = ["Record", "Verdict", "audit_dialogue", "exam_texts", "read_texts", "score_lines", "summarise", "verdict"]


class Record(TypedDict):
    """What an audit knows of one text; JSON-ready.

    tokens: tokens scored (format tokens not counted); None where no detector asked for the token table
    part_tokens: the same for "" (the whole text) and, where the text has a prompt, "/prompt" and "/answer"
    dropped: tokens cut from the beginning, the text being longer than the context
    scores: by name; None means unscorable
    """

    id: str | int
    label: int | None
    tokens: int | None
    part_tokens: dict[str, int]
    dropped: int
    scores: dict[str, float | None]


def audit_dialogue(text: Text, detectors: Sequence[Detector]) -> Dialogue[Record]:
    """All detectors on one text, advanced together.

    Each yield is the list of what they want to know next, each demand once; what one detector was told is not asked
    again for another. The record's scores stand in the detectors' order.
    """
    answers: dict[Demand, Any] = {}
    running = [detector.examine(text) for detector in detectors]
    pending: dict[int, Yielded] = {}
    named: dict[int, dict[str, float]] = {}
    for i, dialogue in enumerate(running):
        _advance(i, dialogue, pending, named, answers)
    while pending:
        open_demands = [demand for wanted in pending.values() for demand in _demands(wanted)]
        asked = list(dict.fromkeys(demand for demand in open_demands if demand not in answers))
        replies = yield asked
        answers.update(zip(asked, replies, strict=True))
        for i in list(pending):
            _advance(i, running[i], pending, named, answers)
    tokens: TokenScores | None = answers.get(table(text, True), answers.get(table(text, False)))
    part_tokens = {} if tokens is None else {part.suffix: len(part.logprobs) for part in parts(text, tokens)}
    return Record(
        id=text.id,
        label=text.label,
        tokens=part_tokens.get(""),
        part_tokens=part_tokens,
        dropped=0 if tokens is None else tokens.dropped,
        scores={
            name: value if math.isfinite(value) else None
            for i in range(len(running))
            for name, value in named[i].items()
        },
    )


def summarise(records: Sequence[Record], seed: int) -> dict[str, dict[str, Any]]:
    """``metrics.json``: per score name the values of ``metrics.measurement``, and ``p_value_adjusted``, its p-value
    after Benjamini-Hochberg over all names of the file. Only names stand at the top level.

    A text whose record lacks a name counts as unscorable for it. Intervals of two names with equal ``n`` are paired.
    """
    labels = [record["label"] for record in records]
    names = dict.fromkeys(name for record in records for name in record["scores"])
    found = {name: measurement(labels, [record["scores"].get(name) for record in records], seed=seed) for name in names}
    adjusted = benjamini_hochberg([values["p_value"] for values in found.values()])
    for values, p_value in zip(found.values(), adjusted, strict=True):
        values["p_value_adjusted"] = p_value
    return found


def score_lines(records: Iterable[Record]) -> Iterator[str]:
    """``scores.jsonl``: one line ``{"id": ..., "scores": {...}}`` per text, in input order; null: unscorable."""
    for record in records:
        row = {"id": record["id"], "scores": record["scores"]}
        yield json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def _demands(wanted: Yielded) -> Sequence[Demand]:
    return [wanted] if isinstance(wanted, Ask | Score) else wanted


def _advance(
    i: int,
    dialogue: Dialogue[dict[str, float]],
    pending: dict[int, Yielded],
    named: dict[int, dict[str, float]],
    answers: dict[Demand, Any],
) -> None:
    """Runs one detector until it needs an answer that is not there yet, or is done."""
    try:
        if i not in pending:
            pending[i] = next(dialogue)
        while all(demand in answers for demand in _demands(pending[i])):
            replies = [answers[demand] for demand in _demands(pending[i])]
            single = isinstance(pending[i], Ask | Score)
            pending[i] = dialogue.send(replies[0] if single else replies)
    except StopIteration as done:
        pending.pop(i, None)
        named[i] = done.value
