"""How good a judge is: pairs of items and rewrites of which we know whether they are good, or what is wrong with them.

The pairs (``evaluation/data/probing_calibration.jsonl``) were written for this project from the embedded exam's items:
good rewrites by each principle, and deliberately broken ones. MPA's finding behind it: a weak judge lets corrupted
items pass, and a probed benchmark is worth no more than its judge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from evaluation.items import Item
from evaluation.probing.version import Version
from evaluation.statistics import wilson

FILE: Final = "probing_calibration.jsonl"
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
    text = (resources.files("evaluation") / "data" / FILE).read_text(encoding="utf-8")
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
