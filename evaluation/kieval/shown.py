"""A KIEval interview as blocks for a reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.show.blocks import Block, say, verdict


def shown(record: Mapping[str, Any]) -> list[Block]:
    first = record["first_answer"]
    read = {True: "right", False: "wrong", None: "unreadable"}[first["correct"]]
    found = [say("candidate", first["text"], f"first answer, {read}")]
    for number, one in enumerate(record["rounds"], start=1):
        found.append(say("interactor", one["question"], f"round {number}"))
        found.append(say("candidate", one["reply"], f"round {number}"))
        judged = one.get("verdict")
        if judged is None:
            found.append(say("evaluator", "", f"round {number}: no verdict after {one.get('attempts')} attempts"))
            continue
        rows = [[a, v["score"], v.get("comment", "")] for a, v in judged.items() if isinstance(v, Mapping)]
        if not rows:
            rows = [["overall", one.get("overall"), ""]]
        stop = f"wishes to stop: {judged.get('reason') or 'no reason'}" if judged.get("stop") else "goes on"
        found.append(verdict("evaluator", rows, f"round {number}; 1 to 4; {stop}"))
    rounds = f"{record['rounds_completed']} of {record['rounds_allowed']} rounds"
    found.append(say("end", f"{record['stop_reason']}", rounds))
    return found
