"""Map of questions in two dimensions (t-SNE of embeddings), coloured by where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluation.show.plate import COLOURS, MARKERS, Plate, canvas

if TYPE_CHECKING:
    from proctor.report.run_data import Evidence, Plotted

LARGE = 500


def draw(evidence: Evidence) -> list[Plate]:
    """Reads ``question_map``: {points: [[x, y, group], ...], silhouette: s or null, about, projection: text}."""
    return [_plate(one) for one in evidence.plotted("question_map") if one.data.get("points")]


def _plate(plotted: Plotted) -> Plate:
    given = plotted.data
    groups: dict[str, list[tuple[float, float]]] = {}
    for x, y, group in given["points"]:
        groups.setdefault(str(group), []).append((float(x), float(y)))
    figure = canvas(height=4.4)
    axes = figure.add_subplot()
    for place, (group, points) in enumerate(groups.items()):
        axes.scatter(
            *zip(*points, strict=True),
            s=14 if len(given["points"]) < LARGE else 6,
            alpha=0.7,
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
            label=f"{group} ({len(points)})",
        )
    axes.set_xlabel("first dimension (no unit)")
    axes.set_ylabel("second dimension (no unit)")
    figure.legend(loc="outside upper center", ncols=3)
    parted = "" if given.get("silhouette") is None else f" Silhouette of the groups: {given['silhouette']:.2f}."
    return Plate(
        name=f"question_map{plotted.suffix}",
        title=f"Map of the questions{plotted.heading}",
        caption=f"{given.get('projection') or 't-SNE'} of embedded questions, {given.get('about') or 'by origin'}. "
        f"Only nearness says anything, not the axes.{parted}",
        figure=figure,
    )
