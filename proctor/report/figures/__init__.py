"""Figures of the report. One is one file with ``draw(evidence)`` and one line here.

It gives a plate, or one for each stage that has data of its kind; None or an empty list where the run has no records
for it: the figure appears when they are there.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluation.show.plate import Drawing, Plate
    from proctor.report.run_data import Evidence

    Draw = Callable[[Evidence], Plate | list[Plate] | None]

FIGURES = (
    "accuracy_against_kieval",
    "aspects",
    "stop_reasons",
    "win_rates",
    "auc",
    "roc",
    "scores",
    "training_loss",
    "dose_response",
    "probing_deltas",
    "probing_churn",
    "item_curves",
    "question_map",
)


def draw_all(evidence: Evidence, folder: Path) -> list[Drawing]:
    """Draws what the run has records for, in the registry's order, and writes each as SVG and PNG."""
    from evaluation.show.plate import look, save

    drawn = []
    with look():
        for name in FIGURES:
            draw: Draw = import_module(f"proctor.report.figures.{name}").draw
            plates = draw(evidence) or []
            drawn += [save(plate, folder) for plate in (plates if isinstance(plates, list) else [plates])]
    return drawn
