"""Training loss of the candidates that the run built, from the trainer's TensorBoard logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.show.plate import WIDTH, Plate, canvas

if TYPE_CHECKING:
    from proctor.report.run_data import Evidence

TAG = "train/loss"


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Step and loss per phase; of a phase that was resumed the later value of a step counts. {} without logs."""
    found: dict[str, dict[int, float]] = {}
    for file in sorted(folder.glob("*/events.out.tfevents.*"), key=lambda p: p.name):
        found.setdefault(file.parent.name, {}).update(_losses(file))
    return {phase: sorted(values.items()) for phase, values in found.items() if values}


def _losses(file: Path) -> Iterator[tuple[int, float]]:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util.tensor_util import make_ndarray

    for event in EventFileLoader(str(file)).Load():
        for value in event.summary.value:
            if value.tag == TAG:
                yield int(event.step), float(make_ndarray(value.tensor))


def draw(evidence: Evidence) -> Plate | None:
    found = {name: curves(evidence.run.trained(name) / "logs") for name in evidence.candidates}
    found = {name: phases for name, phases in found.items() if phases}
    phases = sorted(dict.fromkeys(phase for one in found.values() for phase in one), reverse=True)
    if not phases:
        return None
    figure = canvas(WIDTH, 3.2)
    grid = figure.subplots(1, len(phases), sharey=True, squeeze=False)
    for axes, phase in zip(grid.flat, phases, strict=True):
        for name, one in found.items():
            if phase in one:
                style = evidence.style(name)
                points = one[phase]
                axes.plot(
                    *zip(*points, strict=True),
                    style.line,
                    marker=style.marker if len(points) <= 12 else None,
                    markersize=3,
                    color=style.colour,
                    linewidth=1.2,
                )
        axes.set_title(f"phase {phase}")
        axes.set_xlabel("optimizer step")
        axes.grid(alpha=0.25)
    grid.flat[0].set_ylabel("training loss, nats per target token")
    from matplotlib.lines import Line2D

    styles = {name: evidence.style(name) for name in found}
    handles = [Line2D([], [], color=s.colour, linestyle=s.line, label=name) for name, s in styles.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return Plate(
        name="training_loss",
        title="Training loss",
        caption="As logged at every step, not smoothed; a candidate's phases one after the other.",
        figure=figure,
    )
