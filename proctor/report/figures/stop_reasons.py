"""Why the interviews ended, per candidate."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evaluation.show.plate import COLOURS, WIDTH, Plate, canvas
from evaluation.statistics import wilson

if TYPE_CHECKING:
    from proctor.report.run_data import Evidence

LEGEND_ROW = 3


def draw(evidence: Evidence) -> Plate | None:
    counts: dict[str, Counter[str]] = {}
    for name in evidence.candidates:
        found: Counter[str] = Counter()
        for half in evidence.figures("kieval", name).values():
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
        name="stop_reasons",
        title="Why the interviews ended",
        caption="Leaked and untouched items together; 'rounds': all rounds took place, 'context': a prompt did not "
        "fit, 'unstated': the evaluator gave no reason."
        + (f"{wide}{100 * bounds.low:.0f} to {100 * bounds.high:.0f}%." if bounds else ""),
        figure=figure,
    )
