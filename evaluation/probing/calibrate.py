"""The protocol ``probing.calibrate``: the examined model is the judge of meta probing (arXiv 2402.14865, section 3.1).

It judges rewrites whose worth is known (``evaluation.probing.calibrate``) exactly as it would in the builder
``probing``: same prompts, same form of verdict, the original as the version before the change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, ClassVar, Final

from evaluation.asking.until_read import together
from evaluation.items import Item
from evaluation.probing import judge
from evaluation.probing import shown as said
from evaluation.probing.judge import AcceptOptions
from evaluation.probing.version import Version
from evaluation.protocol import ProtocolOptions, Record
from evaluation.statistics import wilson
from serving.records import Dialogue


class ProbingCalibrate:
    """The protocol ``probing.calibrate``, on the embedded exam. Options: the judge's (``evaluation.probing.judge``).

    A record: ``item_id``, ``subject``, ``pairs`` [{pair, principle, kind, verdict (yes, no, None), comment, attempts}];
    empty for an item of which there are no pairs.
    """

    name: ClassVar[str] = "probing.calibrate"
    version: ClassVar[int] = 1
    roles: ClassVar[tuple[str, ...]] = ("candidate",)
    Options: ClassVar[type[ProtocolOptions]] = AcceptOptions
    shown = staticmethod(said.calibrate)

    def __init__(self, options: AcceptOptions, *, seed: int, exemplars: Sequence[Item] = ()) -> None:
        self.options = options
        self.seed = seed

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        """ValueError where none of the items has a pair: the pairs belong to the embedded exam."""
        by_item: dict[str, list[Pair]] = {}
        for pair in pairs():
            by_item.setdefault(pair.item_id, []).append(pair)
        if items and not any(item.id in by_item for item in items):
            raise ValueError(
                "none of these items has calibration pairs: they belong to the embedded exam (in an experiment: "
                "benchmark: {format: embedded}; with 'proctor evaluate': --format embedded, without --benchmark)"
            )
        return (self._judge(item, by_item.get(item.id, [])) for item in items)

    def _judge(self, item: Item, known: Sequence[Pair]) -> Dialogue[Record]:
        vanilla = Version.of(item)
        judgements = yield from together(
            [
                judge.accept(
                    pair.principle,
                    vanilla=vanilla,
                    before=vanilla,
                    after=pair.version(item),
                    options=self.options,
                    seed=self.seed,
                    step=f"probing.calibrate/{pair.id}",
                    item_id=item.id,
                    role="candidate",
                )
                for pair in known
            ]
        )
        return {
            "item_id": item.id,
            "subject": item.subject,
            "pairs": [
                {
                    "pair": pair.id,
                    "principle": pair.principle,
                    "kind": pair.kind,
                    "verdict": judgement.value,
                    "comment": judgement.comment,
                    "attempts": judgement.attempts,
                }
                for pair, judgement in zip(known, judgements, strict=True)
            ],
        }

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``n`` items with pairs, and the figures of ``evaluation.probing.calibrate``."""
        judged = [record for record in records if record["pairs"]]
        return {"n": len(judged), **figures([row for record in judged for row in record["pairs"]])}

    def prompt_hashes(self) -> dict[str, str]:
        return judge.hashes()


FILE: Final = "calibration.jsonl"
GOOD: Final = "good"
KINDS: Final = (GOOD, "changed number", "changed answer", "second correct option", "lost condition", "off-topic")
ENOUGH: Final = 0.8
"""Recall on broken rewrites below which a judge is warned of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One rewrite of one item of the embedded exam.

    kind: ``good``, or the defect
    question, choices: what the rewrite puts in their place (None: as they were); the key's index stays
    """

    id: str
    item_id: str
    principle: str
    kind: str
    question: str | None = None
    choices: tuple[str, ...] | None = None

    def version(self, item: Item) -> Version:
        """The rewritten version of the pair's item."""
        version = Version.of(item)
        if self.question is not None:
            version = version.asking(self.question)
        return version if self.choices is None else version.offering(self.choices)


def pairs() -> list[Pair]:
    """All pairs, in the order of the file."""
    text = (resources.files("evaluation.probing") / "data" / FILE).read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return [Pair(**{**row, "choices": tuple(row["choices"]) if "choices" in row else None}) for row in rows]


def figures(verdicts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The judge's figures from its verdicts {principle, kind, verdict (yes, no or None)}.

    ``recall``: share of the broken rewrites that were turned down; ``false_alarms``: share of the good ones. A missing
    verdict turns a rewrite down, as in the loop, and is counted in ``missing``. ``informedness`` = recall - false
    alarms: 0 for a judge that says the same to everything. ``warning`` where recall is below 0.8 or informedness is not
    told from nothing by eye: at most 0.
    """
    broken = [row for row in verdicts if row["kind"] != GOOD]
    good = [row for row in verdicts if row["kind"] == GOOD]
    recall, alarms = _turned_down(broken), _turned_down(good)
    result = {
        "pairs": len(verdicts),
        "missing": sum(row["verdict"] is None for row in verdicts),
        "recall": recall["value"],
        "recall_interval": recall["interval"],
        "false_alarms": alarms["value"],
        "false_alarms_interval": alarms["interval"],
        "informedness": None if None in (recall["value"], alarms["value"]) else recall["value"] - alarms["value"],
        "kinds": {kind: _turned_down([row for row in broken if row["kind"] == kind]) for kind in KINDS[1:]},
        "principles": {
            name: {
                "recall": _turned_down([row for row in broken if row["principle"] == name]),
                "false_alarms": _turned_down([row for row in good if row["principle"] == name]),
            }
            for name in sorted({row["principle"] for row in verdicts})
        },
    }
    return {**result, "warning": warning(result)}


def warning(calibration: Mapping[str, Any]) -> str:
    """What is to be said beside a result that this judge accepted; "" for a judge that is good enough."""
    recall, informedness = calibration["recall"], calibration["informedness"]
    if recall is None:
        return "the judge's recall on broken rewrites is not known"
    if recall < ENOUGH:
        return (
            f"the judge turned down {recall:.0%} of the broken rewrites, less than {ENOUGH:.0%}: some of the accepted "
            "items are broken, and a drop on them is not the candidate's"
        )
    if informedness is not None and informedness <= 0:
        return "the judge turns down good rewrites as often as broken ones: its verdicts say nothing"
    return ""


def _turned_down(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    count = sum(row["verdict"] != "yes" for row in rows)
    interval = wilson(count, len(rows))
    return {
        "value": count / len(rows) if rows else None,
        "interval": list(interval) if interval else None,
        "n": len(rows),
    }
