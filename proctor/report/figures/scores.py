"""Histograms of the member and non-member scores of the headline detector, one panel per candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detection.verdict import HEADLINE
from evaluation.show.plate import WIDTH, Plate, canvas
from proctor.report.figures.roc import labelled

if TYPE_CHECKING:
    from proctor.report.run_data import Evidence

BINS = 20


def draw(evidence: Evidence) -> Plate | None:
    import numpy as np

    for detector in HEADLINE:
        found = {name: labelled(rows, detector) for name, rows in evidence.detected.items()}
        found = {name: pair for name, pair in found.items() if pair[1]}
        if found:
            break
    else:
        return None
    everything = np.concatenate([scores for _, scores in found.values()])
    low, high = float(everything.min()), float(everything.max())
    edges = np.linspace(low, high, BINS + 1) if high > low else np.linspace(low - 0.5, low + 0.5, BINS + 1)
    columns = 2 if len(found) <= 6 else 3
    rows_of = -(-len(found) // columns)
    figure = canvas(WIDTH, 0.8 + 1.75 * rows_of)
    grid = figure.subplots(rows_of, columns, sharex=True, sharey=True, squeeze=False)
    for axes, (name, (labels, scores)) in zip(grid.flat, found.items(), strict=False):
        for label, colour, said in ((0, "#0072b2", "untouched"), (1, "#d55e00", "leaked")):
            values = [score for truth, score in zip(labels, scores, strict=True) if truth == label]
            axes.hist(values, bins=edges, color=colour, alpha=0.55, label=said)
        figures = evidence.candidates[name]["detection"].get(detector) or {}
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
