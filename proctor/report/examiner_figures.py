"""Figures of exams by a model: radar, heatmaps, question words, levels, domains, peers, strengths, embeddings.

Each is written as SVG and PNG; the same figures give the same bytes.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from serving.files import write_bytes, write_text

COLOURS = ("#1f5fa8", "#c0504d", "#4f9d52", "#8064a2", "#e08a1e", "#3aa6b9", "#7f7f7f", "#a0522d")
STYLE = {"svg.hashsalt": "proctor", "svg.fonttype": "none", "font.size": 10, "font.family": "sans-serif"}
MOST_NUMBERS = 15
"""Cells per side up to which a heatmap has its numbers written in."""


def save(name: str, folder: Path, size: tuple[float, float], draw: Callable[[Any], None]) -> list[str]:
    """``draw`` fills a matplotlib Figure; ``name``.svg and .png are written. Returns the files' names."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        for text in figure.findobj(Text):
            text.set_parse_math(False)  # a model's or a domain's name is not mathematics
        svg, png = io.BytesIO(), io.BytesIO()
        # no date: equal runs give equal files
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(png, format="png", dpi=160, metadata={"Software": None})
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / f"{name}.svg", svg.getvalue().decode("utf-8"))
    write_bytes(folder / f"{name}.png", png.getvalue())
    return [f"{name}.svg", f"{name}.png"]


def draw_figures(protocol: str, metrics: Mapping[str, Any], folder: Path) -> list[str]:
    """Those of one finished exam of a group, by its protocol."""
    if protocol == "ranking":
        matrix = metrics["win_rates"]
        return [
            *heatmap(
                "win_rates",
                folder,
                matrix["names"],
                matrix["rates"],
                title="share of questions on which the row beats the column",
            ),
            *strengths("bradley_terry", folder, metrics["bradley_terry"]),
        ]
    if protocol == "peer_examination":
        models = list(metrics["full_marks"])
        combined = metrics["pairwise"]["combined"]
        files = [
            *peer_bars("peer_full_marks", folder, metrics["full_marks"], metrics["AVG"], "full marks, %"),
            *peer_bars("peer_weighted", folder, _scaled(metrics["full_marks"]), metrics["AVG_weight"], "% of the best"),
        ]
        for how in ("by_mean", "by_vote"):
            title = f"the row beats the column: all examiners, {how.replace('_', ' ')}"
            files += heatmap(f"peer_pairwise_{how}", folder, models, combined[how]["rates"], title=title)
        return files
    return []


def radar(name: str, folder: Path, rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One polygon per candidate: each mark's mean as a share of the best mark. rows: ``marks.figures`` by candidate."""
    drawn = {
        label: row
        for label, row in rows.items()
        if all(part["of_maximum"] is not None for part in row["dimensions"].values())
    }

    def draw(figure: Any) -> None:
        axes = figure.add_subplot(projection="polar")
        labels: list[str] = []
        for place, (label, row) in enumerate(drawn.items()):
            labels = list(row["dimensions"])
            angles = [2 * math.pi * i / len(labels) for i in range(len(labels))]
            values = [row["dimensions"][dimension]["of_maximum"] for dimension in labels]
            colour = COLOURS[place % len(COLOURS)]
            axes.plot([*angles, angles[0]], [*values, values[0]], color=colour, label=f"{label} (n = {row['n']})")
            axes.fill(angles, values, color=colour, alpha=0.08)
        axes.set_xticks([2 * math.pi * i / max(1, len(labels)) for i in range(len(labels))], labels)
        axes.tick_params(axis="x", pad=16)
        axes.set_rlabel_position(36)  # between two axes
        axes.set_ylim(0, 1)
        axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["25%", "50%", "75%", "100%"], fontsize=7)
        axes.set_title("mean mark, % of the best mark", fontsize=10)
        if drawn:
            figure.legend(loc="outside lower center", ncols=2, fontsize=8)

    return save(name, folder, (6.0, 5.6), draw)


def heatmap(
    name: str, folder: Path, names: Sequence[str], rates: Sequence[Sequence[float | None]], *, title: str
) -> list[str]:
    """A matrix of shares: the row beats the column. Cells without value stay grey."""
    import numpy as np

    values = np.array([[np.nan if value is None else value for value in row] for row in rates], dtype=float)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.set_facecolor("#dddddd")
        image = axes.imshow(values, vmin=0, vmax=1, cmap="RdBu")
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel("loses")
        axes.set_ylabel("wins")
        axes.set_title(title, fontsize=10)
        if len(names) <= MOST_NUMBERS:
            for i, row in enumerate(rates):
                for j, value in enumerate(row):
                    if value is not None:
                        pale = 0.25 < value < 0.75
                        axes.text(j, i, f"{value:.2f}", ha="center", va="center", color="black" if pale else "white")
        figure.colorbar(image, ax=axes, shrink=0.8, label="win rate")

    side = 3.2 + 0.55 * len(names)
    return save(name, folder, (side + 1, side), draw)


