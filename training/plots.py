"""Training loss of the candidates that the run built, from the trainer's TensorBoard logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from evaluation.show.plate import WIDTH, Plate, Style, canvas

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


def training_loss(folders: Mapping[str, Path], style: Mapping[str, Style]) -> Plate | None:
    """One line per candidate in a panel per phase. folders: of the logs, by candidate"""
    found = {name: curves(folder) for name, folder in folders.items()}
    found = {name: phases for name, phases in found.items() if phases}
    phases = sorted(dict.fromkeys(phase for one in found.values() for phase in one), reverse=True)
    if not phases:
        return None
    from matplotlib.lines import Line2D

    figure = canvas(WIDTH, 3.2)
    grid = figure.subplots(1, len(phases), sharey=True, squeeze=False)
    for axes, phase in zip(grid.flat, phases, strict=True):
        for name, one in found.items():
            if phase in one:
                look = style[name]
                points = one[phase]
                axes.plot(
                    *zip(*points, strict=True),
                    look.line,
                    marker=look.marker if len(points) <= 12 else None,
                    markersize=3,
                    color=look.colour,
                    linewidth=1.2,
                )
        axes.set_title(f"phase {phase}")
        axes.set_xlabel("optimizer step")
        axes.grid(alpha=0.25)
    grid.flat[0].set_ylabel("training loss, nats per target token")
    handles = [Line2D([], [], color=style[n].colour, linestyle=style[n].line, label=n) for n in found]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return Plate(
        name="training_loss",
        title="Training loss",
        caption="As logged at every step, not smoothed; a candidate's phases one after the other.",
        figure=figure,
    )
