"""IDGen's exam: a judge scores every answer from 0 to ``max_score``, with the reference at hand (arXiv 2409.18892).

The rubric has few levels on purpose: items are judged by how they separate candidates (``evaluation.item_analysis``),
and each level is to mean something. Any benchmark can be sat: an item without ``references`` has its key for one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from evaluation.asking.form import whole
from evaluation.asking.turns import CANDIDATE_PLAIN, converse, reply_counts, shown_references
from evaluation.asking.verdict import JudgeOptions, Value, VerdictForm, judge
from evaluation.idgen import shown as said
from evaluation.items import Item
from evaluation.protocol import Record
from evaluation.statistics import mean, mean_of
from evaluation.templates import prompt_hash, quote, render
from serving.records import Dialogue, Message, derive_seed

EVALUATOR_SYSTEM = "idgen_evaluator_system.jinja"
EVALUATOR = "idgen_evaluator.jinja"
_LINE = re.compile(
    r"^[^\w\n]*(?:(?:my|the|final|overall)[ ]){0,2}(?:score|mark|rating)\b[^\w\n]{1,8}"
    r"(\d{1,4}(?:[.,]\d+)?)(?:[ ]?(?:/|out of)[ ]?(\d+))?(?!\w|[.,]\d|\s?(?:[-–]|to|or|and)\s?\d)",
    re.IGNORECASE | re.MULTILINE,
)


def score_form(max_score: int) -> VerdictForm:
    """The verdict's form: a whole number from 0 to ``max_score``, on a line ``Score: 2`` in free text."""

    def stated(text: str) -> set[Value]:
        found: set[Value] = set()
        for match in _LINE.finditer(text):
            number, scale = match.groups()
            # a number out of another scale, or with decimals, is stated and no score
            value = whole(number) if scale in (None, str(max_score)) else None
            found.add(match.group() if value is None else value)
        return found

    return VerdictForm(key="score", values=tuple(range(max_score + 1)), stated=stated)


class IDGenExamOptions(JudgeOptions):
    """Those of every judge without dialogue, and the rubric: scores 0..max_score. References are always shown."""

    max_score: int = Field(default=3, ge=1, le=100)
    reference: Literal["auto", "never", "always"] = "always"

    @property
    def form(self) -> VerdictForm:  # type: ignore[override]
        return score_form(self.max_score)


class IDGenExam:
    """The protocol ``idgen``.

    A record: ``item_id``, ``subject``, ``source_id``, ``reply``, ``finish_reason``, ``score`` (0..max_score, or None),
    ``max_score``, ``comment``, ``attempts``, ``status`` (scored, missing_verdict, evaluator_context: its prompt did not
    fit, unanswered: the candidate's did not), ``reference_used``.
    """

    name: ClassVar[str] = "idgen"
    version: ClassVar[int] = 2
    roles: ClassVar[tuple[str, ...]] = ("candidate", "evaluator")
    Options: ClassVar[type[IDGenExamOptions]] = IDGenExamOptions
    shown = staticmethod(said.exam)

    def __init__(self, options: IDGenExamOptions, *, seed: int, exemplars: Sequence[Item] = ()) -> None:
        self.options = options
        self.seed = seed

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        return (self.examine(item) for item in items)

    def examine(self, item: Item) -> Dialogue[Record]:
        """One item: the candidate's answer (to the first turn of a conversation), then the judge's score."""
        options = self.options
        turn = (yield from converse(_single(item), options, self.seed))[0]
        shown = shown_references(_single(item), options.reference)[0]
        judgement = None
        if turn.answered:
            system = render(
                EVALUATOR_SYSTEM,
                max_score=options.max_score,
                reference=bool(shown),
                free=options.verdict == "free",
                comment_length=options.comment_length,
            )
            about = render(
                EVALUATOR,
                question=quote(turn.question),
                reference=quote(shown, options.quote_limit) if shown else "",
                reply=quote(turn.reply, options.quote_limit),
            )
            prompt = (Message(role="system", content=system), Message(role="user", content=about))
            (judgement,) = yield from judge([prompt], ["idgen/score"], options, seed=self.seed, item_id=item.id)
        states = {"given": "scored", "unreadable": "missing_verdict", "context": "evaluator_context"}
        return {
            "item_id": item.id,
            "subject": item.subject,
            "source_id": item.source_id,
            "question": turn.question,
            "reply": turn.reply,
            "finish_reason": turn.finish_reason,
            "score": judgement.value if judgement else None,
            "max_score": options.max_score,
            "comment": judgement.comment if judgement else "",
            "attempts": judgement.attempts if judgement else 0,
            "status": states[judgement.status] if judgement else "unanswered",
            "reference_used": bool(shown) and judgement is not None,
        }

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The set's figures. ``score`` is the mean on the rubric's own scale, ``score_100`` rescaled to 0-100; what has
        no score is counted and never scores 0."""
        best = self.options.max_score
        known = [record["score"] for record in records if record["score"] is not None]
        overall = mean_of(known, seed=derive_seed(self.seed, "idgen", "score"), scale=(0.0, float(best)))
        states, scores = Counter(record["status"] for record in records), Counter(known)
        average = mean(known)
        subjects = {
            name: [record["score"] for record in records if record["subject"] == name and record["score"] is not None]
            for name in sorted({record["subject"] for record in records})
        }
        return {
            "n": len(records),
            "max_score": best,
            **overall.to_json("score", "score_interval"),
            "score_100": None if average is None else 100 * average / best,
            "scored": states["scored"],
            "missing_verdicts": states["missing_verdict"],
            "evaluator_context": states["evaluator_context"],
            "unanswered": states["unanswered"],
            "unscored": len(records) - len(known),
            **reply_counts(records),
            "reference_guided": sum(record["reference_used"] for record in records),
            "scores": {str(value): scores[value] for value in range(best + 1)},
            "subjects": {name: {"n": len(values), "mean": mean(values)} for name, values in subjects.items()},
        }

    def prompt_hashes(self) -> dict[str, str]:
        return {name: prompt_hash(name) for name in (CANDIDATE_PLAIN, EVALUATOR_SYSTEM, EVALUATOR)}


def _single(item: Item) -> Item:
    """The item's first turn."""
    import dataclasses

    return dataclasses.replace(item, followups=(), references=item.references[:1])