def strengths(name: str, folder: Path, fitted: Mapping[str, Any]) -> list[str]:
    """Bradley-Terry strengths with their intervals, the best on top; or why there are none."""
    known = {label: value for label, value in fitted["strengths"].items() if value is not None}
    order = sorted(known, key=lambda label: known[label])

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for place, label in enumerate(order):
            value, interval = known[label], fitted["intervals"][label]
            bars = None
            if interval is not None:
                bars = [[max(0.0, value - interval[0])], [max(0.0, interval[1] - value)]]
            axes.errorbar(value, place, xerr=bars, fmt="o", color=COLOURS[0], capsize=3)
        axes.set_yticks(range(len(order)), order)
        axes.axvline(0, color="#999999", linewidth=0.8)
        axes.set_xlabel("Bradley-Terry strength, natural logarithm (95% interval)")
        if fitted["reason"]:
            axes.set_title(f"no strengths: {fitted['reason']}", fontsize=9)
        axes.grid(axis="x", alpha=0.25)

    return save(name, folder, (6.4, 1.6 + 0.4 * max(1, len(order))), draw)


def bars(name: str, folder: Path, counts: Mapping[str, float], *, label: str, upright: bool = True) -> list[str]:
    """One bar per name, in the given order; lying bars for long names (domains)."""
    names = list(counts)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        values = list(counts.values())
        if upright:
            axes.bar(range(len(names)), values, color=COLOURS[0])
            axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
            axes.set_ylabel(label)
        else:
            axes.barh(range(len(names)), values, color=COLOURS[0])
            axes.set_yticks(range(len(names)), names, fontsize=8)
            axes.invert_yaxis()
            axes.set_xlabel(label)
        axes.grid(axis="y" if upright else "x", alpha=0.25)

    size = (6.4, 3.8) if upright else (6.4, 1.2 + 0.24 * max(1, len(names)))
    return save(name, folder, size, draw)


def grouped_bars(
    name: str, folder: Path, groups: Mapping[str, Mapping[str, Any]], *, label: str, order: Sequence[str]
) -> list[str]:
    """Per group (a level, a domain) one bar per series, with intervals: series -> group -> {value, interval}."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        width = 0.8 / max(1, len(groups))
        for place, (series, values) in enumerate(groups.items()):
            for at, group in enumerate(order):
                value, interval = values.get(group, {}).get("value"), values.get(group, {}).get("interval")
                if value is None:
                    continue
                spread = [[max(0.0, value - interval[0])], [max(0.0, interval[1] - value)]] if interval else None
                x = at - 0.4 + width * (place + 0.5)
                axes.bar(x, value, width, color=COLOURS[place % len(COLOURS)], yerr=spread, capsize=2)
            axes.bar(0, 0, color=COLOURS[place % len(COLOURS)], label=series)
        axes.set_xticks(range(len(order)), order, rotation=30, ha="right", fontsize=8)
        axes.set_ylabel(label)
        axes.grid(axis="y", alpha=0.25)
        if groups:
            figure.legend(loc="outside lower center", ncols=3, fontsize=8)

    return save(name, folder, (max(6.4, 1.5 + 0.35 * len(order) * max(1, len(groups))), 4.2), draw)


def peer_bars(
    name: str,
    folder: Path,
    table: Mapping[str, Mapping[str, float | None]],
    combined: Mapping[str, float | None],
    label: str,
) -> list[str]:
    """Per candidate one bar for each examiner, and the combined examiner's beside them."""
    series: dict[str, dict[str, Any]] = {}
    for candidate, row in table.items():
        for examiner, value in row.items():
            series.setdefault(f"by {examiner}", {})[candidate] = {"value": value}
    series["combined examiner"] = {candidate: {"value": value} for candidate, value in combined.items()}
    return grouped_bars(name, folder, series, label=label, order=list(table))


def scatter(
    name: str, folder: Path, points: Sequence[Sequence[float]], groups: Sequence[str], *, title: str, axis: str
) -> list[str]:
    """Points in the plane, coloured by group. axis: what the plane is (``PCA component``, ``t-SNE dimension``)."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for place, group in enumerate(dict.fromkeys(groups)):
            own = [point for point, other in zip(points, groups, strict=True) if other == group]
            xs, ys = [p[0] for p in own], [p[1] for p in own]
            marker = "ovs^Dx*P"[(place // len(COLOURS)) % 8]
            axes.scatter(xs, ys, s=14, color=COLOURS[place % len(COLOURS)], marker=marker, label=group, alpha=0.8)
        axes.set_xlabel(f"{axis} 1")
        axes.set_ylabel(f"{axis} 2")
        axes.set_title(title, fontsize=10)
        if len(set(groups)) <= 24:
            figure.legend(loc="outside right upper", fontsize=7)

    return save(name, folder, (7.2, 4.8), draw)


def _scaled(table: Mapping[str, Mapping[str, float | None]]) -> dict[str, dict[str, float | None]]:
    highest: dict[str, float] = {}
    for row in table.values():
        for examiner, value in row.items():
            highest[examiner] = max(highest.get(examiner, 0.0), value or 0.0)
    return {
        candidate: {
            e: None if value is None or not highest[e] else 100 * value / highest[e] for e, value in row.items()
        }
        for candidate, row in table.items()
    }
