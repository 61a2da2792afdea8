"""Figures of an item analysis: difficulty against discrimination, characteristic curves, information, the funnel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.item_analysis.classical import LABELS
from evaluation.protocol import Held
from evaluation.show.plate import COLOURS, Plate, Style, apart, canvas, draw

MOST_CURVES = 30
MOST = 200
"""Curves in the report's figure, where they are thin."""
_COLOURS = ("#b03030", "#d08a2e", "#5b8fc7", "#1f5fa8")


def write_plots(rows: Sequence[Mapping[str, Any]], curves: Mapping[str, Any], folder: Path) -> list[str]:
    """items.svg always, curves.svg and information.svg where a model was fitted; each as .png, too. Their names."""
    drawings = draw(
        lambda: [_items(rows), *([_characteristic(curves), _information(curves)] if curves else [])], folder
    )
    return [Path(file).name for drawing in drawings for file in drawing.files]


def write_funnel(steps: Sequence[tuple[str, int, int]], folder: Path) -> None:
    """funnel.svg and .png: per step (name, how many came in, how many went on)."""
    draw(lambda: [_funnel(steps)], folder)


def plots(held: Mapping[str, Held], style: Mapping[str, Style]) -> list[Plate]:
    """Reads ``item_curves`` of plots.json: {theta: [...], characteristic: {item: [...]}, abilities: {name: theta}}."""
    data = {name: one.plots["item_curves"] for name, one in held.items() if "item_curves" in one.plots}
    data = {name: one for name, one in data.items() if one.get("characteristic")}
    return [item_curves(one, style, suffix, heading) for suffix, heading, one in apart(data)]


def item_curves(given: Mapping[str, Any], style: Mapping[str, Style], suffix: str = "", heading: str = "") -> Plate:
    """Every item's curve, thin, and the candidates' abilities."""
    curves = list(given["characteristic"].items())
    figure = canvas()
    axes = figure.add_subplot()
    for _, probabilities in curves[:: max(1, len(curves) // MOST)]:
        axes.plot(given["theta"], probabilities, color=COLOURS[0], alpha=0.3, linewidth=0.9)
    for name, ability in (given.get("abilities") or {}).items():
        look = style.get(name)
        axes.axvline(
            ability,
            color=look.colour if look else "#555555",
            linestyle=look.line if look else ":",
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
        name=f"item_curves{suffix}",
        title=f"Item characteristic curves{heading}",
        caption=f"2-parameter logistic model of {len(curves)} items, one thin line per item; the upright lines are "
        "the candidates' abilities.",
        figure=figure,
    )


def items_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table of the items, one line each."""
    import csv
    import io

    from evaluation.show.table import defused

    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(list(rows[0]))
    for row in rows:
        # an item's id or group is foreign text; a number below 0 is none
        writer.writerow([defused(value) if isinstance(value, str) else value for value in row.values()])
    return stream.getvalue()


def _funnel(steps: Sequence[tuple[str, int, int]]) -> Plate:
    figure, axes = _canvas()
    places = list(range(len(steps)))[::-1]
    axes.barh(places, [came for _, came, _ in steps], color="#1f5fa833")
    axes.barh(places, [kept for _, _, kept in steps], color="#1f5fa8")
    for place, (_, came, kept) in zip(places, steps, strict=True):
        axes.annotate(f"{kept} of {came}", (came, place), (4, 0), textcoords="offset points", va="center")
    axes.set_yticks(places, [name for name, _, _ in steps])
    axes.set_xlabel("drafts: came to the step (light), went on (dark)")
    axes.margins(x=0.15)
    return Plate(
        name="funnel", title="What each step left", caption="Drafts that came to a step, and went on.", figure=figure
    )


def _items(rows: Sequence[Mapping[str, Any]]) -> Plate:
    figure, axes = _canvas()
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
    axes.legend()
    return Plate(name="items", title="Difficulty and discrimination", caption=f"{len(rows)} items.", figure=figure)


def _characteristic(curves: Mapping[str, Any]) -> Plate:
    """The items with the most information at their best; a plot of a thousand curves shows none."""
    figure, axes = _canvas()
    best = sorted(curves["information"], key=lambda item: -max(curves["information"][item]))[:MOST_CURVES]
    for item in best:
        axes.plot(curves["theta"], curves["characteristic"][item], linewidth=0.9)
    axes.set_xlabel("ability theta")
    axes.set_ylabel("expected share of the maximum")
    axes.set_title(f"the {len(best)} most informative items")
    return Plate(name="curves", title="Characteristic curves", caption=f"{len(best)} items.", figure=figure)


def _information(curves: Mapping[str, Any]) -> Plate:
    figure, axes = _canvas()
    axes.plot(curves["theta"], curves["set_information"], color="#1f5fa8")
    for name, theta in list(curves["abilities"].items())[:MOST_CURVES]:
        axes.axvline(theta, color="#999999", linewidth=0.8)
        axes.annotate(name, (theta, 0), (2, 4), textcoords="offset points", rotation=90, fontsize=7)
    axes.set_xlabel("ability theta (lines: the candidates)")
    axes.set_ylabel("information of the set")
    return Plate(name="information", title="Information of the set", caption="Lines: the candidates.", figure=figure)


def _canvas() -> tuple[Any, Any]:
    figure = canvas(6.4, 4.4)
    axes = figure.add_subplot()
    axes.grid(alpha=0.25)
    return figure, axes
