"""Who beats whom: the matrix of win rates and its figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from evaluation.show.plate import Plate, canvas

Matrix = Sequence[Sequence[float | None]]
MOST_NUMBERS = 15
"""Names up to which each cell has its number written in."""


def matrix(by_candidate: Mapping[str, Mapping[str, float]]) -> list[list[float | None]]:
    """Share of common items on which the row's candidate beats the column's, ties one half; None without any."""
    names = list(by_candidate)
    rates: list[list[float | None]] = [[None] * len(names) for _ in names]
    for i, j in combinations(range(len(names)), 2):
        a, b = by_candidate[names[i]], by_candidate[names[j]]
        common = a.keys() & b.keys()
        if common:
            wins = sum(1.0 if a[k] > b[k] else 0.5 if a[k] == b[k] else 0.0 for k in common) / len(common)
            rates[i][j], rates[j][i] = wins, 1 - wins
    return rates


def win_rates(names: Sequence[str], rates: Matrix, about: str, suffix: str = "", heading: str = "") -> Plate:
    """A heat map; cells without a figure stay empty. about: what was compared, a sentence without its full stop."""
    import numpy as np

    figure = canvas(height=1.6 + 0.38 * max(4, len(names)))
    axes = figure.add_subplot()
    shown = np.array([[np.nan if v is None else 100 * v for v in row] for row in rates], dtype=float)
    # a mesh, not an image: a page that loads nothing shows no image within an SVG either
    mesh: Any = axes.pcolormesh(shown, cmap="PuOr", vmin=0, vmax=100)
    axes.invert_yaxis()
    for i, row in enumerate(shown if len(names) <= MOST_NUMBERS else ()):
        for j, rate in enumerate(row):
            if np.isfinite(rate):
                colour = "white" if abs(rate - 50) > 32 else "black"
                axes.text(j + 0.5, i + 0.5, f"{rate:.0f}", ha="center", va="center", color=colour, fontsize=8)
    places = [i + 0.5 for i in range(len(names))]
    axes.set_xticks(places, names, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(places, names)
    axes.set_xlabel("... against")
    axes.set_ylabel("wins of ...")
    scale = figure.colorbar(mesh, label="win rate, % (50: even)")
    scale.solids.set(rasterized=False, edgecolor="face")
    return Plate(
        name=f"win_rates{suffix}",
        title=f"Win rates{heading}",
        caption=f"{about + '. ' if about else ''}Ties count one half; the row's candidate wins that share of items.",
        figure=figure,
    )
