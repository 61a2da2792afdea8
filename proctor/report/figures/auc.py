"""AUC of every whole-text detector with its interval, beside chance and the blind baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.show.plate import WIDTH, Plate, canvas

if TYPE_CHECKING:
    from proctor.report.run_data import Evidence


def chosen(names: list[str]) -> list[str]:
    """One score per detector: of a family with a parameter (``min_k@5`` ... ``@60``) the one @20, or its first."""
    families: dict[str, list[str]] = {}
    for name in names:
        if "/" not in name:
            families.setdefault(name.partition("@")[0], []).append(name)
    return [next((n for n in found if n.endswith("@20")), found[0]) for found in families.values()]


def draw(evidence: Evidence) -> Plate | None:
    measured = {
        name: {d: f for d, f in c["detection"].items() if f.get("auc") is not None}
        for name, c in evidence.candidates.items()
    }
    measured = {name: figures for name, figures in measured.items() if figures}
    detectors = chosen(list(dict.fromkeys(d for figures in measured.values() for d in figures)))
    if not detectors:
        return None
    step = min(0.26, 0.8 / len(measured))
    figure = canvas(WIDTH, 1.6 + len(detectors) * max(0.36, 0.11 * len(measured)))
    axes = figure.add_subplot()
    blind = evidence.summary["blind_baseline"] or {}
    if blind.get("auc") is not None:
        low, high = blind["auc_ci"]
        axes.axvspan(low, high, color="#999999", alpha=0.25, linewidth=0, label="blind baseline, 95%")
        axes.axvline(blind["auc"], color="#777777", linewidth=1)
    axes.axvline(0.5, color="black", linestyle=":", linewidth=1, label="chance")
    for place, (name, figures) in enumerate(measured.items()):
        style = evidence.style(name)
        offset = (place - (len(measured) - 1) / 2) * step
        for row, detector in enumerate(detectors):
            if detector not in figures:
                continue
            value, bounds = figures[detector]["auc"], figures[detector].get("auc_ci")
            axes.errorbar(
                value,
                row + offset,
                xerr=None if not bounds else [[max(0.0, value - bounds[0])], [max(0.0, bounds[1] - value)]],
                fmt=style.marker,
                markersize=4,
                color=style.colour,
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
