"""The validity filter: an exam only of items that the evaluator itself answers correctly (KIEval, section 4.1).

A judge that doesn't know the answer can't tell a good reply from a bad one. The evaluator is asked the very first thing
that a candidate is asked (same text, greedy); ``choose`` keeps the first n of the items it got right, in the exam's
frozen order. That needs the evaluator's model alone, so it is done once per experiment and the list is frozen: all
candidates face the same questions, whatever they answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evaluation.items import Item
from evaluation.kieval import prompts as prompts
from evaluation.kieval.options import OpeningOptions
from evaluation.kieval.prompts import opening, read_answer
from evaluation.protocol import ProtocolOptions, Record
from evaluation.statistics import wilson
from serving.records import Completion, Dialogue


class Prefilter:
    """The evaluator takes the exam.

    Options: those of KIEval's opening (``OpeningOptions``); they must be the candidates' for the texts to be the same.
    A record: ``item_id``, ``text``, ``letter`` (None: unparsable, or an open question), ``correct`` (None: unparsable).
    """

    name: ClassVar[str] = "prefilter"
    version: ClassVar[int] = 2
    roles: ClassVar[tuple[str, ...]] = ("evaluator",)
    Options: ClassVar[type[ProtocolOptions]] = OpeningOptions

    def __init__(self, options: OpeningOptions, *, seed: int = 0, exemplars: Sequence[Item] = ()) -> None:
        self.options = options

    @classmethod
    def of(cls, exam: OpeningOptions) -> Prefilter:
        """The filter that belongs to a KIEval exam with these options (``KIEvalOptions``)."""
        return cls(OpeningOptions(**{name: getattr(exam, name) for name in OpeningOptions.model_fields}))

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        return (self._ask(item) for item in items)

    def _ask(self, item: Item) -> Dialogue[Record]:
        completion: Completion = yield opening(item, self.options, role="evaluator")
        return {"item_id": item.id, **read_answer(item, completion)}

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``right``, ``wrong`` and ``unparsable`` of ``n``, and ``accuracy`` = right / n with Wilson's interval."""
        counts = _count(records)
        interval = wilson(counts["right"], len(records))
        return {
            "n": len(records),
            "accuracy": counts["right"] / len(records) if records else None,
            "accuracy_interval": list(interval) if interval else None,
            **counts,
        }

    def prompt_hashes(self) -> dict[str, str]:
        return prompts.hashes((prompts.CANDIDATE_SYSTEM, prompts.CANDIDATE_PLAIN))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The items of a filtered exam.

    items: in the exam's order
    wrong, unparsable: items that were passed over before the last one needed
    asked: items that were looked at, these and those
    shortfall: how many fewer than wanted (0 where all were wanted)
    """

    items: tuple[Item, ...]
    wrong: int
    unparsable: int
    asked: int
    shortfall: int = 0

    def note(self) -> str:
        """One line for a log or a report."""
        passed = f"{self.wrong} answered wrongly and {self.unparsable} unparsably by the evaluator are left out"
        lacking = f"; {self.shortfall} fewer than wanted, for the exam has no more" if self.shortfall else ""
        return f"{len(self.items)} of the first {self.asked} items are kept: {passed}{lacking}"


def choose(records: Sequence[Mapping[str, Any]], items: Sequence[Item], n: int | None = None) -> Choice:
    """The first ``n`` items (None: all) that the evaluator answered correctly.

    records: of ``Prefilter``, in any order; those of later items may be lacking where n are found before them
    items: the whole exam in its frozen order; an item that stands in it twice is kept twice
    With fewer than n correct ones, all of them are returned and ``shortfall`` says how many are lacking. ValueError for
    an n below 1, an item that was needed and not asked, and records that contradict each other.
    """
    if n is not None and n < 1:
        raise ValueError(f"n is {n}; it must be at least 1, or None for all items")
    correct: dict[str, bool | None] = {}
    for record in records:
        known = correct.setdefault(record["item_id"], record["correct"])
        if known != record["correct"]:
            raise ValueError(f"two records of item {record['item_id']} say {known} and {record['correct']}")
    kept: list[Item] = []
    passed: list[Mapping[str, Any]] = []
    for item in items:
        if len(kept) == n:
            break
        if item.id not in correct:
            raise ValueError(f"item {item.id} has no record of the prefilter; ask the evaluator about all items first")
        if correct[item.id] is True:
            kept.append(item)
        else:
            passed.append({"correct": correct[item.id]})
    counts = _count(passed)
    return Choice(
        items=tuple(kept),
        wrong=counts["wrong"],
        unparsable=counts["unparsable"],
        asked=len(kept) + len(passed),
        shortfall=0 if n is None else n - len(kept),
    )


def _count(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    answers = [record["correct"] for record in records]
    return {"right": answers.count(True), "wrong": answers.count(False), "unparsable": answers.count(None)}
