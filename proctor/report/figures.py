"""Figures of the report, as SVG for the page and PNG for slides; the same run gives the same bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.atomic import write_bytes, write_text

MOST_LABELS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One candidate: static accuracy and KIEval score (0 to 100), each with its 95% interval or None."""

    name: str
    accuracy: float
    accuracy_interval: Sequence[float] | None
    kieval: float
    kieval_interval: Sequence[float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Least squares of KIEval on accuracy: kieval = intercept + slope x accuracy.

    r: Pearson's, with its 95% interval by Fisher's z (None for fewer than 4 points); n: points
    reason: why there is no line
    """

    n: int
    slope: float | None = None
    intercept: float | None = None
    r: float | None = None
    r_interval: tuple[float, float] | None = None
    reason: str = ""


def points(summary: dict[str, Any]) -> list[Point]:
    """The candidates that have both figures, on the leaked items."""
    return [
        Point(
            name=name,
            accuracy=100 * c["accuracy_leaked"],
            accuracy_interval=_scaled(c.get("accuracy_leaked_ci")),
            kieval=100 * c["kieval"],
            kieval_interval=_scaled(c.get("kieval_ci")),
        )
        for name, c in summary["candidates"].items()
        if c.get("accuracy_leaked") is not None and c.get("kieval") is not None
    ]


def regression(found: Sequence[Point]) -> Line:
    """The line of KIEval's Figure on accuracy against score: a candidate far below it is suspicious."""
    from scipy.stats import linregress, pearsonr

    x, y = [p.accuracy for p in found], [p.kieval for p in found]
    n = len(found)
    if n < 3:
        return Line(n=n, reason=f"{n} of the candidates have both figures, a line needs 3")
    for values, what in ((x, "accuracies"), (y, "KIEval scores")):
        if max(values) - min(values) < 1e-9:
            return Line(n=n, reason=f"all {what} are equal, so there is no correlation")
    fit = linregress(x, y)
    interval = pearsonr(x, y).confidence_interval(0.95) if n > 3 else None
    return Line(
        n=n,
        slope=float(fit.slope),
        intercept=float(fit.intercept),
        r=float(fit.rvalue),
        r_interval=None if interval is None else (float(interval.low), float(interval.high)),
    )


def write_accuracy_against_kieval(found: Sequence[Point], line: Line, folder: Path) -> str:
    """accuracy_against_kieval.svg and .png in ``folder``; returns the SVG's text."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # a salt of our own and no date: equal runs give equal files
    with rc_context({"svg.hashsalt": "proctor", "svg.fonttype": "none", "font.size": 10, "font.family": "sans-serif"}):
        figure = Figure(figsize=(6.4, 4.4), layout="constrained")
        axes = figure.add_subplot()
        for point in found:
            axes.errorbar(
                point.accuracy,
                point.kieval,
                xerr=_bars(point.accuracy, point.accuracy_interval),
                yerr=_bars(point.kieval, point.kieval_interval),
                fmt="o",
                color="#1f5fa8",
                ecolor="#1f5fa866",
                capsize=2,
            )
        for point in found[:MOST_LABELS]:
            label = axes.annotate(point.name, (point.accuracy, point.kieval), (6, 6), textcoords="offset points")
            label.set_parse_math(False)  # a candidate's name is not mathematics
        if line.slope is not None and line.intercept is not None:
            ends = [min(p.accuracy for p in found), max(p.accuracy for p in found)]
            axes.plot(ends, [line.intercept + line.slope * x for x in ends], color="#666666", linestyle="--", zorder=0)
        axes.set_xlabel("static accuracy on the leaked items, % (95% interval)")
        axes.set_ylabel("KIEval score x 100 (95% interval)")
        axes.set_title(caption(line), fontsize=10)
        axes.grid(alpha=0.25)
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(png, format="png", dpi=160, metadata={"Software": None})
    folder.mkdir(parents=True, exist_ok=True)
    text = svg.getvalue().decode("utf-8")
    write_text(folder / "accuracy_against_kieval.svg", text)
    write_bytes(folder / "accuracy_against_kieval.png", png.getvalue())
    return text


def caption(line: Line) -> str:
    """``r = 0.91 [0.20, 0.99], n = 5 candidates``, or why there is none."""
    if line.r is None:
        return f"no regression: {line.reason}"
    between = "" if line.r_interval is None else " [{:.2f}, {:.2f}]".format(*line.r_interval)
    return f"Pearson r = {line.r:.2f}{between}, n = {line.n} candidates"


def _scaled(interval: Sequence[float] | None) -> list[float] | None:
    return None if interval is None else [100 * bound for bound in interval]


def _bars(value: float, interval: Sequence[float] | None) -> list[list[float]] | None:
    return None if interval is None else [[max(0.0, value - interval[0])], [max(0.0, interval[1] - value)]]
