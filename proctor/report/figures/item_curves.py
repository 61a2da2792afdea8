"""Item characteristic curves of a fitted 2-parameter model, with the candidates' abilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.show.plate import COLOURS, Plate, canvas

if TYPE_CHECKING:
    from proctor.report.run_data import Evidence, Plotted

MOST = 200


def draw(evidence: Evidence) -> list[Plate]:
    """Reads ``item_curves``: {theta: [...], characteristic: {item: [...]}, abilities: {candidate: theta}}."""
    return [_plate(evidence, one) for one in evidence.plotted("item_curves") if one.data.get("characteristic")]


def _plate(evidence: Evidence, plotted: Plotted) -> Plate:
    given = plotted.data
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
    axes.set_ylabel("expected share of the maximum score")
    axes.set_ylim(-0.02, 1.02)
    axes.grid(alpha=0.25)
    if given.get("abilities"):
        figure.legend(loc="outside upper center", ncols=3)
    return Plate(
        name=f"item_curves{plotted.suffix}",
        title=f"Item characteristic curves{plotted.heading}",
        caption=f"2-parameter logistic model of {len(curves)} items, one thin line per item; the upright lines are "
        "the candidates' abilities.",
        figure=figure,
    )
