"""A KIEval interview as blocks for a reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.show.blocks import Block, say


def _kieval(record: Mapping[str, Any]) -> list[Block]:
    first = record["first_answer"]
    judged = {True: "right", False: "wrong", None: "unreadable"}[first["correct"]]
    found = [say("candidate", first["text"], f"first answer, {judged}")]
    for number, one in enumerate(record["rounds"], start=1):
        found.append(say("interactor", one["question"], f"round {number}"))
        found.append(say("candidate", one["reply"], f"round {number}"))
        verdict = one.get("verdict")
        if verdict is None:
            found.append(say("evaluator", "", f"round {number}: no verdict after {one.get('attempts')} attempts"))
            continue
        rows = [[a, v["score"], v.get("comment", "")] for a, v in verdict.items() if isinstance(v, Mapping)]
        if not rows:
            rows = [["overall", one.get("overall"), ""]]
        stop = f"wishes to stop: {verdict.get('reason') or 'no reason'}" if verdict.get("stop") else "goes on"
        found.append({"t": "verdict", "who": "evaluator", "rows": rows, "n": f"round {number}; 1 to 4; {stop}"})
    rounds = f"{record['rounds_completed']} of {record['rounds_allowed']} rounds"
    found.append(say("end", f"{record['stop_reason']}", rounds))
    return found
