"""ROC curves of the headline detectors, one line per candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detection.statistics.metrics import roc_points
from detection.verdict import HEADLINE
from evaluation.show.plate import WIDTH, Plate, canvas

if TYPE_CHECKING:
    from proctor.report.run_data import Evidence

MOST_POINTS = 400


def labelled(rows: list[dict[str, Any]], detector: str) -> tuple[list[int], list[float]]:
    """Labels and scores of the texts that have both."""
    pairs = [(r["label"], r["scores"].get(detector)) for r in rows if r["label"] is not None]
    known = [(label, float(score)) for label, score in pairs if score is not None]
    return [label for label, _ in known], [score for _, score in known]


def draw(evidence: Evidence) -> Plate | None:
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for name, rows in evidence.detected.items():
        for detector in HEADLINE:
            points = [(p.fpr, p.tpr) for p in roc_points(*labelled(rows, detector))]
            if points:
                thinned = points[:: max(1, len(points) // MOST_POINTS)]
                curves.setdefault(detector, {})[name] = [*thinned, points[-1]]
    if not curves:
        return None
    columns = 2
    cells = len(curves) + 1  # the legend has a cell of its own
    rows_of = -(-cells // columns)
    figure = canvas(WIDTH, 2.65 * rows_of)
    for place, (detector, lines) in enumerate(curves.items()):
        axes = figure.add_subplot(rows_of, columns, place + 1)
        axes.plot([0, 1], [0, 1], color="black", linestyle=":", linewidth=1)
        for name, points in lines.items():
            style = evidence.style(name)
            axes.plot(*zip(*points, strict=True), style.line, color=style.colour, linewidth=1.4)
        axes.set_title(detector)
        axes.set_xlabel("false-positive rate")
        axes.set_ylabel("true-positive rate")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_aspect("equal")
        axes.grid(alpha=0.25)
    from matplotlib.lines import Line2D

    corner = figure.add_subplot(rows_of, columns, cells)
    corner.axis("off")
    handles = [Line2D([], [], color="black", linestyle=":", label="chance")]
    for name in evidence.detected:
        style = evidence.style(name)
        handles.append(Line2D([], [], color=style.colour, linestyle=style.line, label=name))
    corner.legend(handles=handles, loc="center left", ncols=1 if len(handles) <= 14 else 2)
    labels = [label for rows in evidence.detected.values() for label in (r["label"] for r in rows)]
    members = sum(label == 1 for label in labels) // len(evidence.detected)
    others = sum(label == 0 for label in labels) // len(evidence.detected)
    return Plate(
        name="roc",
        title="ROC curves",
        caption=f"Headline detectors on {members} leaked and {others} untouched texts; the areas under the curves and "
        "their 95% intervals stand in the figure above and in the table of detectors.",
        figure=figure,
    )
