"""MT-Bench and pairwise conversations as blocks for a reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.show.blocks import Block, say, verdict


def mt_bench(record: Mapping[str, Any]) -> list[Block]:
    found = []
    for number, turn in enumerate(record["turns"], start=1):
        found += _turn(number, turn)
        row = ["rating", turn["rating"], turn.get("comment") or ""]
        found.append(verdict("evaluator", [row], f"turn {number}; 1 to 10"))
    return found


def pairwise(record: Mapping[str, Any]) -> list[Block]:
    found = []
    for number, turn in enumerate(record["turns"], start=1):
        found += [*_turn(number, turn), say("baseline", turn["baseline"])]
        rows = [[order.replace("_", " "), v["choice"], v.get("comment") or ""] for order, v in turn["verdicts"].items()]
        result = f"turn {number}; {turn['result'] or 'no result'}{'; inconsistent' if turn['inconsistent'] else ''}"
        found.append(verdict("evaluator", rows, result))
    return found


def _turn(number: int, turn: Mapping[str, Any]) -> list[Block]:
    asked = say("user", turn["question"], f"turn {number}")
    return [asked, say("candidate", turn["reply"], f"ended by {turn['finish_reason']}")]
