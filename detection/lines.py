"""What ``proctor detect`` prints at its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from detection.statistics.conformal import LEVEL


def show_audit(out: Path, texts: int) -> None:
    """A line per score of the whole text, a line per set-level test, and what became of long texts."""
    table = _read(out / "metrics.json")
    print(f"{texts} texts; scores: {out / 'scores.jsonl'}")
    for reason in sorted({row["reason"] for row in table.values() if row.get("reason")}):
        print(f"  no AUC: {reason}")
    for name, row in table.items():
        if "/" not in name:
            print(f"  {name:22} {_line(row)}")
    if (out / "set_tests.json").is_file():
        for name, row in _read(out / "set_tests.json").items():
            p = f"p {row['p_value']:.3g}" if row["p_value"] is not None else f"no p-value: {row.get('reason', '')}"
            print(f"  set: {name:17} {p}  n {row['n']}")
    if (out / "verdict.json").is_file():
        found = _read(out / "verdict.json")
        blind = found["blind_baseline"]
        if blind["auc"] is not None:
            print("  {:22} AUC {:.3f} [{:.3f}, {:.3f}]".format("blind (no model)", blind["auc"], *blind["auc_ci"]))
        print(f"  verdict: {found['outcome']}: {found['reason']}")
    overlong = _read(out / "usage.json")["long_texts"]
    if overlong["texts"]:
        done = "scored in windows" if overlong["policy"] == "window" else f"{overlong['dropped_tokens']} tokens cut"
        print(f"  {overlong['texts']} texts longer than the context: {done}")


def _line(row: dict[str, Any]) -> str:
    conformal = row.get("conformal")
    if row["auc"] is not None:
        low, high = row["auc_ci"]
        rate = "-" if row["tpr_at_5"] is None else f"{row['tpr_at_5']:.3f}"
        text = f"AUC {row['auc']:.3f} [{low:.3f}, {high:.3f}]  TPR@5%FPR {rate}  n {row['n']}"
    elif row["mean"] is not None:
        low, middle, high = row["quartiles"][1:4]
        text = f"mean {row['mean']:.3f}, quartiles {low:.3f} {middle:.3f} {high:.3f}"
    else:
        text = "no text with a score"
    if conformal and conformal["n_reference"] and conformal["least"] > LEVEL:
        text += f"; {conformal['n_reference']} known non-members are too few to flag a text (19 could)"
    elif conformal:
        text += f"; {conformal['n_flagged']} of {conformal['n']} unlike {conformal['n_reference']} known non-members"
    return text


def _read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value
