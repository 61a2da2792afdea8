"""Item characteristic curves of a fitted 2-parameter model, with the candidates' abilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.report.evidence import COLOURS
from proctor.report.figures.plate import Plate, canvas

if TYPE_CHECKING:
    from proctor.report.evidence import Evidence

MOST = 200


def draw(evidence: Evidence) -> Plate | None:
    """Reads ``item_curves``: {theta: [...], characteristic: {item: [...]}, abilities: {candidate: theta}}."""
    given = evidence.plotted("item_curves")
    if not given or not given.get("characteristic"):
        return None
    curves = list(given["characteristic"].items())
    figure = canvas()
    axes = figure.add_subplot()
    for _, probabilities in curves[:: max(1, len(curves) // MOST)]:
        axes.plot(given["theta"], probabilities, color=COLOURS[0], alpha=0.3, linewidth=0.9)
    for name, ability in (given.get("abilities") or {}).items():
        style = evidence.style(name) if name in evidence.candidates else None
        axes.axvline(
            ability,
            color=style.colour if style else "#555555",
            linestyle=style.line if style else ":",
            linewidth=1.2,
            label=name,
        )
    axes.set_xlabel("ability (standard deviations of the candidates)")
    axes.set_ylabel("probability of a right answer")
    axes.set_ylim(-0.02, 1.02)
    axes.grid(alpha=0.25)
    if given.get("abilities"):
        figure.legend(loc="outside upper center", ncols=3)
    return Plate(
        name="item_curves",
        title="Item characteristic curves",
        caption=f"2-parameter logistic model of {len(curves)} items, one thin line per item; the upright lines are "
        "the candidates' abilities.",
        figure=figure,
    )
