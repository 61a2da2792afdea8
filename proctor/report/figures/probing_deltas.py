"""Accuracy before and after probing, per candidate and principle, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.report.figures.plate import WIDTH, Plate, canvas

if TYPE_CHECKING:
    from proctor.report.evidence import Evidence


def draw(evidence: Evidence) -> Plate | None:
    """Reads ``probing.deltas``: {candidate: {principle: {difference, interval}}}, differences in [-1, 1]."""
    given = (evidence.plotted("probing") or {}).get("deltas")
    if not given:
        return None
    principles = list(dict.fromkeys(principle for one in given.values() for principle in one))
    figure = canvas(WIDTH, 1.4 + len(principles) * max(0.36, 0.12 * len(given)))
    axes = figure.add_subplot()
    axes.axvline(0, color="black", linewidth=1)
    for place, (name, one) in enumerate(given.items()):
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
                xerr=None if not bounds else [[middle - 100 * bounds[0]], [100 * bounds[1] - middle]],
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
        name="probing_deltas",
        title="What probing changes",
        caption="Below zero: the candidate does worse once the items are rewritten, as one does that recalls them.",
        figure=figure,
    )
