"""Figures of meta probing: what the rewriting changes, and the 2x2 of right and wrong before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.protocol import Held
from evaluation.show.plate import WIDTH, Plate, Style, apart, canvas, error_bars

CELLS = (
    ("both", "right both times", "#0072b2"),
    ("only_before", "lost: right before only", "#d55e00"),
    ("only_after", "gained: right after only", "#009e73"),
    ("neither", "wrong both times", "#999999"),
)


def plots(held: Mapping[str, Held], style: Mapping[str, Style]) -> list[Plate]:
    """Reads ``probing`` of plots.json: ``deltas`` {candidate: {set: {difference, interval}}}, differences in [-1, 1];
    ``churn`` {candidate: {both, only_before, only_after, neither}}, counts of items of the set ``churn_set``."""
    data = {name: one.plots["probing"] for name, one in held.items() if one.plots.get("probing")}
    with_deltas, with_churn = ({n: d for n, d in data.items() if d.get(key)} for key in ("deltas", "churn"))
    found = [deltas(one["deltas"], style, suffix, heading) for suffix, heading, one in apart(with_deltas)]
    return found + [churn(one, suffix, heading) for suffix, heading, one in apart(with_churn)]


def deltas(given: Mapping[str, Any], style: Mapping[str, Style], suffix: str = "", heading: str = "") -> Plate:
    """Accuracy before and after, per candidate and set, with intervals. A former experiment's candidate is left out."""
    principles = list(dict.fromkeys(principle for one in given.values() for principle in one))
    figure = canvas(WIDTH, 1.4 + len(principles) * max(0.36, 0.12 * len(given)))
    axes = figure.add_subplot()
    axes.axvline(0, color="black", linewidth=1)
    for place, (name, one) in enumerate(given.items()):
        if name not in style:  # a former experiment's
            continue
        look = style[name]
        offset = (place - (len(given) - 1) / 2) * min(0.26, 0.8 / len(given))
        for row, principle in enumerate(principles):
            entry = one.get(principle)
            if not entry or entry.get("difference") is None:
                continue
            middle, bounds = 100 * entry["difference"], entry.get("interval")
            axes.errorbar(
                middle,
                row + offset,
                xerr=error_bars(middle, [100 * bound for bound in bounds] if bounds else None),
                fmt=look.marker,
                color=look.colour,
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
        name=f"probing_deltas{suffix}",
        title=f"What probing changes{heading}",
        caption="Below zero: the candidate does worse once the items are rewritten. A drop alone is no evidence of "
        "contamination: a broken rewrite and a harder item lower it, too.",
        figure=figure,
    )


def churn(data: Mapping[str, Any], suffix: str = "", heading: str = "") -> Plate:
    """Counts of items right both times, lost, gained, wrong both times, per candidate."""
    given = data["churn"]
    of_set = f" (set {data['churn_set']})" if data.get("churn_set") else ""
    names = list(given)[::-1]
    totals = {name: max(1, sum(given[name][key] for key, _, _ in CELLS)) for name in names}
    figure = canvas(WIDTH, 1.4 + 0.45 * len(names))
    axes = figure.add_subplot()
    left = [0.0] * len(names)
    for key, said, colour in CELLS:
        width = [100 * given[name][key] / totals[name] for name in names]
        axes.barh(range(len(names)), width, left=left, color=colour, edgecolor="white", label=said)
        for row, (start, share) in enumerate(zip(left, width, strict=True)):
            if share >= 7:
                count = given[names[row]][key]
                axes.text(start + share / 2, row, str(count), ha="center", va="center", color="white", fontsize=9)
        left = [a + b for a, b in zip(left, width, strict=True)]
    axes.set_yticks(range(len(names)), [f"{name} (n {totals[name]})" for name in names])
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the items, %")
    figure.legend(loc="outside upper center", ncols=2)
    return Plate(
        name=f"probing_churn{suffix}",
        title=f"Right and wrong before and after probing{heading}",
        caption=f"Every item once before and once after{of_set}; the numbers are counts of items.",
        figure=figure,
    )
