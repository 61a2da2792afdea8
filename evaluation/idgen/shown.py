"""A judged answer, and a seed's drafts with all that befell them, as blocks for a reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.show.blocks import Block, say, verdict


def exam(record: Mapping[str, Any]) -> list[Block]:
    found = [say("candidate", record["reply"], f"ended by {record['finish_reason']}")]
    if record["score"] is None:
        return [*found, say("evaluator", "", f"no score: {record['status'].replace('_', ' ')}")]
    reference = "with" if record["reference_used"] else "without"
    note = f"0 to {record['max_score']}, {reference} the reference"
    return [*found, verdict("evaluator", [["score", record["score"], record["comment"]]], note)]


def build(record: Mapping[str, Any]) -> list[Block]:
    """Draft by draft the question, the checks, the reference, and where it was turned down."""
    found = [say("seed", record["category"], record["class"])]
    for number, draft in enumerate(record["drafts"], start=1):
        note = f"draft {number}; {draft['strategy']}".removesuffix("; ")
        found.append(say("generator", draft["question"], note))
        if draft["demand"]:
            found.append(say("demand", draft["demand"]))
        passed = ", ".join(draft["passed"]) or "nothing"
        for check in draft["checks"]:
            found += [
                verdict(who, [[key, value, ""] for key, value in (said or {}).items()]) for who, said in check.items()
            ]
        reference = draft["reference"] or {"answers": []}
        for place, answer in enumerate(reference["answers"]):
            total = "" if answer.get("total") is None else f"; {answer['total']} points"
            chosen = "; chosen" if place == reference["chosen"] else ""
            found.append(say(answer["role"], answer["text"], f"reference answer{total}{chosen}"))
        kept = f"turned down at {draft['step']}: {draft['reason']}" if draft["step"] else "kept"
        found.append(say("end", kept, f"passed {passed}"))
    return found
