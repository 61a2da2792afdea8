"""Writes a run's report: summary.json, tables, figures, transcripts, and the page last."""

from __future__ import annotations

import hashlib
import shutil
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from detection.run_detectors import clean
from evaluation.kieval.published import CONTAMINATION, beside
from evaluation.show.table import Cell, Table
from evaluation.show.table import figure as cell_of
from proctor import __version__
from proctor.report import dose, groups
from proctor.report import provenance as making
from proctor.report.contamination import contamination, further_exams, headline
from proctor.report.figures import draw_all
from proctor.report.figures.accuracy_against_kieval import caption, points, regression
from proctor.report.run_data import Evidence
from proctor.report.summary import exam_of, summarise_run
from proctor.report.table_files import write_tables
from proctor.report.transcripts import Index, write_transcripts
from proctor.report.verdicts import verdict_lines
from proctor.run_folder.run import RunFolder
from serving.files import read_json, write_json, write_text


def write_report(run: RunFolder, folder: Path, *, outdated: Sequence[str] = ()) -> list[str]:
    """Reads the run folder, writes the report's files, returns their names.

    Stages that are not done are left out and named on the page. outdated: stages whose inputs changed since they were
    done; their figures are shown, with a warning. ValueError if not even the exam is frozen.
    """
    if not (run.stage("exam").path / "items.jsonl").is_file():
        raise ValueError(f"{run.path}: not even the exam is frozen yet, so there is nothing to report; run it first")
    summary = {**clean(summarise_run(run)), "outdated": list(outdated)}
    found = points(summary)
    if found:
        line = regression(found)
        summary["accuracy_against_kieval"] = {"caption": caption(line), **asdict(line)}
    doses = dose.dose_response(run, summary)
    if doses is not None:
        summary["dose_response"] = clean(doses)
    evidence = Evidence(run, summary)
    write_json(folder / "summary.json", summary)
    for former in ("tables", "figures"):
        shutil.rmtree(folder / former, ignore_errors=True)
    tables = all_tables(evidence)
    names = ["summary.json", *write_tables(list(tables.values()), folder / "tables")]
    drawings = draw_all(evidence, folder / "figures")
    index, pages = write_transcripts(evidence, folder)
    columns, published = beside(run.experiment.benchmark.format)
    page = _page(
        summary=summary,
        verdicts=verdict_lines(summary),
        tables=tables,
        drawings=drawings,
        index=index,
        published_columns=columns,
        published=published,
        published_contamination=CONTAMINATION,
        usage=making.usage(evidence),
        failures=making.failures(evidence),
        prompts=making.prompts(evidence),
        limits=making.limits(evidence),
        environment=read_json(run.path / "environment.json"),
        checks=read_json(run.path / "environment.json").get("self_tests") or {},
        experiment=(run.path / "experiment.yaml").read_text(encoding="utf-8"),
    )
    write_text(folder / "index.html", page)
    return [*names, *(file for drawing in drawings for file in drawing.files), *pages, "index.html"]


