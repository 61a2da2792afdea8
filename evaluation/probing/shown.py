"""The agent's rewrites and the judge's calibration as blocks for a reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.show.blocks import Block, say, verdict


def build(record: Mapping[str, Any]) -> list[Block]:
    """Stage by stage each attempt with what became of it, then the version that came out."""
    found = [say("set", str(record["set"]), record["benchmark"])]
    for name, stage in {**record["question"], **record["choices"]}.items():
        for number, attempt in enumerate(stage["attempts"], start=1):
            found.append(say("prober", attempt["text"], f"{name}, attempt {number}"))
            by_code = attempt["result"].startswith(("code", "unparsable", "unchanged"))
            found.append(
                say("code" if by_code else "judge", attempt["result"].removeprefix("code: "), attempt["reason"])
            )
        version = stage["stem"] if "stem" in stage else "\n".join(stage["options"])
        note = f"{name}: {stage['status'].replace('_', ' ')}; {stage['reason']}".removesuffix("; ")
        found.append(say("version", version, note))
    return found


def calibrate(record: Mapping[str, Any]) -> list[Block]:
    """Each known pair with the judge's word: ``yes`` accepts the rewrite."""
    if not record["pairs"]:
        return [say("end", "no pairs are known of this item")]
    rows = [[f"{p['pair']}: {p['principle']}, {p['kind']}", p["verdict"], p["comment"]] for p in record["pairs"]]
    return [verdict("candidate", rows, "does the rewrite keep what the principle asks? (good ones: yes)")]
