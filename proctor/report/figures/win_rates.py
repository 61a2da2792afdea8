"""Win rates between candidates on the same items: of a stage that ranked them, else from an exam's own scores."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from evaluation.show.plate import Plate, canvas
from proctor.report import groups
from proctor.report.item_score import value

if TYPE_CHECKING:
    from proctor.report.run_data import Evidence

Matrix = list[list[float | None]]
DYNAMIC = ("kieval", "mt_bench", "pairwise")


def draw(evidence: Evidence) -> Plate | list[Plate] | None:
    plates = [plate(x.names, x.matrix, x.about, x.suffix, x.heading) for x in groups.win_rates(evidence.summary)]
    for tail, said, x in evidence.plotted("win_rates"):
        plates.append(plate(x["names"], x["matrix"], str(x.get("about", "")), tail, said))
    if plates:
        return plates
    found = next((pair for p in DYNAMIC if (pair := scores(evidence, p))[1]), None)
    if found is None:
        return None
    exam, by_candidate = found
    names = list(by_candidate)
    if len(names) < 2 or len({v for row in by_candidate.values() for v in row.values()}) < 2:
        return None  # all scores are equal: every pair ties
    return plate(names, matrix(by_candidate), f"Exam {exam}: a win is a higher score on the same item")


def scores(evidence: Evidence, protocol: str) -> tuple[str, dict[str, dict[str, float]]]:
    """The first exam with a protocol, and per candidate its score by item."""
    exam = next((n for n, e in evidence.run.experiment.exams.items() if e.protocol == protocol), "")
    found = {}
    for name in evidence.candidates if exam else ():
        row = {r["item_id"]: v for r in evidence.rows(f"{exam}.{name}") if (v := value(r)) is not None}
        if row:
            found[name] = row
    return exam, found


def matrix(by_candidate: dict[str, dict[str, float]]) -> Matrix:
    """Share of common items on which the row's candidate beats the column's, ties one half; None without any."""
    names = list(by_candidate)
    rates: Matrix = [[None] * len(names) for _ in names]
    for i, j in combinations(range(len(names)), 2):
        a, b = by_candidate[names[i]], by_candidate[names[j]]
        common = a.keys() & b.keys()
        if common:
            wins = sum(1.0 if a[k] > b[k] else 0.5 if a[k] == b[k] else 0.0 for k in common) / len(common)
            rates[i][j], rates[j][i] = wins, 1 - wins
    return rates


def plate(names: list[str], rates: Matrix, about: str, suffix: str = "", heading: str = "") -> Plate:
    import numpy as np

    figure = canvas(height=1.6 + 0.38 * max(4, len(names)))
    axes = figure.add_subplot()
    shown = np.array([[np.nan if v is None else 100 * v for v in row] for row in rates], dtype=float)
    # cells as paths: a picture in an SVG is a data: address, which the page's policy does not load
    image: Any = axes.pcolormesh(shown, cmap="PuOr", vmin=0, vmax=100)
    for i, row in enumerate(shown):
        for j, rate in enumerate(row):
            if np.isfinite(rate):
                colour = "white" if abs(rate - 50) > 32 else "black"
                axes.text(j + 0.5, i + 0.5, f"{rate:.0f}", ha="center", va="center", color=colour, fontsize=8)
    middles = [i + 0.5 for i in range(len(names))]
    axes.invert_yaxis()
    axes.set_xticks(middles, names, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(middles, names)
    axes.set_xlabel("... against")
    axes.set_ylabel("wins of ...")
    figure.colorbar(image, label="win rate, % (50: even)").solids.set_rasterized(False)  # nor is its scale a picture
    return Plate(
        name=f"win_rates{suffix}",
        title=f"Win rates{heading}",
        caption=f"{about + '. ' if about else ''}Ties count one half; the row's candidate wins that share of items.",
        figure=figure,
    )
