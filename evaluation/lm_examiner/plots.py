"""Figures of exams by a model: radar, levels, domains, question words, peers, strengths, embeddings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.protocol import Held
from evaluation.show.plate import COLOURS, MARKERS, Plate, Style, apart, canvas, error_bars
from evaluation.show.win_rates import win_rates

Metrics = Mapping[str, Any]
WIDE = 6.4
MOST_UPRIGHT = 18
"""Bars of a figure from which on they lie, one below the other."""


def exams(held: Mapping[str, Held], style: Mapping[str, Style]) -> list[Plate]:
    """Of each exam the radar, and full marks by level and by domain; candidates with several halves once for each."""
    found = []
    for suffix, heading, one in apart(held):
        found += marked(labelled(one), suffix=suffix, heading=heading)
    return found


def labelled(held: Held) -> dict[str, Metrics]:
    """A candidate's figures by its name, with the half where there are several."""
    rows = [(name, half, figures) for name, by in held.metrics.items() for half, figures in by.items()]
    halves = {half for _, half, figures in rows if figures["n"]}
    return {name if len(halves) < 2 else f"{name}, {half}": figures for name, half, figures in rows if figures["n"]}


def marked(rows: Mapping[str, Metrics], *, suffix: str = "", heading: str = "") -> list[Plate]:
    """Radar, levels and domains. rows: the figures of ``marks.figures`` with ``levels`` and ``domains``, by name."""
    if not rows:
        return []
    found = [radar(rows, f"radar{suffix}", f"Marks{heading}")]
    for key in ("levels", "domains"):
        groups = {name: full_marks(figures[key]) for name, figures in rows.items()}
        order = list(dict.fromkeys(group for figures in rows.values() for group in figures[key]))
        label = "share of full marks (95% interval)"
        found.append(grouped_bars(f"{key}{suffix}", f"Full marks by {key[:-1]}{heading}", groups, label, order))
    return found


def full_marks(parts: Mapping[str, Metrics]) -> dict[str, Any]:
    """Value and interval of the share of full marks of each part (level, domain)."""
    keys = ("full_marks_share", "full_marks_share_interval")
    return {name: {"value": part[keys[0]], "interval": part[keys[1]]} for name, part in parts.items()}


def written(held: Mapping[str, Held], style: Mapping[str, Style]) -> list[Plate]:
    """What an examiner wrote: question words, levels, questions by domain."""
    return [plate for suffix, heading, one in apart(held) for plate in exam_written(one.metrics, suffix, heading)]


def exam_written(metrics: Metrics, suffix: str = "", heading: str = "") -> list[Plate]:
    return [
        bars(f"question_words{suffix}", f"Question words{heading}", metrics["question_words"]),
        bars(f"written_levels{suffix}", f"Levels of the questions{heading}", metrics["levels"]["counts"]),
        bars(f"written_domains{suffix}", f"Domains of the questions{heading}", metrics["domains"], upright=False),
    ]


def rankings(held: Mapping[str, Held], style: Mapping[str, Style]) -> list[Plate]:
    """Win rates and Bradley-Terry strengths of each ranking."""
    found = []
    for name, one in held.items():
        matrix, suffix, heading = one.metrics["win_rates"], *_ends(name)
        about = f"Answers compared pair by pair in both orders, {one.metrics['n']} questions"
        found.append(win_rates(matrix["names"], matrix["rates"], _of_group(name, about), suffix, heading))
        found.append(strengths(one.metrics["bradley_terry"], suffix, heading))
    return found


def peers(held: Mapping[str, Held], style: Mapping[str, Style]) -> list[Plate]:
    """Full marks by examiner, as they are and weighted, and the combined examiner's win rates, by mean and by vote."""
    found = []
    for name, one in held.items():
        metrics, (suffix, heading) = one.metrics, _ends(name)
        table = metrics["full_marks"]
        found += [
            _by_peers(f"peer_full_marks{suffix}", f"Full marks{heading}", table, metrics["AVG"], "full marks, %"),
            _by_peers(
                f"peer_weighted{suffix}",
                f"Full marks, scaled{heading}",
                _scaled(table),
                metrics["AVG_weight"],
                "% of the best",
            ),
        ]
        for how, said in (("by_mean", "the mean of the examiners' win rates"), ("by_vote", "a vote per examiner")):
            rates = metrics["pairwise"]["combined"][how]["rates"]
            if any(value is not None for row in rates for value in row):
                about = _of_group(name, f"the combined examiner, {said}; {metrics['n']} questions")
                ends = f"{suffix}.{how}", f"{heading or ':'}{',' if heading else ''} {how.replace('_', ' ')}"
                found.append(win_rates(list(table), rates, about, *ends))
    return found


def _ends(name: str) -> tuple[str, str]:
    """The end of a file's name and of a heading; none for a group without a name."""
    return (f".{name}", f": {name}") if name else ("", "")


def _of_group(name: str, about: str) -> str:
    return f"Group {name}: {about[0].lower()}{about[1:]}" if name else f"{about[0].upper()}{about[1:]}"


def radar(rows: Mapping[str, Metrics], name: str, title: str) -> Plate:
    """One polygon per candidate: each mark's mean as a share of the best mark. rows: ``marks.figures`` by candidate."""
    drawn = {
        label: row
        for label, row in rows.items()
        if all(part["of_maximum"] is not None for part in row["dimensions"].values())
    }
    figure = canvas(height=4.9)
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
    if drawn:
        figure.legend(loc="outside lower center", ncols=2)
    return Plate(name=name, title=title, caption="Mean of each mark, in percent of the best mark.", figure=figure)


