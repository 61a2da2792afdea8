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

from detection import tables as audit
from detection.run_detectors import clean
from evaluation import registry
from evaluation.show.plate import own_names
from evaluation.show.table import Cell, Table, count
from evaluation.show.table import figure as cell_of
from proctor import __version__
from proctor.experiment.environment_references import variables
from proctor.report import dose, provenance
from proctor.report.accuracy_against_kieval import caption, points, regression
from proctor.report.contamination import columns, contamination, further_exams, headline
from proctor.report.figures import draw_all
from proctor.report.present import expected
from proctor.report.run_data import RunData
from proctor.report.summary import exam_of, summarise_run
from proctor.report.table_files import write_tables
from proctor.report.transcripts import Index, Transcripts
from proctor.report.verdicts import verdict_lines
from proctor.run_folder.run import RunFolder
from serving.files import write_json, write_text


def write_report(run: RunFolder, folder: Path, *, outdated: Sequence[str] = ()) -> list[str]:
    """Reads the run folder, writes the report's files, returns their names.

    Stages that are not done are left out and named on the page. outdated: stages whose inputs changed since they were
    done; their figures are shown, with a warning. Stages whose files are not as they left them are left out and named.
    ValueError if not even the exam is frozen, or if the items of an exam were changed afterwards.
    """
    if not (run.stage("exam").path / "items.jsonl").is_file():
        raise ValueError(f"{run.path}: not even the exam is frozen yet, so there is nothing to report; run it first")
    run.verify(expected(run))
    experiment = run.experiment
    for exam in ("exam", *(experiment.items_stage(name) for name in (*experiment.exams, *experiment.groups))):
        if exam in run.damaged:
            raise ValueError(
                f"{run.stage(exam).path}: {', '.join(run.damaged[exam])} changed after stage {exam} was done, so it is "
                "not known what was asked; 'proctor run' with the experiment does it again"
            )
    transcripts = Transcripts(run, folder)
    data = RunData(run, each=transcripts.sat)
    summary = {**clean(summarise_run(data)), "outdated": list(outdated)}
    found = points(summary)
    if found:
        line = regression(found)
        summary["accuracy_against_kieval"] = {"caption": caption(line), **asdict(line)}
    doses = dose.dose_response(data, summary)
    if doses is not None:
        summary["dose_response"] = clean(doses)
    write_json(folder / "summary.json", summary)
    for former in ("tables", "figures"):
        shutil.rmtree(folder / former, ignore_errors=True)
    tables = all_tables(data, summary)
    names = ["summary.json", *write_tables(list(tables.values()), folder / "tables")]
    drawings = draw_all(data, summary, folder / "figures")
    index, pages = transcripts.close(data)
    benchmark = run.experiment.benchmark.format
    published = [table for hook, _ in data.hooked("published") if (table := hook(benchmark)) is not None]
    environment = data.side(run.path / "environment.json")
    page = _page(
        summary=summary,
        verdicts=verdict_lines(summary),
        tables=tables,
        columns_said=" ".join(column.said for _, column in columns() if column.said),
        drawings=drawings,
        index=index,
        published=published,
        usage=provenance.usage(data),
        failures=provenance.failures(data),
        prompts=provenance.prompts(data),
        limits=provenance.limits(data),
        environment=environment,
        checks=environment.get("self_tests") or {},
        notes=list(data.notes),
        variables=variables(experiment.references),
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


def all_tables(data: RunData, summary: dict[str, Any]) -> dict[str, Table]:
    """The report's tables by name; one without rows is left out."""
    tabled = {protocol: exam_of(data.experiment, protocol) for protocol in registry.HEADLINED}
    made = [
        contamination(summary, tabled),
        differences(summary),
        exams(summary),
        audit.detectors(summary["candidates"]),
        dose.table(summary.get("dose_response", [])),
        audit.set_tests(summary["candidates"]),
        *(table for tables, held in data.hooked("tables") for table in tables(held)),
    ]
    return {table.name: table for table in own_names(table for table in made if table.rows)}


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
    return Table("differences", caption, header, body, title=f"Against {summary['reference']}")


def difference_cells(row: dict[str, Any]) -> list[Cell]:
    """Difference with interval, p, adjusted p and n of one paired comparison."""
    from dataclasses import replace

    shown = replace(
        cell_of(row["difference"], row["interval"], 1, 3, row.get("interval_note", "")), significant=row["significant"]
    )
    p_values = [Cell("-") if row[k] is None else Cell(f"{row[k]:.2g}", row[k]) for k in ("p_value", "p_adjusted")]
    return [shown, *p_values, count(row["n"])]


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
    caption = "Each exam's headline figure; everything else is in summary.json."
    return Table("exams", caption, ("exam", "items", "figure", "n", *names), body, title="All exams")
