"""analyse: which items of an exam separate its candidates (classical statistics, two-parameter fit, short form)."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from evaluation.item_analysis.matrix import Matrix


def analyse(
    out: Annotated[Path, typer.Option(help="Folder for the results.")],
    matrix: Annotated[Path | None, typer.Option(help="CSV: a row per candidate, a column per item.")] = None,
    records: Annotated[
        list[str], typer.Option(help="NAME=FILE or FILE: a candidate's records.jsonl, or its stage's folder.")
    ] = [],  # noqa: B006
    run: Annotated[Path | None, typer.Option(help="Run folder of an experiment; with --exam.")] = None,
    exam: Annotated[str | None, typer.Option(help="The exam of --run that is analysed.")] = None,
    against: Annotated[
        str | None, typer.Option(help="Another exam of --run (or a CSV, with --matrix) that is compared with it.")
    ] = None,
    score: Annotated[str | None, typer.Option(help="Field of the records, e.g. scores.released.")] = None,
    max_score: Annotated[float | None, typer.Option(help="Best score of an item; 3 for a CSV where left out.")] = None,
    by: Annotated[
        Path | None, typer.Option(help="CSV item,group (or items.jsonl: its subjects): labels counted by group.")
    ] = None,
    generator: Annotated[
        list[str], typer.Option(help="Candidate that wrote the exam: refused without --allow-generator.")
    ] = [],  # noqa: B006
    allow_generator: Annotated[bool, typer.Option(help="Keep the generator's row, and mark it.")] = False,
    short: Annotated[int | None, typer.Option(min=1, help="Items of a short form.")] = None,
    fraction: Annotated[float, typer.Option(help="Share of candidates in the high group, and in the low one.")] = 0.27,
    cuts: Annotated[str, typer.Option(help="Between the four labels of discrimination.")] = "0.1,0.175,0.25",
    fit: Annotated[bool, typer.Option(help="Fit the two-parameter model.")] = True,
    resamples: Annotated[int, typer.Option(min=0, max=100_000, help="Bootstrap resamples; 0: no intervals.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of everything that is drawn.")] = 0,
) -> None:
    """Difficulty and discrimination of every item: items.csv, metrics.json and plots in --out."""
    from evaluation.item_analysis import report
    from evaluation.item_analysis.analysis import write_tables
    from evaluation.item_analysis.matrix import to_csv
    from evaluation.item_analysis.plots import write_plots
    from proctor.run_folder.single import check_folder, once
    from serving.files import readable, write_json, write_jsonl

    check_folder(out)
    settings = report.ItemAnalysisSettings(
        fraction=fraction, cuts=_cuts(cuts), short=short, fit=fit, resamples=resamples, seed=seed
    )
    table = readable(lambda: _matrix(matrix, records, run, exam, score, max_score), matrix or run)
    other = readable(lambda: _other(against, matrix, run, score, max_score), against)
    marked = _marked(generator, table.candidates, allow_generator)
    marked |= {} if run is None else _authors(run, exam)
    groups = None if by is None else readable(lambda: _groups(by), by)
    if short is not None and short > len(table.items):
        raise ValueError(f"--short is {short}, but there are {len(table.items)} items")
    if not 0 < fraction <= 0.5:
        raise ValueError(f"--fraction is {fraction}; each group must be more than 0 and at most half (0.5)")
    if other is not None and set(other.candidates) != set(table.candidates):
        raise ValueError(f"--against {against}: the same candidates must have sat both exams")
    inputs: dict[str, Any] = {
        "matrix": to_csv(table),
        "max_score": table.max_score,
        "against": None if other is None else [to_csv(other), other.max_score],
        "groups": groups,
        "marked": marked,
        "settings": asdict(settings),
    }

    def body(folder: Path, progress: Any) -> list[str]:
        found = report.analyse(table, settings, groups=groups, marked=marked, against=other)
        write_jsonl(folder / "rows.jsonl", found.rows)
        write_tables(found.rows, table, folder)
        plots = write_plots(found.rows, found.curves, folder)
        if found.curves:
            write_json(folder / "curves.json", found.curves)
        write_json(folder / "metrics.json", found.metrics)
        return ["metrics.json", "rows.jsonl", "items.csv", "matrix.csv", *plots]

    once(out, inputs, body)
    _show(json.loads((out / "metrics.json").read_text(encoding="utf-8")))
    print(f"items: {out / 'items.csv'}")


def _matrix(
    matrix: Path | None, records: list[str], run: Path | None, exam: str | None, score: str | None, best: float | None
) -> Matrix:
    from evaluation.item_analysis.matrix import from_records, read_csv

    given = [matrix is not None, bool(records), run is not None]
    if sum(given) != 1:
        raise ValueError("give one of --matrix FILE, --records NAME=FILE (once per candidate) or --run RUN --exam NAME")
    if (run is None) != (exam is None):
        raise ValueError("--run and --exam belong together: the run's folder and which of its exams")
    if matrix is not None:
        if score is not None:
            raise ValueError("--score names a field of records; a matrix has its scores in its cells")
        return read_csv(matrix, 3.0 if best is None else best)
    if run is not None and exam is not None:
        return from_records(_of_run(run, exam), score, best)
    files: dict[str, Path] = {}
    for value in records:
        name, sign, path = value.partition("=")
        place = Path(path if sign else value)
        place = place / "records.jsonl" if place.is_dir() else place
        key = name if sign else place.parent.name
        if key in files:
            raise ValueError(f"--records {value}: there is a candidate {key!r} already; write NAME=FILE")
        files[key] = place
    return from_records(files, score, best)


def _other(
    against: str | None, matrix: Path | None, run: Path | None, score: str | None, best: float | None
) -> Matrix | None:
    from evaluation.item_analysis.matrix import from_records, read_csv

    if against is None:
        return None
    if matrix is not None:
        return read_csv(Path(against), 3.0 if best is None else best)
    if run is None:
        raise ValueError("--against needs --run (another of its exams) or --matrix (another CSV)")
    return from_records(_of_run(run, against), score, best)


def _of_run(run: Path, exam: str) -> dict[str, Path]:
    """The records of one exam's finished stages, by candidate."""
    from evaluation.analysis import exam_stages
    from proctor.experiment.load import load_experiment
    from proctor.run_folder.stage import StageFolder

    stages = run / "stages"
    if not stages.is_dir():
        raise ValueError(f"--run {run}: there is no folder 'stages' in it; give the folder of an experiment's run")
    names = sorted(folder.name for folder in stages.iterdir() if folder.name.startswith(f"{exam}."))
    files = {
        name.removeprefix(f"{exam}."): stages / name / "records.jsonl"
        for name in names
        if StageFolder(stages / name).done() is not None and (stages / name / "records.jsonl").is_file()
    }
    if (run / "experiment.yaml").is_file():
        # "x.y" may be the candidate y of the exam x, or a stage of the exam "x.more"; and some may be former candidates
        experiment = load_experiment(run / "experiment.yaml")
        known = exam_stages(experiment, exam, where="--exam")
        files = {name: file for name, file in files.items() if name in known}
    if not files:
        there = sorted({path.parent.name for path in stages.glob("*/records.jsonl")})
        raise ValueError(f"--exam {exam}: the run has no finished records of it; it has {', '.join(there) or 'none'}")
    return files


