"""Dose and response: accuracy gained and Min-K% AUC against the passes over the exam, before and after washing.

Passes are a recipe's ``repeats``; Normal has 0. A gain is paired with Normal, item by item; a washed candidate is
paired with the one it was made from; every other cheater's AUC with that of the PT-cheater of most passes. All
intervals are 95%, over the items (texts).
"""

from __future__ import annotations

from typing import Any

from detection.statistics.gain import paired_difference
from detection.verdict import HEADLINE
from evaluation.show.plate import Plate, canvas
from evaluation.show.table import Cell, Table, figure
from evaluation.statistics import paired_mean
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import CONTROL, repeats_of
from proctor.report.item_score import Scored, earned_by_both
from proctor.report.run_data import RunData
from proctor.report.summary import answered_exams, same_items, same_order

HALVES = ("leaked", "untouched")
COLOURS = {"normal": "#444444", "pt_cheater": "#1f5fa8", "sft_cheater": "#c2571a"}


def dose_response(data: RunData, summary: dict[str, Any]) -> list[dict[str, Any]] | None:
    """A row per trained candidate, or None where there is no response to show: fewer than three numbers of passes
    among the candidates, and none washed.

    gains: exam -> half -> accuracy minus Normal's; since_origin: the same against the candidate it was made from
    auc: Min-K% on the whole text in the headline format; auc_over_base, auc_against_pt, auc_since_origin: paired
    differences. Each is {"value", "ci"}, or null where it was not measured.
    """
    doses = passes(data.experiment)
    normal = next((name for name in doses if data.experiment.candidates[name].recipe == "normal"), None)
    origins = {name: data.experiment.candidates[name].origin for name in doses}
    if normal is None or (len(set(doses.values())) < 3 and not any(origins.values())):
        return None
    pt = max((n for n in doses if data.experiment.candidates[n].recipe == "pt_cheater"), key=doses.get, default=None)  # type: ignore[arg-type]
    return [
        {
            "candidate": name,
            "recipe": data.experiment.candidates[name].recipe,
            "origin": origins[name],
            "repeats": count,
            "gains": _accuracy(data, name, normal),
            "since_origin": _accuracy(data, name, origins[name]),
            "auc": _measured(summary["candidates"][name]["detection"].get(HEADLINE[0])),
            "auc_over_base": _auc(data, name, CONTROL),
            "auc_against_pt": _auc(data, name, pt) if name != pt else None,
            "auc_since_origin": _auc(data, name, origins[name]),
        }
        for name, count in doses.items()
    ]


def table(rows: list[dict[str, Any]]) -> Table:
    """Gains in points, AUC as they are."""
    exams = list(dict.fromkeys(exam for row in rows for exam in row["gains"]))
    header = ["candidate", "recipe", "passes"]
    header += [f"{exam}: gain {half}" for exam in exams for half in HALVES]
    header += ["Min-K% AUC", "AUC over base", "AUC against the PT-cheater"]
    header += [f"{exam} leaked, since origin" for exam in exams[:1]] + ["AUC, since origin"]
    body = []
    for row in rows:
        cells = [Cell(str(row["candidate"])), Cell(str(row["recipe"])), Cell(str(row["repeats"]), row["repeats"])]
        cells += [_cell(row["gains"].get(exam, {}).get(half), 100, 1) for exam in exams for half in HALVES]
        cells += [_cell(row[key], 1, 2) for key in ("auc", "auc_over_base", "auc_against_pt")]
        cells += [_cell(row["since_origin"].get(exam, {}).get("leaked"), 100, 1) for exam in exams[:1]]
        body.append([*cells, _cell(row["auc_since_origin"], 1, 2)])
    caption = "Gains in points against Normal, item by item; passes over the leaked items."
    return Table("dose_response", caption, tuple(header), body, title="Dose and response")


def _cell(measured: dict[str, Any] | None, scale: float, digits: int) -> Cell:
    return (
        Cell("-")
        if measured is None
        else figure(measured["value"], measured["ci"], scale, digits, measured.get("ci_note", ""))
    )


def passes(experiment: Experiment) -> dict[str, int]:
    """How often each trained candidate, or the one it was made from, has read the leaked items; fewest first."""
    found: dict[str, int] = {}
    for name in experiment.in_training_order():
        origin, recipe = experiment.candidates[name].origin, experiment.candidates[name].recipe
        own = 0 if recipe in ("normal", "washed") else repeats_of(experiment, name)
        found[name] = own + (found[origin] if origin else 0)
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def _accuracy(data: RunData, name: str, other: str | None) -> dict[str, Any]:
    """Accuracy of one candidate minus another's, in [-1, 1], per half and exam of right and wrong on the experiment's
    items."""
    result: dict[str, Any] = {}
    for exam in answered_exams(data.experiment):
        mine, theirs = data.scored(exam, name), data.scored(exam, other)
        if mine is not None and theirs is not None and same_items(mine, theirs):
            result[exam] = {half: _difference(mine, theirs, half, data.experiment.seed) for half in HALVES}
    return result