def _page(*, index: Index, **values: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("proctor.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates = files("proctor.report") / "templates"
    style, script = ((templates / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    digest = b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()
    return environment.get_template("index.html").render(
        version=__version__, style=style, script=script, script_hash=digest, index=asdict(index), **values
    )


def all_tables(evidence: Evidence) -> dict[str, Table]:
    """The report's tables by name; one without rows is left out."""
    summary = evidence.summary
    experiment = evidence.run.experiment
    tabled = {protocol: exam_of(experiment, protocol) for protocol in ("static", "kieval")}
    made = [
        contamination(summary, tabled),
        differences(summary),
        exams(summary),
        detectors(summary),
        set_tests(summary),
        dose.table(summary.get("dose_response", [])),
        *groups.tables(summary),
        *analyses(evidence),
    ]
    return {table.name: table for table in made if table.rows}


def analyses(evidence: Evidence) -> list[Table]:
    """The table of each finished analysis."""
    from proctor.experiment.made import analysis_for

    experiment = evidence.run.experiment
    made = [analysis_for(experiment, name).table(name, found) for name, found in evidence.summary["analyses"].items()]
    return [table for table in made if table is not None]


def differences(summary: dict[str, Any]) -> Table:
    """Every candidate against the clean one, paired."""
    header = ("candidate", "figure", "difference", "p", "p adjusted", "n")
    body = []
    for name, c in summary["candidates"].items():
        for key, row in c.get("differences", {}).items():
            body.append([Cell(name), Cell(key), *difference_cells(row)])
    caption = (
        f"Candidate minus {summary['reference']}, paired by item. Accuracies, scores and AUC on their own scale (0 to "
        "1); loss gap in nats per token. p adjusted: Benjamini-Hochberg over this table. *: differs at 5%."
    )
    return Table("differences", caption, header, body)


def difference_cells(row: dict[str, Any]) -> list[Cell]:
    """Difference with interval, p, adjusted p and n of one paired comparison."""
    from dataclasses import replace

    shown = replace(
        cell_of(row["difference"], row["interval"], 1, 3, row.get("interval_note", "")), significant=row["significant"]
    )
    p_values = [Cell("-") if row[k] is None else Cell(f"{row[k]:.2g}", row[k]) for k in ("p_value", "p_adjusted")]
    return [shown, *p_values, Cell(str(row["n"]), row["n"])]


def exams(summary: dict[str, Any]) -> Table:
    """Rows exam and half, a column per candidate: each exam's headline figure."""
    names = list(summary["candidates"])
    table: dict[tuple[str, str, str], dict[str, Cell]] = {}
    counts: dict[tuple[str, str, str], set[int]] = {}
    for exam, half, key in further_exams(summary, {}):
        for name in names:
            metrics = summary["candidates"][name]["exams"].get(exam, {}).get(half, {})
            if metrics.get("n") and headline(metrics) == key:
                interval, note = metrics.get(f"{key}_interval"), metrics.get(f"{key}_interval_note", "")
                table.setdefault((exam, half, key), {})[name] = cell_of(metrics[key], interval, 1, 3, note)
                counts.setdefault((exam, half, key), set()).add(metrics["n"])
    body = [
        [*map(Cell, place), Cell("/".join(map(str, sorted(counts[place])))), *(cells.get(n, Cell("-")) for n in names)]
        for place, cells in table.items()
    ]
    return Table("exams", "Each exam's headline figure.", ("exam", "items", "figure", "n", *names), body)


def detectors(summary: dict[str, Any]) -> Table:
    """Rows score name, a column per candidate: AUC. Whole-text scores first."""
    names = list(summary["candidates"])
    scores = dict.fromkeys(score for c in summary["candidates"].values() for score in c["detection"])
    body = []
    for score in sorted(scores, key=lambda score: "/" in score):
        measured = [summary["candidates"][name]["detection"].get(score) or {} for name in names]
        body.append([Cell(score), *(cell_of(m.get("auc"), m.get("auc_ci"), 1, 3) for m in measured)])
    caption = 'AUC, leaked against untouched texts. "base" is the untouched base model: the control.'
    return Table("detectors", caption, ("score", *names), body)


def set_tests(summary: dict[str, Any]) -> Table:
    """Rows candidate x set-level test: p-values, and the test's own headline figures."""
    body = []
    for name, c in summary["candidates"].items():
        for test, figures in c["set_tests"].items():
            p_values = [figures.get("p_value"), figures.get("p_value_adjusted")]
            others = [
                f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
                for key, value in figures.items()
                if isinstance(value, int | float) and not isinstance(value, bool) and key not in SET_COLUMNS
            ]
            body.append(
                [
                    Cell(name),
                    Cell(test),
                    *(Cell("-") if p is None else Cell(f"{p:.2g}", p) for p in p_values),
                    Cell("-") if figures.get("n") is None else Cell(str(figures["n"]), figures["n"]),
                    Cell("; ".join(others) or "-"),
                    Cell(str(figures.get("reason") or "")),
                ]
            )
    caption = "Tests of the set as a whole; small p means leakage. A set-level test alone convicts nobody."
    return Table("set_tests", caption, ("candidate", "test", "p", "p adjusted", "n", "figures", "note"), body)


SET_COLUMNS = ("p_value", "p_value_adjusted", "n")
