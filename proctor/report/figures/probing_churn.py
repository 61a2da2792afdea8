"""The 2x2 of right and wrong before and after probing, per candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaluation.show.plate import WIDTH, Plate, canvas

if TYPE_CHECKING:
    from proctor.report.run_data import Evidence, Plotted

CELLS = (
    ("both", "right both times", "#0072b2"),
    ("only_before", "lost: right before only", "#d55e00"),
    ("only_after", "gained: right after only", "#009e73"),
    ("neither", "wrong both times", "#999999"),
)


def draw(evidence: Evidence) -> list[Plate]:
    """Reads ``probing.churn``: {candidate: {both, only_before, only_after, neither}}, counts of items."""
    return [_plate(one) for one in evidence.plotted("probing") if one.data.get("churn")]


def _plate(plotted: Plotted) -> Plate:
    given = plotted.data["churn"]
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
        name=f"probing_churn{plotted.suffix}",
        title=f"Right and wrong before and after probing{plotted.heading}",
        caption=f"Every item once before and once after{_set(plotted.data)}; the numbers are counts of items.",
        figure=figure,
    )


def _set(data: dict[str, Any]) -> str:
    return f" (set {data['churn_set']})" if data.get("churn_set") else ""