def _difference(mine: list[Scored], theirs: list[Scored], half: str, seed: int) -> dict[str, Any] | None:
    pairs = earned_by_both(mine, theirs, half)
    found = paired_mean([a for a, _ in pairs], [b for _, b in pairs], seed=seed)
    return None if found.n == 0 else found.to_json("value", "ci")


def _auc(data: RunData, name: str, other: str | None) -> dict[str, Any] | None:
    mine, theirs = data.detected.get(name), data.detected.get(other or "")
    if mine is None or theirs is None or not same_order(mine, theirs):
        return None
    found = paired_difference(
        [r["label"] for r in mine],
        [r["scores"].get(HEADLINE[0]) for r in mine],
        [r["scores"].get(HEADLINE[0]) for r in theirs],
    )
    return None if found.reason else {"value": found.value, "ci": [found.low, found.high]}


def _measured(detector: dict[str, Any] | None) -> dict[str, Any] | None:
    if not detector or detector.get("auc") is None:
        return None
    return {"value": detector["auc"], "ci": detector.get("auc_ci")}


def draw(summary: dict[str, Any]) -> Plate | None:
    """The figure of a summary's rows; None without any."""
    rows = summary.get("dose_response")
    base = summary["candidates"].get(CONTROL, {}).get("detection", {}).get(HEADLINE[0])
    return plate(rows, base) if rows else None


def plate(rows: list[dict[str, Any]], base: dict[str, Any] | None) -> Plate:
    """Gains per half above, AUC below. rows: of ``dose_response``.

    base: the untouched base's AUC, drawn as a line: what the texts alone give away
    """
    drawing = canvas(height=7.4)
    upper, lower = drawing.subplots(2, 1)
    exam = next((name for row in rows for name in row["gains"]), None)
    for half, style in (("leaked", "-"), ("untouched", ":")):
        points = {row["candidate"]: row["gains"].get(exam, {}).get(half) for row in rows}
        _draw(upper, rows, points, style, 100, half)
    _draw(lower, rows, {row["candidate"]: row["auc"] for row in rows}, "-", 1, "Min-K%")
    upper.axhline(0, color="#888888", linewidth=0.8)
    lower.axhline(0.5, color="#888888", linewidth=0.8)
    if base is not None and base.get("auc") is not None:
        lower.axhline(base["auc"], color="#888888", linestyle="--", linewidth=1, label="untouched base")
    upper.set_ylabel(f"accuracy minus Normal's, points ({exam})")
    lower.set_ylabel("Min-K% AUC of the leaked texts")
    for axes in (upper, lower):
        axes.set_xlabel("passes over the leaked items")
        axes.set_xticks(sorted({row["repeats"] for row in rows}))
        axes.grid(alpha=0.25)
        axes.legend()
    return Plate(
        name="dose_response",
        title="Dose and response",
        caption="95% intervals. Hollow marks: after more clean SFT. Passes of 0 are Normal.",
        figure=drawing,
    )


def _draw(axes: Any, rows: list[dict[str, Any]], points: dict[str, Any], style: str, scale: float, what: str) -> None:
    """A line per recipe through its passes (Normal opens the PT-cheater's), and a hollow mark for what was washed."""
    recipes = {row["candidate"]: row["recipe"] for row in rows}
    series: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for row in rows:
        root = row
        while root["origin"] in recipes:
            root = next(other for other in rows if other["candidate"] == root["origin"])
        kind = "pt_cheater" if root["recipe"] == "normal" else str(root["recipe"])
        series.setdefault((kind, row["recipe"] == "washed"), []).append(row)
    for (kind, washed), members in series.items():
        shown = [(row["repeats"], points[row["candidate"]]) for row in members if points[row["candidate"]] is not None]
        if not shown:
            continue
        y = [scale * value["value"] for _, value in shown]
        low = [v - scale * p["ci"][0] if p["ci"] else 0.0 for v, (_, p) in zip(y, shown, strict=True)]
        high = [scale * p["ci"][1] - v if p["ci"] else 0.0 for v, (_, p) in zip(y, shown, strict=True)]
        # beside each other, not on top of each other
        aside = (kind != "pt_cheater") + 2 * washed + 0.5 * (style == ":")
        shift = 0.016 * aside * max(row["repeats"] for row in rows)
        axes.errorbar(
            [x + shift for x, _ in shown],
            y,
            yerr=[[max(0.0, v) for v in low], [max(0.0, v) for v in high]],
            fmt="o" + ("" if washed else style),
            color=COLOURS.get(kind, "#6a3d9a"),
            mfc="none" if washed else None,
            capsize=2,
            label=f"{kind}{', washed' if washed else ''}: {what}",
        )
