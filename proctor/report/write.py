"""Writes a run's report: summary.json, index.html, figures."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import jinja2

from proctor import __version__
from proctor.atomic import read_json, write_json, write_text
from proctor.detecting import clean
from proctor.report import dose, figures
from proctor.report.columns import HEADER, HEADLINE, rows
from proctor.report.columns import figure as columns_figure
from proctor.report.published import CONTAMINATION, beside
from proctor.report.summary import contains, exam_of, records, summarise_run
from proctor.runfolder import RunFolder

SHOWN_CHARACTERS = 4000
SHOWN_PER_CANDIDATE = 12
"""Transcripts on the page; all of them are in the stages' records.jsonl."""


def write_report(run: RunFolder, folder: Path) -> list[str]:
    """Reads the run folder, writes the report's files, returns their names."""
    summary = clean(summarise_run(run))
    found = figures.points(summary)
    line = figures.regression(found)
    if found:
        summary["accuracy_against_kieval"] = {"caption": figures.caption(line), **asdict(line)}
    doses = dose.dose_response(run, summary)
    if doses is not None:
        summary["dose_response"] = clean(doses)
    write_json(folder / "summary.json", summary)
    drawing = figures.write_accuracy_against_kieval(found, line, folder / "figures") if found else ""
    control = summary["candidates"].get("base", {}).get("detection", {}).get(HEADLINE)
    curve = "" if doses is None else dose.write_figure(doses, control, folder / "figures")
    columns, published = beside(run.experiment.benchmark.format)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("proctor.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("index.html").render(
        version=__version__,
        summary=summary,
        header=HEADER,
        rows=rows(summary),
        detection=_detection(summary),
        exams=_exams(summary),
        figure=drawing[drawing.find("<svg") :],
        dose_figure=curve[curve.find("<svg") :],
        dose_table=[] if doses is None else dose.table(doses),
        published_columns=columns,
        published=published,
        published_contamination=CONTAMINATION,
        transcripts=_transcripts(run),
        usage=_usage(run),
        environment=read_json(run.path / "environment.json"),
        experiment=(run.path / "experiment.yaml").read_text(encoding="utf-8"),
    )
    write_text(folder / "index.html", page)
    shown = [*(["accuracy_against_kieval"] if found else []), *([] if doses is None else ["dose_response"])]
    drawn = [f"figures/{name}.{kind}" for name in shown for kind in ("svg", "png")]
    return ["summary.json", "index.html", *drawn]


HEADLINES = ("accuracy", "score", "win_rate")
"""The figure of a protocol's summary that stands for it, the first that it has; ``<name>_interval`` is its interval."""


def _exams(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows exam and half x candidate: each exam's headline figure."""
    names = list(summary["candidates"])
    table: dict[tuple[str, str, str], dict[str, str]] = {}
    for name in names:
        for exam, halves in summary["candidates"][name]["exams"].items():
            for half, metrics in halves.items():
                key = next((key for key in HEADLINES if key in metrics), None)
                if key is not None and metrics["n"]:
                    shown = columns_figure(metrics[key], metrics.get(f"{key}_interval"), 1, 3)
                    table.setdefault((exam, half, key), {})[name] = f"{shown.text} (n {metrics['n']})"
    return [
        {"exam": exam, "half": half, "figure": key, "cells": [cells.get(name, "-") for name in names]}
        for (exam, half, key), cells in table.items()
    ]


def _detection(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows score name x candidate, whole-text scores first."""
    names = dict.fromkeys(name for c in summary["candidates"].values() for name in c["detection"])
    ordered = sorted(names, key=lambda name: "/" in name)
    return [
        {"name": name, "cells": [c["detection"].get(name) for c in summary["candidates"].values()]} for name in ordered
    ]


def _transcripts(run: RunFolder) -> list[dict[str, Any]]:
    exam = exam_of(run.experiment, "kieval")
    found = []
    if exam is not None:
        items = {row["id"]: row for row in records(run, "exam", "items.jsonl") or []}
        for name in run.experiment.candidates:
            for row in (records(run, f"{exam}.{name}") or [])[:SHOWN_PER_CANDIDATE]:
                found.append({"candidate": name, "item": items[row["item_id"]], **_shortened(row)})
    return found


def _shortened(value: Any) -> Any:
    """Texts cut to what a reader of the page needs; the records hold them whole."""
    if isinstance(value, str) and len(value) > SHOWN_CHARACTERS:
        return f"{value[:SHOWN_CHARACTERS]}\n[... {len(value) - SHOWN_CHARACTERS} more characters in the records]"
    if isinstance(value, dict):
        return {key: _shortened(entry) for key, entry in value.items()}
    return [_shortened(entry) for entry in value] if isinstance(value, list) else value


def _usage(run: RunFolder) -> list[dict[str, Any]]:
    """Calls, tokens and seconds per stage and role, as measured."""
    found = []
    for folder in sorted((run.path / "stages").glob("*")):
        if not folder.name.startswith("train.") and not contains(run.experiment, folder.name):
            continue
        seconds = read_json(folder / "time.json").get("seconds")
        roles = read_json(folder / "usage.json").get("roles", {})
        found.append({"stage": folder.name, "seconds": seconds, "roles": roles})
    return found
