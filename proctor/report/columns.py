"""The contamination table (KIEval's Table 3): its rows and columns, for the terminal and the page alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

HEADLINE = "min_k@20"


@dataclass(frozen=True)
class Cell:
    """text as shown; value for sorting, None where there is no figure."""

    text: str
    value: float | None = None


HEADER = (
    "candidate",
    "acc. leaked %",
    "acc. untouched %",
    "KIEval",
    "KIEval untouched",
    "rounds",
    "loss gap",
    "Min-K% AUC",
    "verdict",
)


def rows(summary: dict[str, Any]) -> list[list[Cell]]:
    """One row per candidate; figures with their 95% intervals in brackets."""
    return [_row(name, candidate) for name, candidate in summary["candidates"].items()]


def _row(name: str, c: dict[str, Any]) -> list[Cell]:
    auc = c["detection"].get(HEADLINE) or {}
    return [
        Cell(name),
        figure(c.get("accuracy_leaked"), c.get("accuracy_leaked_ci"), 100, 1),
        figure(c.get("accuracy_untouched"), c.get("accuracy_untouched_ci"), 100, 1),
        figure(c.get("kieval"), c.get("kieval_ci"), 100, 1),
        figure(c.get("kieval_untouched"), c.get("kieval_untouched_ci"), 100, 1),
        figure(c.get("rounds"), c.get("rounds_ci"), 1, 2),
        figure(c.get("loss_gap"), c.get("loss_gap_ci"), 1, 2),
        figure(auc.get("auc"), auc.get("auc_ci"), 1, 2),
        Cell((c.get("verdict") or {}).get("outcome", "")),
    ]


def figure(value: float | None, interval: Sequence[float] | None, scale: float, digits: int) -> Cell:
    """``68.8 [51.4, 82.0]``; ``-`` where there is no value."""
    if value is None:
        return Cell("-")
    text = f"{value * scale:.{digits}f}"
    if interval:
        low, high = (f"{bound * scale:.{digits}f}" for bound in interval)
        text += f" [{low}, {high}]"
    return Cell(text, value)
