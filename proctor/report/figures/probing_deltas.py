"""Accuracy before and after probing, per candidate and principle, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.show.plate import WIDTH, Plate, canvas

if TYPE_CHECKING:
    from proctor.report.run_data import Evidence, Plotted


def draw(evidence: Evidence) -> list[Plate]:
    """Reads ``probing.deltas``: {candidate: {set: {difference, interval}}}, differences in [-1, 1]."""
    return [_plate(evidence, one) for one in evidence.plotted("probing") if one.data.get("deltas")]


def _plate(evidence: Evidence, plotted: Plotted) -> Plate:
    given = plotted.data["deltas"]
    principles = list(dict.fromkeys(principle for one in given.values() for principle in one))
    figure = canvas(WIDTH, 1.4 + len(principles) * max(0.36, 0.12 * len(given)))
    axes = figure.add_subplot()
    axes.axvline(0, color="black", linewidth=1)
    for place, (name, one) in enumerate(given.items()):
        if name not in evidence.candidates:  # a former experiment's
            continue
        style = evidence.style(name)
        offset = (place - (len(given) - 1) / 2) * min(0.26, 0.8 / len(given))
        for row, principle in enumerate(principles):
            entry = one.get(principle)
            if not entry or entry.get("difference") is None:
                continue
            middle, bounds = 100 * entry["difference"], entry.get("interval")
            axes.errorbar(
                middle,
                row + offset,
                xerr=None
                if not bounds
                else [[max(0.0, middle - 100 * bounds[0])], [max(0.0, 100 * bounds[1] - middle)]],
                fmt=style.marker,
                color=style.colour,
                markersize=4,
                capsize=2,
                label=name if principle == next(iter(one)) else None,
            )
    axes.set_yticks(range(len(principles)), principles)
    axes.set_ylim(len(principles) - 0.5, -0.5)
    axes.set_xlabel("accuracy on probed minus vanilla items, percentage points (95% interval)")
    axes.grid(axis="x", alpha=0.25)
    figure.legend(loc="outside upper center", ncols=3)
    return Plate(
        name=f"probing_deltas{plotted.suffix}",
        title=f"What probing changes{plotted.heading}",
        caption="Below zero: the candidate does worse once the items are rewritten. A drop alone is no evidence of "
        "contamination: a broken rewrite and a harder item lower it, too.",
        figure=figure,
    )
