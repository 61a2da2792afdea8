"""Plots of an item analysis: difficulty against discrimination, characteristic curves, information, and the funnel."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from serving.files import write_bytes, write_text

MOST_CURVES = 30
_COLOURS = ("#b03030", "#d08a2e", "#5b8fc7", "#1f5fa8")


def write_plots(rows: Sequence[Mapping[str, Any]], curves: Mapping[str, Any], folder: Path) -> list[str]:
    """items.svg always, curves.svg and information.svg where a model was fitted; each as .png, too. Their names."""
    names = [*_draw(lambda axes: _items(axes, rows), folder, "items")]
    if curves:
        names += _draw(lambda axes: _characteristic(axes, curves), folder, "curves")
        names += _draw(lambda axes: _information(axes, curves), folder, "information")
    return names


def items_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table of the items, one line each."""
    import csv

    from evaluation.human_rating.sheet import defused

    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(list(rows[0]))
    for row in rows:
        # an item's id or group is foreign text; a number below 0 is none
        writer.writerow([defused(value) if isinstance(value, str) else value for value in row.values()])
    return stream.getvalue()


def write_funnel(steps: Sequence[tuple[str, int, int]], folder: Path) -> list[str]:
    """funnel.svg and .png: per step (name, how many came in, how many went on)."""

    def body(axes: Any) -> None:
        names = [name for name, _, _ in steps]
        places = list(range(len(steps)))[::-1]
        axes.barh(places, [came for _, came, _ in steps], color="#1f5fa833")
        axes.barh(places, [kept for _, _, kept in steps], color="#1f5fa8")
        for place, (_, came, kept) in zip(places, steps, strict=True):
            axes.annotate(f"{kept} of {came}", (came, place), (4, 0), textcoords="offset points", va="center")
        axes.set_yticks(places, names)
        axes.set_xlabel("drafts: came to the step (light), went on (dark)")
        axes.margins(x=0.15)

    return _draw(body, folder, "funnel")


def _items(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    from evaluation.item_analysis.classical import LABELS

    for index, name in enumerate(LABELS):
        part = [row for row in rows if row["label"] == index]
        axes.scatter(
            [row["difficulty"] for row in part],
            [row["discrimination"] for row in part],
            s=14,
            color=_COLOURS[index],
            label=f"{name} ({len(part)})",
        )
    axes.axhline(0, color="#999999", linewidth=0.8)
    axes.set_xlabel("difficulty (maximum minus mean score)")
    axes.set_ylabel("discrimination")
    axes.legend(fontsize=8)


def _characteristic(axes: Any, curves: Mapping[str, Any]) -> None:
    """The items with the most information at their best; a plot of a thousand curves shows none."""
    best = sorted(curves["information"], key=lambda item: -max(curves["information"][item]))[:MOST_CURVES]
    for item in best:
        axes.plot(curves["theta"], curves["characteristic"][item], linewidth=0.9)
    axes.set_xlabel("ability theta")
    axes.set_ylabel("expected share of the maximum")
    axes.set_title(f"the {len(best)} most informative items", fontsize=10)


def _information(axes: Any, curves: Mapping[str, Any]) -> None:
    axes.plot(curves["theta"], curves["set_information"], color="#1f5fa8")
    for name, theta in list(curves["abilities"].items())[:MOST_CURVES]:
        axes.axvline(theta, color="#999999", linewidth=0.8)
        text = axes.annotate(name, (theta, 0), (2, 4), textcoords="offset points", rotation=90, fontsize=7)
        text.set_parse_math(False)
    axes.set_xlabel("ability theta (lines: the candidates)")
    axes.set_ylabel("information of the set")


def _draw(body: Callable[[Any], None], folder: Path, name: str) -> list[str]:
    from matplotlib.figure import Figure

    from evaluation.show.plate import look

    # a salt of our own and no date: equal runs give equal files
    with look({"svg.hashsalt": "proctor", "svg.fonttype": "none", "font.size": 10, "font.family": "sans-serif"}):
        figure = Figure(figsize=(6.4, 4.4), layout="constrained")
        axes = figure.add_subplot()
        body(axes)
        axes.grid(alpha=0.25)
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(png, format="png", dpi=160, metadata={"Software": None})
    write_text(folder / f"{name}.svg", svg.getvalue().decode("utf-8"))
    write_bytes(folder / f"{name}.png", png.getvalue())
    return [f"{name}.svg", f"{name}.png"]
