"""The figures of a report: its own, those of the audit and of training, and what each kind of exam draws of itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from detection import plots as audit
from evaluation.show.plate import Drawing, Plate, draw
from evaluation.show.win_rates import matrix, win_rates
from proctor.report import accuracy_against_kieval, dose
from proctor.report.run_data import RunData
from training.plots import training_loss


def draw_all(data: RunData, summary: dict[str, Any], folder: Path) -> list[Drawing]:
    """Draws what the run has records for and writes each as SVG and PNG."""
    return draw(lambda: _plates(data, summary), folder)


def _plates(data: RunData, summary: dict[str, Any]) -> Iterator[Plate]:
    if (plate := accuracy_against_kieval.draw(summary)) is not None:
        yield plate
    shown = [plate for plots, held in data.hooked("plots") for plate in plots(held, data.styles)]
    if not any(plate.name.startswith("win_rates") for plate in shown) and (plate := _by_score(data)) is not None:
        shown.append(plate)
    yield from shown
    measured = {name: candidate["detection"] for name, candidate in summary["candidates"].items()}
    yield from audit.plots(data.detected, measured, summary["blind_baseline"], data.styles)
    if (
        plate := training_loss({name: data.run.trained(name) / "logs" for name in data.names}, data.styles)
    ) is not None:
        yield plate
    if (plate := dose.draw(summary)) is not None:
        yield plate


def _by_score(data: RunData) -> Plate | None:
    """Win rates by an exam's own scores: of the first exam with scores of at least two candidates. None where all
    scores are equal, for every pair ties then."""
    for exam, sat in data.sittings.items():
        scores = {
            name: {row.item: row.score for row in sitting.scored if row.score is not None and not row.right_or_wrong}
            for name, sitting in sat.items()
        }
        scores = {name: found for name, found in scores.items() if found}
        if scores:
            different = len({score for found in scores.values() for score in found.values()})
            about = f"Exam {exam}: a win is a higher score on the same item"
            return win_rates(list(scores), matrix(scores), about) if len(scores) > 1 and different > 1 else None
    return None
