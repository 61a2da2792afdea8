"""The audit: every chosen detector examines every text, and the scores are weighed against the labels.

``audit_dialogue`` is what a scheduler drives, one per text; ``set_dialogue`` drives one set-level test;
``summarise`` and ``verdict`` are arithmetic on records.

What can be said depends on the labels. With members and non-members: AUC and its company. Without: the scores, their
distribution, the comparison with a reference model where there is one, and conformal p-values where non-members are
known (a file of them, or rows labelled 0). One class only, three texts, texts of 0 or 1 tokens: what can't be computed
is null with a ``reason``, never 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

import numpy as np

from detection.method import Detector, Text, parts, table
from detection.sets.base import Figures, SetTest
from detection.statistics.conformal import conformal, references, summary
from detection.statistics.measurement import measurement
from detection.statistics.metrics import benjamini_hochberg
from detection.text.texts import exam_texts, read_texts
from detection.text.windows import LongTexts, complete
from detection.verdict import AuditVerdict, verdict
from serving.records import Ask, Demand, Dialogue, Score, TokenScores, Yielded

__all__ = [
    "AuditVerdict",
    "Record",
    "audit_dialogue",
    "exam_texts",
    "read_texts",
    "score_lines",
    "set_dialogue",
    "summarise",
    "verdict",
]
QUARTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


class Record(TypedDict):
    """What an audit knows of one text; JSON-ready.

    tokens: tokens scored (format tokens not counted); None where no detector asked for the token table
    part_tokens: the same for "" (the whole text) and, where the text has a prompt, "/prompt" and "/answer"
    overlong: tokens by which the text is longer than the context
    dropped: of these the ones cut from the beginning: all under the policy ``truncate``, none under ``window``
    scores: by name; None means unscorable
    """

    id: str | int
    label: int | None
    tokens: int | None
    part_tokens: dict[str, int]
    overlong: int
    dropped: int
    scores: dict[str, float | None]


def audit_dialogue(
    text: Text, detectors: Sequence[Detector], *, long_texts: LongTexts = "truncate"
) -> Dialogue[Record]:
    """All detectors on one text, advanced together.

    Each yield is the list of what they want to know next, each demand once; what one detector was told is not asked
    again for another. The record's scores stand in the detectors' order.

    long_texts: what becomes of a text that is longer than the context; see ``detection.windows``
    """
    own = (table(text, True), table(text, False))
    overlong = 0
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
        for demand, reply in zip(asked, replies, strict=True):
            overlong = reply.dropped if demand in own else overlong
        if long_texts == "window":
            replies = yield from complete(asked, replies)
        answers.update(zip(asked, replies, strict=True))
        for i in list(pending):
            _advance(i, running[i], pending, named, answers)
    tokens: TokenScores | None = answers.get(own[0], answers.get(own[1]))
    part_tokens = {} if tokens is None else {part.suffix: len(part.logprobs) for part in parts(text, tokens)}
    return Record(
        id=text.id,
        label=text.label,
        tokens=part_tokens.get(""),
        part_tokens=part_tokens,
        overlong=overlong,
        dropped=0 if tokens is None else tokens.dropped,
        scores={
            name: value if math.isfinite(value) else None
            for i in range(len(running))
            for name, value in named[i].items()
        },
    )


def set_dialogue(test: SetTest, texts: Sequence[Text], records: Sequence[Record]) -> Dialogue[Figures]:
    """One set-level test on texts that were audited. It is told, per text, the scores and the numbers of tokens behind
    them: ``tokens``, ``tokens/prompt``, ``tokens/answer``."""
    known = [
        {**record["scores"], **{f"tokens{part}": float(n) for part, n in record["part_tokens"].items()}}
        for record in records
    ]
    return (yield from test.examine(texts, known))


def summarise(records: Sequence[Record], non_members: Sequence[Record] = ()) -> dict[str, dict[str, Any]]:
    """``metrics.json``: per score name the values of ``metrics.measurement``, and ``p_value_adjusted``, its p-value
    after Benjamini-Hochberg over all names of the file. Only names stand at the top level.

    quartiles: least score, quartiles, greatest, over all texts that have one; None where none has
    mean: of the same; for the score ``reference`` it is the comparison with the reference model: positive where the
        candidate expects the texts more
    conformal: where texts have no label and non-members are known, see ``conformal.summary``

    A text whose record lacks a name counts as unscorable for it.

    non_members: records of known non-members that are not under examination
    """
    labels = [record["label"] for record in records]
    names = dict.fromkeys(name for record in records for name in record["scores"])
    unlabelled = any(label is None for label in labels)
    p_values = conformal(records, non_members) if unlabelled else {}
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        scores = [record["scores"].get(name) for record in records]
        found[name] = {**measurement(labels, scores), **_distribution(scores)}
        reference = references(records, non_members, name)
        if unlabelled and reference:
            found[name]["conformal"] = summary(p_values[name], len(reference))
    adjusted = benjamini_hochberg([values["p_value"] for values in found.values()])
    for values, p_value in zip(found.values(), adjusted, strict=True):
        values["p_value_adjusted"] = p_value
    return found


def score_lines(records: Sequence[Record], non_members: Sequence[Record] = ()) -> Iterator[str]:
    """``scores.jsonl``: one line ``{"id": ..., "scores": {...}}`` per text, in input order; null: unscorable.

    A text without a label also has ``conformal``, its p-values by score name, where non-members are known.
    """
    p_values = conformal(records, non_members) if any(record["label"] is None for record in records) else {}
    for i, record in enumerate(records):
        row: dict[str, Any] = {"id": record["id"], "scores": record["scores"]}
        known = {name: values[i] for name, values in p_values.items() if values[i] is not None}
        if known:
            row["conformal"] = known
        yield json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def _distribution(scores: Sequence[float | None]) -> dict[str, Any]:
    known = [score for score in scores if score is not None and math.isfinite(score)]
    if not known:
        return {"mean": None, "quartiles": None}
    quartiles = [float(value) for value in np.quantile(known, QUARTILES)]
    return {"mean": math.fsum(known) / len(known), "quartiles": quartiles}


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
