"""Dose and response: accuracy gained and Min-K% AUC against the passes over the exam, before and after washing.

Passes are a recipe's ``repeats``; Normal has 0. A gain is paired with Normal, item by item; a washed candidate is
paired with the one it was made from; every other cheater's AUC with that of the PT-cheater of most passes. All
intervals are 95%, by bootstrap over the items (texts).
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from detection.bootstrap import paired_difference
from evaluation.statistics import paired_bootstrap
from proctor.atomic import write_bytes, write_text
from proctor.experiment import Experiment
from proctor.report.columns import HEADLINE, figure
from proctor.report.summary import Rows, records
from proctor.runfolder import RunFolder
from proctor.stages.train import job_for

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


def table(rows: list[dict[str, Any]]) -> list[list[str]]:
    """The rows as text, for the page; the first is the heading."""
    exams = list(dict.fromkeys(exam for row in rows for exam in row["gains"]))
    heading = ["candidate", "recipe", "passes"]
    heading += [f"{exam}: gain {half}" for exam in exams for half in HALVES]
    heading += ["Min-K% AUC", "AUC over base", "AUC against the PT-cheater"]
    heading += [f"{exam} leaked, since origin" for exam in exams[:1]] + ["AUC, since origin"]
    body = []
    for row in rows:
        cells = [str(row[key]) for key in ("candidate", "recipe", "repeats")]
        cells += [_text(row["gains"].get(exam, {}).get(half), 100, 1) for exam in exams for half in HALVES]
        cells += [_text(row[key], 1, 2) for key in ("auc", "auc_over_base", "auc_against_pt")]
        cells += [_text(row["since_origin"].get(exam, {}).get("leaked"), 100, 1) for exam in exams[:1]]
        body.append([*cells, _text(row["auc_since_origin"], 1, 2)])
    return [heading, *body]


def _text(measured: dict[str, Any] | None, scale: float, digits: int) -> str:
    return "-" if measured is None else figure(measured["value"], measured["ci"], scale, digits).text


def passes(experiment: Experiment) -> dict[str, int]:
    """How often each trained candidate, or the one it was made from, has read the leaked items; fewest first."""
    found: dict[str, int] = {}
    for name in experiment.in_training_order():
        origin, recipe = experiment.candidates[name].origin, experiment.candidates[name].recipe
        own = 0 if recipe in ("normal", "washed") else job_for(experiment, name).repeats
        found[name] = own + (found[origin] if origin else 0)
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def _accuracy(run: RunFolder, name: str, other: str | None) -> dict[str, Any]:
    """Accuracy of one candidate minus another's, in [-1, 1], per half and static exam on the experiment's items."""
    result: dict[str, Any] = {}
    for exam, config in run.experiment.exams.items():
        if other is None or config.protocol != "static" or config.benchmark is not None or config.build is not None:
            continue
        mine, theirs = records(run, f"{exam}.{name}"), records(run, f"{exam}.{other}")
        if mine is None or theirs is None or [r["item_id"] for r in mine] != [r["item_id"] for r in theirs]:
            continue
        result[exam] = {half: _difference(mine, theirs, half, run.experiment.seed) for half in HALVES}
    return result


def _difference(mine: Rows, theirs: Rows, half: str, seed: int) -> dict[str, Any] | None:
    pairs = [
        (float(bool(a["correct"])), float(bool(b["correct"])))
        for a, b in zip(mine, theirs, strict=True)
        if a["half"] == half
    ]
    found = paired_bootstrap([a for a, _ in pairs], [b for _, b in pairs], seed=seed)
    return None if found is None else {"value": found.mean, "ci": [*found.interval]}


def _auc(run: RunFolder, name: str, other: str | None) -> dict[str, Any] | None:
    mine = records(run, f"detect.{name}")
    theirs = None if other is None else records(run, f"detect.{other}")
    if mine is None or theirs is None:
        return None
    found = paired_difference(
        [r["label"] for r in mine],
        [r["scores"][HEADLINE] for r in mine],
        [r["scores"][HEADLINE] for r in theirs],
        seed=run.experiment.seed,
    )
    return None if found.reason else {"value": found.value, "ci": [found.low, found.high]}


def _measured(detector: dict[str, Any] | None) -> dict[str, Any] | None:
    if not detector or detector.get("auc") is None:
        return None
    return {"value": detector["auc"], "ci": detector.get("auc_ci")}


COLORS = {"normal": "#444444", "pt_cheater": "#1f5fa8", "sft_cheater": "#c2571a"}


def write_figure(rows: list[dict[str, Any]], base: dict[str, Any] | None, folder: Path) -> str:
    """dose_response.svg and .png in ``folder``: gains per half on the left, AUC on the right; returns the SVG's text.

    base: the untouched base's AUC, drawn as a line: what the texts alone give away
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "proctor", "svg.fonttype": "none", "font.size": 10, "font.family": "sans-serif"}):
        drawing = Figure(figsize=(9.6, 4.2), layout="constrained")
        left, right = drawing.subplots(1, 2)
        exam = next((name for row in rows for name in row["gains"]), None)
        for half, style in (("leaked", "-"), ("untouched", ":")):
            points = {row["candidate"]: row["gains"].get(exam, {}).get(half) for row in rows}
            _draw(left, rows, points, style, 100, half)
        _draw(right, rows, {row["candidate"]: row["auc"] for row in rows}, "-", 1, "Min-K%")
        left.axhline(0, color="#888888", linewidth=0.8)
        right.axhline(0.5, color="#888888", linewidth=0.8)
        if base is not None and base.get("auc") is not None:
            right.axhline(base["auc"], color="#888888", linestyle="--", linewidth=1, label="untouched base")
        left.set_ylabel(f"accuracy minus Normal's, points ({exam}; 95% interval)")
        right.set_ylabel("Min-K% AUC of the leaked texts (95% interval)")
        for axes in (left, right):
            axes.set_xlabel("passes over the leaked items")
            axes.set_xticks(sorted({row["repeats"] for row in rows}))
            axes.grid(alpha=0.25)
            axes.legend(fontsize=8)
        svg, png = io.BytesIO(), io.BytesIO()
        drawing.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        drawing.savefig(png, format="png", dpi=160, metadata={"Software": None})
    text = svg.getvalue().decode("utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "dose_response.svg", text)
    write_bytes(folder / "dose_response.png", png.getvalue())
    return text


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
            color=COLORS.get(kind, "#6a3d9a"),
            mfc="none" if washed else None,
            capsize=2,
            label=f"{kind}{', washed' if washed else ''}: {what}",
        )
