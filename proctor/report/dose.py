"""Dose and response: accuracy gained and Min-K% AUC against the passes over the exam, before and after washing.

Passes are a recipe's ``repeats``; Normal has 0. A gain is paired with Normal, item by item; a washed candidate is
paired with the one it was made from; every other cheater's AUC with that of the PT-cheater of most passes. All
intervals are 95%, over the items (texts).
"""

from __future__ import annotations

from typing import Any

from detection.statistics.gain import paired_difference
from evaluation.show.table import Cell, Table, figure
from evaluation.statistics import paired_mean
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import repeats_of
from proctor.report.contamination import HEADLINE
from proctor.report.item_score import earned_by_both
from proctor.report.summary import Rows, records, same_order
from proctor.run_folder.run import RunFolder

HALVES = ("leaked", "untouched")


def dose_response(run: RunFolder, summary: dict[str, Any]) -> list[dict[str, Any]] | None:
    """A row per trained candidate, or None where there is no response to show: fewer than three numbers of passes
    among the candidates, and none washed.

    gains: exam -> half -> accuracy minus Normal's; since_origin: the same against the candidate it was made from
    auc: Min-K% on the whole text in the headline format; auc_over_base, auc_against_pt, auc_since_origin: paired
    differences. Each is {"value", "ci"}, or null where it was not measured.
    """
    doses = passes(run.experiment)
    normal = next((name for name in doses if run.experiment.candidates[name].recipe == "normal"), None)
    origins = {name: run.experiment.candidates[name].origin for name in doses}
    if normal is None or (len(set(doses.values())) < 3 and not any(origins.values())):
        return None
    pt = max((n for n in doses if run.experiment.candidates[n].recipe == "pt_cheater"), key=doses.get, default=None)  # type: ignore[arg-type]
    return [
        {
            "candidate": name,
            "recipe": run.experiment.candidates[name].recipe,
            "origin": origins[name],
            "repeats": count,
            "gains": _accuracy(run, name, normal),
            "since_origin": _accuracy(run, name, origins[name]),
            "auc": _measured(summary["candidates"][name]["detection"].get(HEADLINE)),
            "auc_over_base": _auc(run, name, "base"),
            "auc_against_pt": _auc(run, name, pt) if name != pt else None,
            "auc_since_origin": _auc(run, name, origins[name]),
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
    return Table("dose_response", caption, tuple(header), body)


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


def _accuracy(run: RunFolder, name: str, other: str | None) -> dict[str, Any]:
    """Accuracy of one candidate minus another's, in [-1, 1], per half and static exam on the experiment's items."""
    result: dict[str, Any] = {}
    for exam, config in run.experiment.exams.items():
        if other is None or config.protocol != "static" or config.benchmark is not None or config.build is not None:
            continue
        mine, theirs = records(run, f"{exam}.{name}"), records(run, f"{exam}.{other}")
        if mine is None or theirs is None or not same_order(mine, theirs):
            continue
        result[exam] = {half: _difference(mine, theirs, half, run.experiment.seed) for half in HALVES}
    return result


def _difference(mine: Rows, theirs: Rows, half: str, seed: int) -> dict[str, Any] | None:
    pairs = earned_by_both(mine, theirs, half)
    found = paired_mean([a for a, _ in pairs], [b for _, b in pairs], seed=seed)
    return None if found.n == 0 else found.to_json("value", "ci")


def _auc(run: RunFolder, name: str, other: str | None) -> dict[str, Any] | None:
    mine = records(run, f"detect.{name}")
    theirs = None if other is None else records(run, f"detect.{other}")
    if mine is None or theirs is None or not same_order(mine, theirs, "id"):
        return None
    found = paired_difference(
        [r["label"] for r in mine],
        [r["scores"].get(HEADLINE) for r in mine],
        [r["scores"].get(HEADLINE) for r in theirs],
    )
    return None if found.reason else {"value": found.value, "ci": [found.low, found.high]}


def _measured(detector: dict[str, Any] | None) -> dict[str, Any] | None:
    if not detector or detector.get("auc") is None:
        return None
    return {"value": detector["auc"], "ci": detector.get("auc_ci")}
