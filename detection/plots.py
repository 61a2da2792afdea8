"""Figures of an audit: AUC per detector, ROC curves, the scores of leaked and untouched texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from detection.statistics.metrics import roc_points
from detection.verdict import HEADLINE
from evaluation.show.plate import WIDTH, Plate, Style, canvas, error_bars

MOST_POINTS = 400
BINS = 20
Scored = Mapping[str, Sequence[Mapping[str, Any]]]
"""The records of the scored texts by candidate."""
Measured = Mapping[str, Mapping[str, Any]]
"""The figures of each score name (AUC and more) by candidate."""


def plots(
    scored: Scored, measured: Measured, blind: Mapping[str, Any] | None, style: Mapping[str, Style]
) -> list[Plate]:
    """Those that there are records for. blind: the baseline without any model, as in summary.json"""
    made = (auc(measured, blind or {}, style), roc(scored, style), scores(scored, measured))
    return [plate for plate in made if plate is not None]


def auc(found: Measured, blind: Mapping[str, Any], style: Mapping[str, Style]) -> Plate | None:
    """AUC of every whole-text detector with its interval, beside chance and the blind baseline."""
    measured = {name: {d: f for d, f in c.items() if f.get("auc") is not None} for name, c in found.items()}
    measured = {name: figures for name, figures in measured.items() if figures}
    detectors = chosen(list(dict.fromkeys(d for figures in measured.values() for d in figures)))
    if not detectors:
        return None
    step = min(0.26, 0.8 / len(measured))
    figure = canvas(WIDTH, 1.6 + len(detectors) * max(0.36, 0.11 * len(measured)))
    axes = figure.add_subplot()
    if blind.get("auc") is not None:
        low, high = blind["auc_ci"]
        axes.axvspan(low, high, color="#999999", alpha=0.25, linewidth=0, label="blind baseline, 95%")
        axes.axvline(blind["auc"], color="#777777", linewidth=1)
    axes.axvline(0.5, color="black", linestyle=":", linewidth=1, label="chance")
    for place, (name, figures) in enumerate(measured.items()):
        look = style[name]
        offset = (place - (len(measured) - 1) / 2) * step
        for row, detector in enumerate(detectors):
            if detector not in figures:
                continue
            value, bounds = figures[detector]["auc"], figures[detector].get("auc_ci")
            axes.errorbar(
                value,
                row + offset,
                xerr=error_bars(value, bounds),
                fmt=look.marker,
                markersize=4,
                color=look.colour,
                capsize=2,
                linewidth=1.2,
                label=name if detector == next(d for d in detectors if d in figures) else None,
            )
    axes.set_yticks(range(len(detectors)), detectors)
    axes.set_ylim(len(detectors) - 0.5, -0.5)
    axes.set_xlim(0, 1.02)
    axes.set_xlabel("AUC, leaked against untouched (95% interval)")
    axes.grid(axis="x", alpha=0.25)
    figure.legend(loc="outside upper center", ncols=3)
    note = "The grey band is the blind baseline, a bag of words without any model. " if blind.get("auc") else ""
    return Plate(
        name="auc",
        title="AUC per detector",
        caption=f"Whole text. {note}An AUC means something where it lies above the untouched base model's.",
        figure=figure,
    )


def chosen(names: list[str]) -> list[str]:
    """One score per detector: of a family with a parameter (``min_k@5`` ... ``@60``) the one @20, or its first."""
    families: dict[str, list[str]] = {}
    for name in names:
        if "/" not in name:
            families.setdefault(name.partition("@")[0], []).append(name)
    return [next((n for n in found if n.endswith("@20")), found[0]) for found in families.values()]


def labelled(rows: Sequence[Mapping[str, Any]], detector: str) -> tuple[list[int], list[float]]:
    """Labels and scores of the texts that have both."""
    pairs = [(r["label"], r["scores"].get(detector)) for r in rows if r["label"] is not None]
    known = [(label, float(score)) for label, score in pairs if score is not None]
    return [label for label, _ in known], [score for _, score in known]


def roc(scored: Scored, style: Mapping[str, Style]) -> Plate | None:
    """Curves of the headline detectors, one line per candidate."""
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for name, rows in scored.items():
        for detector in HEADLINE:
            points = [(p.fpr, p.tpr) for p in roc_points(*labelled(rows, detector))]
            if points:
                thinned = points[:: max(1, len(points) // MOST_POINTS)]
                curves.setdefault(detector, {})[name] = [*thinned, points[-1]]
    if not curves:
        return None
    from matplotlib.lines import Line2D

    columns = 2
    cells = len(curves) + 1  # the legend has a cell of its own
    rows_of = -(-cells // columns)
    figure = canvas(WIDTH, 2.65 * rows_of)
    for place, (detector, lines) in enumerate(curves.items()):
        axes = figure.add_subplot(rows_of, columns, place + 1)
        axes.plot([0, 1], [0, 1], color="black", linestyle=":", linewidth=1)
        for name, points in lines.items():
            look = style[name]
            axes.plot(*zip(*points, strict=True), look.line, color=look.colour, linewidth=1.4)
        axes.set_title(detector)
        axes.set_xlabel("false-positive rate")
        axes.set_ylabel("true-positive rate")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_aspect("equal")
        axes.grid(alpha=0.25)
    corner = figure.add_subplot(rows_of, columns, cells)
    corner.axis("off")
    handles = [Line2D([], [], color="black", linestyle=":", label="chance")]
    for name in scored:
        look = style[name]
        handles.append(Line2D([], [], color=look.colour, linestyle=look.line, label=name))
    corner.legend(handles=handles, loc="center left", ncols=1 if len(handles) <= 14 else 2)
    labels = [label for rows in scored.values() for label in (r["label"] for r in rows)]
    members = sum(label == 1 for label in labels) // len(scored)
    others = sum(label == 0 for label in labels) // len(scored)
    return Plate(
        name="roc",
        title="ROC curves",
        caption=f"Headline detectors on {members} leaked and {others} untouched texts; the areas under the curves and "
        "their 95% intervals stand in the figure above and in the table of detectors.",
        figure=figure,
    )


def scores(scored: Scored, measured: Measured) -> Plate | None:
    """Histograms of the first headline detector that scored any, one panel per candidate."""
    import numpy as np

    for detector in HEADLINE:
        found = {name: labelled(rows, detector) for name, rows in scored.items()}
        found = {name: pair for name, pair in found.items() if pair[1]}
        if found:
            break
    else:
        return None
    everything = np.concatenate([values for _, values in found.values()])
    low, high = float(everything.min()), float(everything.max())
    edges = np.linspace(low, high, BINS + 1) if high > low else np.linspace(low - 0.5, low + 0.5, BINS + 1)
    columns = 2 if len(found) <= 6 else 3
    rows_of = -(-len(found) // columns)
    figure = canvas(WIDTH, 0.8 + 1.75 * rows_of)
    grid = figure.subplots(rows_of, columns, sharex=True, sharey=True, squeeze=False)
    for axes, (name, (labels, values)) in zip(grid.flat, found.items(), strict=False):
        for label, colour, said in ((0, "#0072b2", "untouched"), (1, "#d55e00", "leaked")):
            part = [value for truth, value in zip(labels, values, strict=True) if truth == label]
            axes.hist(part, bins=edges, color=colour, alpha=0.55, label=said)
        figures = measured[name].get(detector) or {}
        area = "" if figures.get("auc") is None else f"\nAUC {figures['auc']:.2f}"
        if area and figures.get("auc_ci"):
            area += " [{:.2f}, {:.2f}]".format(*figures["auc_ci"])
        axes.set_title(name + area, fontsize=9)
    for axes in grid.flat[len(found) :]:
        axes.axis("off")
    figure.supxlabel(f"score of {detector} (nats per token; higher: more likely leaked)", fontsize=10)
    figure.supylabel("texts", fontsize=10)
    figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return Plate(
        name="scores",
        title="Scores of leaked and untouched texts",
        caption=f"Score of {detector} per text; the same axes in every panel. What overlaps can't be told apart.",
        figure=figure,
    )
