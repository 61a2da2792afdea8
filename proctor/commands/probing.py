"""probing: what meta probing did to candidates (compare), to items (export, import), and by whom (agents)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from serving.named import named_values

if TYPE_CHECKING:
    from evaluation.probing.inputs import Sat

app = typer.Typer(
    help="Compare results on vanilla and probed items; have people check probed items.", no_args_is_help=True
)

Out = Annotated[Path, typer.Option("--out", help="Folder for the results.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of everything that is drawn.")]
Built = Annotated[Path | None, typer.Option(help="Folder of the build (proctor build probing): tells the fallbacks.")]


@app.command("compare")
def compare(
    exams: Annotated[
        list[str],
        typer.Argument(
            metavar="CANDIDATE:SET=FOLDER...",
            help="Finished static exams: SET is vanilla, or a probed set as built (all, all.set-2, p1, LU, ...).",
        ),
    ],
    out: Out,
    built: Built = None,
    calibration: Annotated[
        Path | None, typer.Option(help="Folder of probing.calibrate on the judge: its figures stand with the result.")
    ] = None,
    size: Annotated[list[str], typer.Option(help="CANDIDATE=BILLIONS of parameters. Repeat.")] = [],  # noqa: B006
    clean: Annotated[str | None, typer.Option(help="The candidate that is known to be clean.")] = None,
    contaminated: Annotated[list[str], typer.Option(help="A candidate to be compared with it. Repeat.")] = [],  # noqa: B006
    seed: Seed = 0,
) -> None:
    """Accuracy before and after probing, effectiveness, churn, abilities, contamination: metrics.json in --out."""
    from evaluation.probing.inputs import compared, read_metrics
    from evaluation.probing.report import ProbingSettings, report
    from proctor.run_folder.single import check_folder, once
    from serving.files import read_json, write_json

    check_folder(out)
    sizes = {name: _billions(value, name) for name, value in named_values(size, "--size", form="NAME=BILLIONS").items()}
    sittings, described, inputs = compared(_exams(exams), built, sizes)
    for flag, name in [*([("--clean", clean)] if clean else []), *(("--contaminated", name) for name in contaminated)]:
        if name not in sittings:
            raise ValueError(f"{flag} {name}: there is no such candidate; there are: {', '.join(sittings)}")
    if contaminated and clean is None:
        raise ValueError("--contaminated needs the candidate it is compared with: give --clean NAME")
    judge = None if calibration is None else read_metrics(calibration, "recall", "probing.calibrate")
    settings = ProbingSettings(seed=seed, clean=clean, contaminated=tuple(contaminated), calibration=judge)
    inputs |= {"seed": seed, "sizes": sizes, "clean": clean, "contaminated": contaminated, "calibration": judge}

    def body(folder: Path, progress: Any) -> list[str]:
        write_json(folder / "metrics.json", report(sittings, described, settings))
        return ["metrics.json"]

    once(out, inputs, body)
    from evaluation.probing.lines import lines

    for line in lines(read_json(out / "metrics.json")):
        print(line)
    print(f"figures: {out / 'metrics.json'}")


@app.command("agents")
def agents(
    first: Annotated[Path, typer.Argument(help="Folder of a build (proctor build probing).")],
    second: Annotated[Path, typer.Argument(help="The same items and judge with another probing agent.")],
    out: Out,
    seed: Seed = 0,
) -> None:
    """Two probing agents under one judge: fallback rate and attempts, with paired intervals."""
    from evaluation.probing.agents_compared import compare_agents
    from evaluation.probing.inputs import digest
    from proctor.run_folder.finished import read_records
    from proctor.run_folder.single import check_folder, once
    from serving.files import read_json, write_json

    check_folder(out)
    rows = [read_records(folder)[1] for folder in (first, second)]
    for folder, records in zip((first, second), rows, strict=True):
        _check_build(folder, records)
    metrics = compare_agents(*rows, seed=seed)

    def body(folder: Path, progress: Any) -> list[str]:
        write_json(folder / "metrics.json", metrics)
        return ["metrics.json"]

    once(out, {"records": [digest(part) for part in rows], "seed": seed}, body)
    for name, row in read_json(out / "metrics.json")["stages"].items():
        if row["n"]:
            shown = (f"{key} {row[key]['a']:.3f} / {row[key]['b']:.3f}" for key in ("fallback_rate", "attempts"))
            print(f"  {name:8} n {row['n']:<5} {'  '.join(shown)}")
    print(f"figures: {out / 'metrics.json'}")


@app.command("export")
def export(
    build: Annotated[Path, typer.Argument(help="Folder of the build (proctor build probing).")],
    vanilla: Annotated[Path, typer.Option(help="items.jsonl of the original items (a benchmark file in our format).")],
    out: Out,
    sets: Annotated[str, typer.Option(help="Comma-separated sets to draw from; all that were built if left out.")] = "",
    n: Annotated[int, typer.Option("--n", min=1, help="Pairs to check.")] = 100,
    annotators: Annotated[int, typer.Option(min=1, max=50, help="Columns for rater_1, rater_2, ...")] = 2,
    seed: Seed = 0,
) -> None:
    """Pairs of original and rewritten item for two yes/no questions: sheet.csv and key.jsonl in --out."""
    from evaluation import benchmarks
    from evaluation.probing.human import draw_pairs, write_sheet
    from evaluation.probing.inputs import digest, pairs_of, sets_of
    from proctor.commands.options import names
    from proctor.run_folder.single import check_folder, once
    from serving.files import readable, write_jsonl, write_text

    check_folder(out)
    originals = {item.id: item for item in readable(lambda: benchmarks.load("jsonl", vanilla), vanilla)}
    files = sets_of(build)
    wanted = names(sets) or tuple(name for name in files if name != "variants")
    unknown = [name for name in wanted if name not in files]
    if unknown:
        raise ValueError(f"--sets {unknown[0]}: {build} has no such set; it has: {', '.join(files)}")
    pairs = draw_pairs({name: pairs_of(files[name], originals, vanilla) for name in wanted}, n, seed)
    raters = [f"rater_{number}" for number in range(1, annotators + 1)]

    def body(folder: Path, progress: Any) -> list[str]:
        write_text(folder / "sheet.csv", write_sheet(pairs, raters))
        write_jsonl(folder / "key.jsonl", pairs)
        return ["sheet.csv", "key.jsonl"]

    once(out, {"pairs": digest(pairs), "seed": seed, "n": n, "annotators": annotators}, body)
    print(f"{len(pairs)} pairs of {len(wanted)} sets; for annotators: {out / 'sheet.csv'} (a copy each)")
    print(f"not for annotators: {out / 'key.jsonl'} says which set a pair is of")


@app.command("import")
def import_(
    sheet: Annotated[list[Path], typer.Option(help="Filled sheet (CSV). Repeat.")],
    key: Annotated[Path, typer.Option(help="key.jsonl of the export.")],
    out: Out,
    group: Annotated[list[str], typer.Option(help="ANNOTATOR=GROUP, e.g. rater_1=experts. Repeat.")] = [],  # noqa: B006
) -> None:
    """Rates of yes per ability and group of annotators, and their agreement: metrics.json in --out."""
    from evaluation.probing.human import figures, read_sheets
    from evaluation.probing.inputs import digest
    from proctor.run_folder.single import check_folder, once
    from serving.files import read_json, read_jsonl, readable, write_json

    check_folder(out)
    pairs = readable(lambda: read_jsonl(key), key)
    if not pairs or any(not isinstance(row, dict) or not {"id", "ability"} <= set(row) for row in pairs):
        raise ValueError(f"{key} is no key of 'proctor probing export' (rows with id and ability)")
    answers = readable(lambda: read_sheets(sheet, [row["id"] for row in pairs]), sheet[0])
    groups = named_values(group, "--group", form="NAME=VALUE")
    raters = {name for given in answers.values() for name in given}
    strange = next((name for name in groups if name not in raters), None)
    if strange is not None:
        raise ValueError(f"--group {strange}: no such annotator; there are: {', '.join(sorted(raters))}")

    def body(folder: Path, progress: Any) -> list[str]:
        write_json(folder / "metrics.json", figures(pairs, answers, groups))
        return ["metrics.json"]

    once(out, {"key": digest(pairs), "answers": answers, "groups": groups}, body)
    from evaluation.probing.published import HUMAN

    metrics = read_json(out / "metrics.json")
    for question in ("same", "right"):
        row = metrics[question]
        shown = ", ".join(f"{k} {v['yes']:.2f} ({v['n']})" for k, v in row["abilities"].items() if v["n"])
        print(f"  {question}: {_cell(row['yes'])} of {row['n']} answers; {shown}")
        if row["agreement"]:
            print(f"    agreement, Fleiss' kappa: {_cell(row['agreement']['fleiss_kappa']['value'])}")
    print(f"published by MPA (same / right): {HUMAN['same']} / {HUMAN['right']}")
    print(f"figures: {out / 'metrics.json'}")


_EXAM = re.compile(r"(?P<candidate>[^:=]+):(?P<probe>[A-Za-z0-9]+)(?:\.set-(?P<number>[1-9]\d*))?=(?P<folder>.+)")


def _exams(exams: Sequence[str]) -> dict[tuple[str, str, int], Sat]:
    """``CANDIDATE:SET=FOLDER`` by candidate, set and its number. ValueError for another form, or for no exam."""
    from evaluation.probing.inputs import Sat
    from evaluation.probing.version import SETS
    from proctor.run_folder.finished import read_exam_items, read_records

    found: dict[tuple[str, str, int], Sat] = {}
    for text in exams:
        match = _EXAM.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not of the form CANDIDATE:SET=FOLDER, such as base:all.set-2=results/x")
        name, probe, number = match["candidate"], match["probe"], int(match["number"] or 1)
        if probe != "vanilla" and probe not in SETS:
            raise ValueError(f"{text}: there is no set {probe!r}; there are: vanilla, {', '.join(SETS)}")
        if (name, probe, number) in found:
            raise ValueError(f"{text}: {name}:{probe}.set-{number} is named twice")
        file, records = read_records(Path(match["folder"]))
        place, items = read_exam_items(Path(match["folder"]))
        found[name, probe, number] = Sat(file, records, str(place), items)
    return found


def _billions(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"--size {name}={text}: give the parameters in billions, such as 0.135")
    return value


def _check_build(folder: Path, records: Sequence[Mapping[str, Any]]) -> None:
    if any(not {"item_id", "set", "question", "choices"} <= set(row) for row in records):
        raise ValueError(f"{folder}: the records are not of proctor build probing")


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
