"""Static accuracy against KIEval with its regression (the KIEval paper's figure of the two)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.show.plate import Plate, canvas, error_bars

MOST_LABELS = 40
LONGEST_LABEL = 36


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
    from scipy.stats import linregress

    from evaluation.agreement.correlation import fisher_interval

    x, y = [p.accuracy for p in found], [p.kieval for p in found]
    n = len(found)
    if n < 3:
        return Line(n=n, reason=f"{n} of the candidates have both figures, a line needs 3")
    for values, what in ((x, "accuracies"), (y, "KIEval scores")):
        if max(values) - min(values) < 1e-9:
            return Line(n=n, reason=f"all {what} are equal, so there is no correlation")
    fit = linregress(x, y)
    return Line(
        n=n,
        slope=float(fit.slope),
        intercept=float(fit.intercept),
        r=float(fit.rvalue),
        r_interval=fisher_interval(float(fit.rvalue), n),
    )


def draw(summary: dict[str, Any]) -> Plate | None:
    """The figure of a summary; None where no candidate has both figures."""
    found = points(summary)
    return plate(found, regression(found)) if found else None


def plate(found: Sequence[Point], line: Line) -> Plate:
    """Accuracy across, KIEval upwards, with both intervals and the line."""
    figure = canvas()
    axes = figure.add_subplot()
    for point in found:
        axes.errorbar(
            point.accuracy,
            point.kieval,
            xerr=error_bars(point.accuracy, point.accuracy_interval),
            yerr=error_bars(point.kieval, point.kieval_interval),
            fmt="o",
            color="#1f5fa8",
            ecolor="#1f5fa866",
            capsize=2,
        )
    axes.margins(x=0.12, y=0.15)
    middle = sum(axes.get_xlim()) / 2
    taken: list[tuple[float, float]] = []
    for point in sorted(found[:MOST_LABELS], key=lambda p: (p.kieval, p.accuracy)):
        right = point.accuracy > middle  # a name stays inside the frame
        label = axes.annotate(
            point.name
            if len(point.name) <= LONGEST_LABEL
            else point.name[: LONGEST_LABEL - 1] + "\N{HORIZONTAL ELLIPSIS}",
            (point.accuracy, point.kieval),
            (-7 if right else 7, 5 + 11 * _near(point, taken, axes)),
            textcoords="offset points",
            ha="right" if right else "left",
        )
        label.set_parse_math(False)
        taken.append((point.accuracy, point.kieval))
    if line.slope is not None and line.intercept is not None:
        ends = [min(p.accuracy for p in found), max(p.accuracy for p in found)]
        axes.plot(ends, [line.intercept + line.slope * x for x in ends], color="#666666", linestyle="--", zorder=0)
    axes.set_xlabel("static accuracy on the leaked items, % (95% interval)")
    axes.set_ylabel("KIEval score x 100 (95% interval)")
    axes.grid(alpha=0.25)
    explained = "A candidate far below the line answers better than it explains." if line.r is not None else ""
    return Plate(
        name="accuracy_against_kieval",
        title="Static accuracy against KIEval",
        caption=f"One point per candidate, bars are 95% intervals. {_sentence(caption(line))} {explained}".strip(),
        figure=figure,
    )


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _near(point: Point, taken: Sequence[tuple[float, float]], axes: Any) -> int:
    """How many labelled points lie so near that the names would touch."""
    wide, high = (limits[1] - limits[0] for limits in (axes.get_xlim(), axes.get_ylim()))
    return sum(abs(point.accuracy - x) < 0.25 * wide and abs(point.kieval - y) < 0.06 * high for x, y in taken)


def caption(line: Line) -> str:
    """``r = 0.91 [0.20, 0.99], n = 5 candidates``, or why there is none."""
    if line.r is None:
        return f"no regression: {line.reason}"
    between = "" if line.r_interval is None else " [{:.2f}, {:.2f}]".format(*line.r_interval)
    return f"Pearson r = {line.r:.2f}{between}, n = {line.n} candidates"


def _scaled(interval: Sequence[float] | None) -> list[float] | None:
    return None if interval is None else [100 * bound for bound in interval]