def _marked(generators: list[str], candidates: tuple[str, ...], allowed: bool) -> dict[str, str]:
    for name in generators:
        if name not in candidates:
            raise ValueError(f"--generator {name}: there is no such candidate; there are {', '.join(candidates)}")
        if not allowed:
            raise ValueError(
                f"{name!r} wrote the exam it sat; leave it out of the matrix, or keep its row, marked, with "
                "--allow-generator"
            )
    return dict.fromkeys(generators, "wrote the exam it sat")


def _authors(run: Path, exam: str | None) -> dict[str, str]:
    """The candidates of a run that wrote the exam themselves (the experiment allowed it)."""
    from evaluation.run_builder import authors
    from proctor.experiment.load import load_experiment

    experiment = load_experiment(run / "experiment.yaml")
    known = authors(experiment, exam) if exam in experiment.exams else []
    return dict.fromkeys(known, "wrote the exam it sat")


def _groups(path: Path) -> dict[str, str]:
    """Item -> group, of a CSV with a header, or of an exam's items."""
    from evaluation.benchmarks.reading import csv_rows, json_rows, read_bytes

    if path.suffix == ".jsonl":
        return {row.text("id"): row.text("subject") for row in json_rows(path)}
    rows = list(csv_rows(read_bytes(path), str(path)))
    for place, cells in rows:
        if len(cells) != 2:
            raise place.error(f"the row has {len(cells)} cells; it must have two: item, group")
    return {cells[0].strip(): cells[1].strip() for _, cells in rows[1:]}


def _cuts(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise ValueError(f"--cuts {text!r}: give three numbers that rise, as 0.1,0.175,0.25") from error


def _show(metrics: dict[str, Any]) -> None:
    whole = metrics["set"]
    print(f"{metrics['candidates']} candidates, {metrics['items']} items, scores 0..{metrics['max_score']:g}")
    for line in metrics["warnings"]:
        print(f"warning: {line}")
    for name, reason in metrics.get("marked", {}).items():
        print(f"marked: {name} {reason}")
    size = "/".join(map(str, metrics["groups"]["high"]))
    print(f"groups: the upper and the lower {metrics['groups']['fraction']:.0%}, {size} candidates each")
    means = (metrics["difficulty_mean"], metrics["discrimination_mean"])
    print("mean difficulty {}, discrimination {}".format(*map(_figure, means)))
    if chance := metrics["by_chance"]:
        bounds = _between(chance["interval"])
        print(f"by chance: discrimination {_figure(chance['mean'])}{bounds}, p {chance['p_value']:.2g}")
    print("labels: " + ", ".join(f"{name} {count}" for name, count in metrics["labels"].items()))
    if metrics["negative"]:
        print(f"negative: on {metrics['negative']} items weak candidates do better than strong ones")
    spread = f"{_figure(whole['variance'])}{_between(whole['variance_interval'])}"
    apart = f"{_figure(whole['separability'])} of {whole['pairs']} pairs"
    print(f"set: mean {_figure(whole['mean'])}, variance {spread}, separability {apart}")
    if form := metrics["short_form"]:
        print(
            f"short form of {len(form['items'])}: Spearman {_figure(form['spearman'])} with the whole, "
            f"{_figure(form['spearman_rest'])} with the rest, random forms {_figure(form['spearman_random'])}, "
            f"candidates not chosen on {_figure(form['spearman_unseen'])}"
        )
    for name, part in metrics.get("by", {}).items():
        print(f"  {name or '(none)'}: {part['items']} items, discrimination {_figure(part['discrimination_mean'])}")
    if other := metrics.get("against"):
        print(
            f"against: variance {_figure(other['variance']['difference'])}{_between(other['variance']['interval'])}, "
            f"discrimination {_figure(other['discrimination']['difference'])}"
            f"{_between(other['discrimination']['interval'])}"
        )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _between(interval: list[float] | None) -> str:
    return f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else ""
