"""Figures of interviews: a radar of the aspects, and why the interviews ended."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from evaluation.protocol import Held
from evaluation.show.plate import COLOURS, WIDTH, Plate, Style, apart, canvas
from evaluation.statistics import wilson

LEGEND_ROW = 3


def plots(held: Mapping[str, Held], style: Mapping[str, Style]) -> list[Plate]:
    """Both figures of every exam, the radar on the leaked items where there are any."""
    found = []
    for suffix, heading, one in apart(held):
        found += [aspects(one.metrics, style, suffix, heading), stop_reasons(one.metrics, suffix, heading)]
    return [plate for plate in found if plate is not None]


def aspects(metrics: Mapping[str, Any], style: Mapping[str, Style], suffix: str, heading: str) -> Plate | None:
    """One outline per candidate. None where nobody has three aspects."""
    half = "leaked" if any("leaked" in halves for halves in metrics.values()) else "all"
    shown: dict[str, dict[str, dict[str, float | list[float] | None]]] = {}
    for name, halves in metrics.items():
        rows = {a: f["released"] for a, f in (halves.get(half, {}).get("aspects") or {}).items() if f.get("released")}
        rows = {a: f for a, f in rows.items() if f.get("mean") is not None}
        if len(rows) >= 3:
            shown[name] = rows
    if not shown:
        return None
    spokes = list(next(iter(shown.values())))
    turns = [2 * math.pi * i / len(spokes) for i in range(len(spokes))]
    figure = canvas(height=4.3)
    axes = figure.add_subplot(projection="polar")
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    for place, (name, rows) in enumerate(shown.items()):
        look = style[name]
        known = [(turn, rows[spoke]) for turn, spoke in zip(turns, spokes, strict=True) if spoke in rows]
        angles = [turn for turn, _ in known]
        values = [100 * float(entry["mean"]) for _, entry in known]  # type: ignore[arg-type]
        axes.plot(
            [*angles, angles[0]],
            [*values, values[0]],
            look.line,
            color=look.colour,
            marker=look.marker,
            markersize=4,
            linewidth=max(1.2, 3.6 - 0.8 * place),  # outlines that coincide are all seen
            label=name,
        )
        for turn, entry in known:
            if entry.get("interval"):
                low, high = (100 * float(bound) for bound in entry["interval"])  # type: ignore[union-attr]
                axes.plot([turn, turn], [low, high], color=look.colour, alpha=0.5, linewidth=2.5)
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
    which = "the leaked" if half == "leaked" else "all"
    return Plate(
        name=f"aspects{suffix}",
        title=f"KIEval per aspect{heading}",
        caption=f"Mean score x 100 per aspect on {which} items (0 in the centre, 100 at the rim; 10 is the least a "
        "dialogue can get). Thick strokes along the spokes are 95% intervals.",
        figure=figure,
    )


def stop_reasons(metrics: Mapping[str, Any], suffix: str, heading: str) -> Plate | None:
    """Shares of the interviews per candidate, all halves together. None without interviews."""
    counts: dict[str, Counter[str]] = {}
    for name, halves in metrics.items():
        found: Counter[str] = Counter()
        for half in halves.values():
            found.update(half.get("stop_reasons") or {})
        if found:
            counts[name] = found
    if not counts:
        return None
    reasons = [reason for reason, _ in sum(counts.values(), Counter[str]()).most_common()]
    figure = canvas(WIDTH, 1.3 + 0.45 * len(counts) + 0.2 * (len(reasons) // LEGEND_ROW))
    axes = figure.add_subplot()
    rows = list(counts)[::-1]
    for place, reason in enumerate(reasons):
        left = [100 * sum(counts[n][r] for r in reasons[:place]) / counts[n].total() for n in rows]
        width = [100 * counts[n][reason] / counts[n].total() for n in rows]
        axes.barh(
            range(len(rows)),
            width,
            left=left,
            color=COLOURS[place % len(COLOURS)],
            edgecolor="white",
            hatch="//" if place >= len(COLOURS) else None,
            label=reason.replace("_", " "),
        )
        for row, (start, share) in enumerate(zip(left, width, strict=True)):
            if share >= 9:
                axes.text(start + share / 2, row, f"{share:.0f}", ha="center", va="center", color="white", fontsize=9)
    axes.set_yticks(range(len(rows)), [f"{name} (n {counts[name].total()})" for name in rows])
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the interviews, %")
    figure.legend(loc="outside upper center", ncols=LEGEND_ROW)
    smallest = min(counter.total() for counter in counts.values())
    bounds = wilson(smallest // 2, smallest)
    wide = "" if bounds is None else f" A share of {smallest // 2} in {smallest} has the 95% interval "
    return Plate(
        name=f"stop_reasons{suffix}",
        title=f"Why the interviews ended{heading}",
        caption="Leaked and untouched items together; 'rounds': all rounds took place, 'context': a prompt did not "
        "fit, 'unstated': the evaluator gave no reason."
        + (f"{wide}{100 * bounds.low:.0f} to {100 * bounds.high:.0f}%." if bounds else ""),
        figure=figure,
    )
