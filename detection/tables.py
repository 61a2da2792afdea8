"""An audit as tables of a report: its columns of the contamination table, detectors, set-level tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.show.table import Cell, Column, Table, count, figure

COLUMNS = (
    Column(
        *("loss_gap", "loss gap", 1, 2, 0),
        said="Loss gap: nats per token, untouched minus leaked; positive means leakage.",
    ),
    Column("auc", "Min-K% AUC", 1, 2, 0),
)
"""``auc`` is that of the first headline detector."""
_SET_COLUMNS = ("p_value", "p_value_adjusted", "n")
Candidates = Mapping[str, Mapping[str, Any]]
"""By name a candidate's part of summary.json: ``detection`` and ``set_tests``."""


def detectors(candidates: Candidates) -> Table:
    """Rows score name, a column per candidate: AUC. Whole-text scores first."""
    names = list(candidates)
    scores = dict.fromkeys(score for c in candidates.values() for score in c["detection"])
    body = []
    for score in sorted(scores, key=lambda score: "/" in score):
        measured = [candidates[name]["detection"].get(score) or {} for name in names]
        body.append([Cell(score), *(figure(m.get("auc"), m.get("auc_ci"), 1, 3) for m in measured)])
    caption = (
        'AUC, leaked against untouched texts; whole text first, then by segment (/prompt, /answer). "base" is the '
        "untouched base model: the control."
    )
    return Table("detectors", caption, ("score", *names), body, title="Detectors")


def set_tests(candidates: Candidates) -> Table:
    """Rows candidate x set-level test: p-values, and the test's own headline figures."""
    body = []
    for name, c in candidates.items():
        for test, figures in c["set_tests"].items():
            p_values = [figures.get("p_value"), figures.get("p_value_adjusted")]
            others = [
                f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
                for key, value in figures.items()
                if isinstance(value, int | float) and not isinstance(value, bool) and key not in _SET_COLUMNS
            ]
            body.append(
                [
                    Cell(name),
                    Cell(test),
                    *(Cell("-") if p is None else Cell(f"{p:.2g}", p) for p in p_values),
                    Cell("-") if figures.get("n") is None else count(figures["n"]),
                    Cell("; ".join(others) or "-"),
                    Cell(str(figures.get("reason") or "")),
                ]
            )
    caption = "Tests of the set as a whole; small p means leakage. A set-level test alone convicts nobody."
    header = ("candidate", "test", "p", "p adjusted", "n", "figures", "note")
    return Table("set_tests", caption, header, body, title="Set-level tests")