def strengths(fitted: Metrics, suffix: str = "", heading: str = "") -> Plate:
    """Bradley-Terry strengths with their intervals, the best on top; or why there are none."""
    known = {label: value for label, value in fitted["strengths"].items() if value is not None}
    order = sorted(known, key=lambda label: known[label])
    figure = canvas(height=1.6 + 0.4 * max(1, len(order)))
    axes = figure.add_subplot()
    for place, label in enumerate(order):
        spread = error_bars(known[label], fitted["intervals"][label])
        axes.errorbar(known[label], place, xerr=spread, fmt="o", color=COLOURS[0], capsize=3)
    axes.set_yticks(range(len(order)), order)
    axes.axvline(0, color="#999999", linewidth=0.8)
    axes.set_xlabel("Bradley-Terry strength, natural logarithm (95% interval)")
    axes.grid(axis="x", alpha=0.25)
    why = f"No strengths: {fitted['reason']}." if fitted["reason"] else "Mean 0; intervals over questions."
    return Plate(name=f"bradley_terry{suffix}", title=f"Bradley-Terry strengths{heading}", caption=why, figure=figure)


def bars(name: str, title: str, counts: Mapping[str, float], *, upright: bool = True) -> Plate:
    """One bar per name, in the given order; lying bars for long names (domains)."""
    names, values = list(counts), list(counts.values())
    figure = canvas(WIDE, 3.8 if upright else 1.2 + 0.24 * max(1, len(names)))
    axes = figure.add_subplot()
    if upright:
        axes.bar(range(len(names)), values, color=COLOURS[0])
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_ylabel("questions")
    else:
        axes.barh(range(len(names)), values, color=COLOURS[0])
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("questions")
    axes.grid(axis="y" if upright else "x", alpha=0.25)
    return Plate(name=name, title=title, caption=f"{sum(values):g} questions.", figure=figure)


def grouped_bars(
    name: str, title: str, groups: Mapping[str, Mapping[str, Any]], label: str, order: Sequence[str]
) -> Plate:
    """Per group (a level, a domain) one bar per series, with intervals: series -> group -> {value, interval}."""
    lying = len(order) * len(groups) > MOST_UPRIGHT
    figure = canvas(WIDE, max(4.2, 1.5 + 0.14 * len(order) * len(groups)) if lying else 4.2)
    axes = figure.add_subplot()
    thick = 0.8 / max(1, len(groups))
    for place, (series, values) in enumerate(groups.items()):
        known = [
            (at, values[group]) for at, group in enumerate(order) if values.get(group, {}).get("value") is not None
        ]
        places = [at - 0.4 + thick * (place + 0.5) for at, _ in known]
        bounds = [error_bars(row["value"], row.get("interval")) or [[0.0], [0.0]] for _, row in known]
        spread = [[low[0] for low, _ in bounds], [high[0] for _, high in bounds]]
        heights, colour = [row["value"] for _, row in known], COLOURS[place % len(COLOURS)]
        if lying:
            axes.barh(places, heights, thick, color=colour, xerr=spread, capsize=1, label=series)
        else:
            axes.bar(places, heights, thick, color=colour, yerr=spread, capsize=2, label=series)
    if lying:
        axes.set_yticks(range(len(order)), order, fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel(label)
    else:
        axes.set_xticks(range(len(order)), order, rotation=30, ha="right", fontsize=8)
        axes.set_ylabel(label)
    axes.grid(axis="x" if lying else "y", alpha=0.25)
    if groups:
        figure.legend(loc="outside lower center", ncols=3)
    return Plate(name=name, title=title, caption=f"{label[0].upper()}{label[1:]}.", figure=figure)


def benchmark_levels(held: Mapping[str, Metrics], order: Sequence[str]) -> Plate:
    """Shares of the levels among several sets' questions. held: metrics of ``question_levels`` by set."""
    sets = {
        name: {level: {"value": value} for level, value in metrics["levels"]["shares"].items()}
        for name, metrics in held.items()
    }
    return grouped_bars("benchmark_levels", "Levels of the questions", sets, "share of questions", order)


def _by_peers(
    name: str, title: str, table: Mapping[str, Mapping[str, float | None]], combined: Metrics, label: str
) -> Plate:
    """Per candidate one bar for each examiner, and the combined examiner's beside them."""
    series: dict[str, dict[str, Any]] = {}
    for candidate, row in table.items():
        for examiner, value in row.items():
            series.setdefault(f"by {examiner}", {})[candidate] = {"value": value}
    series["combined examiner"] = {candidate: {"value": value} for candidate, value in combined.items()}
    return grouped_bars(name, title, series, label, list(table))


def scatter(name: str, title: str, points: Sequence[Sequence[float]], groups: Sequence[str], *, axis: str) -> Plate:
    """Points in the plane, coloured by group. axis: what the plane is (``PCA component``, ``t-SNE dimension``)."""
    figure = canvas(7.2, 4.8)
    axes = figure.add_subplot()
    for place, group in enumerate(dict.fromkeys(groups)):
        own = [point for point, other in zip(points, groups, strict=True) if other == group]
        marker = MARKERS[(place // len(COLOURS)) % len(MARKERS)]
        colour = COLOURS[place % len(COLOURS)]
        axes.scatter(*zip(*own, strict=True), s=14, color=colour, marker=marker, label=group, alpha=0.8)
    axes.set_xlabel(f"{axis} 1")
    axes.set_ylabel(f"{axis} 2")
    axes.set_title(title, fontsize=10)
    if len(set(groups)) <= 24:
        figure.legend(loc="outside right upper", fontsize=7)
    return Plate(name=name, title=title, caption=f"{len(points)} questions. {title}.", figure=figure)


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
