"""Radar of KIEval's aspects, one outline per candidate (leaked items)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evaluation.show.plate import Plate, canvas

if TYPE_CHECKING:
    from proctor.report.run_data import Evidence


def draw(evidence: Evidence) -> Plate | None:
    shown: dict[str, dict[str, dict[str, float | list[float] | None]]] = {}
    for name in evidence.candidates:
        half = evidence.figures("kieval", name).get("leaked", {})
        aspects = {a: f["released"] for a, f in (half.get("aspects") or {}).items() if f.get("released")}
        aspects = {a: f for a, f in aspects.items() if f.get("mean") is not None}
        if len(aspects) >= 3:
            shown[name] = aspects
    if not shown:
        return None
    spokes = list(next(iter(shown.values())))
    turns = [2 * math.pi * i / len(spokes) for i in range(len(spokes))]
    figure = canvas(height=4.3)
    axes = figure.add_subplot(projection="polar")
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    for place, (name, aspects) in enumerate(shown.items()):
        style = evidence.style(name)
        known = [(turn, aspects[spoke]) for turn, spoke in zip(turns, spokes, strict=True) if spoke in aspects]
        angles = [turn for turn, _ in known]
        values = [100 * float(entry["mean"]) for _, entry in known]  # type: ignore[arg-type]
        axes.plot(
            [*angles, angles[0]],
            [*values, values[0]],
            style.line,
            color=style.colour,
            marker=style.marker,
            markersize=4,
            linewidth=max(1.2, 3.6 - 0.8 * place),  # outlines that coincide are all seen
            label=name,
        )
        for turn, entry in known:
            if entry.get("interval"):
                low, high = (100 * float(bound) for bound in entry["interval"])  # type: ignore[union-attr]
                axes.plot([turn, turn], [low, high], color=style.colour, alpha=0.5, linewidth=2.5)
    axes.set_xticks(turns, [""] * len(spokes))
    for turn, spoke in zip(turns, spokes, strict=True):
        across = math.sin(turn)  # names end or begin at the rim, so that none is cut or crosses a line
        side = "center" if abs(across) < 0.1 else "left" if across > 0 else "right"
        axes.text(turn, 108, spoke, ha=side, va="center")
    axes.set_ylim(0, 100)
    axes.set_yticks([25, 50, 75, 100])
    axes.set_rlabel_position(180 / len(spokes))
    axes.tick_params(axis="y", labelsize=8, colors="#555555")
    figure.legend(loc="outside upper center", ncols=3)
    return Plate(
        name="aspects",
        title="KIEval per aspect",
        caption="Mean score x 100 per aspect on the leaked items (0 in the centre, 100 at the rim; 10 is the least a "
        "dialogue can get). Thick strokes along the spokes are 95% intervals.",
        figure=figure,
    )
