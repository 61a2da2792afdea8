"""rate export, rate import: conversations out to human annotators, and their ratings back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="Have people rate replies, 1 (poor) to 4 (strong).", no_args_is_help=True)

Out = Annotated[Path, typer.Option("--out", help="Folder for the results.")]
PARTS = {"answers": ("answer", "reply"), "rounds": ("round", "reply"), "all": ("answer", "round", "reply")}


@app.command("export")
def export(
    records: Annotated[
        list[str], typer.Option(help="Run folder, exam folder or records.jsonl; NAME=PATH names the candidate. Repeat.")
    ],
    out: Out,
    n: Annotated[int, typer.Option("--n", min=1, help="Conversations to rate.")] = 100,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of the draw.")] = 0,
    annotators: Annotated[int, typer.Option(min=1, max=50, help="Columns rater_1, rater_2, ... of the sheet.")] = 2,
    items: Annotated[list[Path], typer.Option(help="items.jsonl of the exam, for records outside a run. Repeat.")] = [],  # noqa: B006
    parts: Annotated[str, typer.Option(help="Of interviews: answers, rounds or all.")] = "all",
) -> None:
    """Draw conversations over benchmarks and candidates: sheet.csv, rate.html and key.jsonl in --out."""
    from evaluation.human_rating.page import page
    from evaluation.human_rating.sampling import sample
    from evaluation.human_rating.sheet import key_rows, write_sheet
    from proctor.commands.options import one_of
    from proctor.run_folder.single import check_folder, once
    from serving.files import write_jsonl, write_text

    one_of("--parts", parts, tuple(PARTS))
    check_folder(out)
    found = list(_conversations(records, items, PARTS[parts]))
    if not found:
        raise ValueError(
            f"--records {', '.join(records)}: no record holds a question and a reply to rate (letter and cloze exams "
            "have none; a static reply or a first answer needs the exam's items: give --items FILE)"
        )
    chosen = sample(found, n, seed)
    key = key_rows(chosen)
    raters = [f"rater_{number}" for number in range(1, annotators + 1)]
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()  # the key itself stands in one file only
    inputs = {"conversations": digest, "seed": seed, "n": n, "annotators": annotators, "parts": parts}

    def body(folder: Path, report: Any) -> list[str]:
        write_text(folder / "sheet.csv", write_sheet(chosen, raters))
        write_text(folder / "rate.html", page(chosen))
        write_jsonl(folder / "key.jsonl", key)
        return ["sheet.csv", "rate.html", "key.jsonl"]

    once(out, inputs, body)
    strata = {(c.benchmark, c.candidate) for c in chosen.values()}
    short = f" (all there are; {n} were asked for)" if len(chosen) < n else ""
    print(f"{len(chosen)} conversations{short} of {len(strata)} benchmark x candidate")
    print(f"for annotators: {out / 'rate.html'} or {out / 'sheet.csv'} (a copy each)")
    print(f"not for annotators: {out / 'key.jsonl'} says whose replies they are")


@app.command("import")
def import_(
    sheet: Annotated[list[Path], typer.Option(help="Filled sheet, or the page's download (CSV or JSON). Repeat.")],
    key: Annotated[Path, typer.Option(help="key.jsonl of the export.")],
    out: Out,
) -> None:
    """Check and join filled sheets: ratings.jsonl (for 'proctor agree') and metrics.json in --out."""
    from evaluation.agreement.kappa import WEIGHTS, Labels, fleiss_kappa, krippendorff_alpha, pairwise_kappa
    from evaluation.agreement.rows import read_table
    from evaluation.human_rating.sheet import check_annotators, read_sheets
    from proctor.run_folder.single import check_folder, once
    from serving.files import readable, write_json, write_jsonl
    from serving.model.fingerprint import file_hash

    check_folder(out)
    table = readable(lambda: read_table(key), key)
    table.check(["id", "candidate", "question", "reply"])
    ids = [str(row.get("id")) for row in table.rows]
    for index, name in enumerate(ids):
        if name in ids[:index]:
            raise table.places[index].error(f"the id {name!r} is repeated", "id")
    ratings = readable(lambda: read_sheets(sheet, ids), "a sheet")
    if not ratings:
        raise ValueError(f"{', '.join(map(str, sheet))}: nothing is rated")
    check_annotators(list(ratings), table.columns)
    columns: dict[str, Labels] = {name: [given.get(i) for i in ids] for name, given in sorted(ratings.items())}
    inputs = {
        "sheets": [file_hash(path) for path in sheet],
        "key": file_hash(key),
    }

    def body(folder: Path, report: Any) -> list[str]:
        rows = [
            {**row, **{name: column[index] for name, column in columns.items()}} for index, row in enumerate(table.rows)
        ]
        metrics: dict[str, Any] = {
            "n": len(rows),
            "rated": {name: len(given) for name, given in sorted(ratings.items())},
            "rated_by_nobody": sum(all(column[i] is None for column in columns.values()) for i in range(len(rows))),
        }
        if len(columns) > 1:
            for weights in WEIGHTS:
                name = "cohen_kappa" if weights == "none" else f"cohen_kappa_{weights}"
                metrics[name] = pairwise_kappa(columns, weights=weights)
            metrics["fleiss_kappa"] = fleiss_kappa(list(columns.values()))
            metrics["krippendorff_alpha"] = krippendorff_alpha(list(columns.values()))
        write_jsonl(folder / "ratings.jsonl", rows)
        write_json(folder / "metrics.json", metrics)
        return ["ratings.jsonl", "metrics.json"]

    once(out, inputs, body)
    _show(out)


def _conversations(sources: list[str], items: list[Path], parts: tuple[str, ...]) -> Iterator[Any]:
    """The conversations of all sources, each with the items of its run and those given."""
    from evaluation.benchmarks.reading import json_rows
    from evaluation.human_rating.conversations import conversations
    from serving.files import readable

    given = {item.id: item for path in items for item in _items(path)}
    for source in sources:
        name, path = _named(source)
        for candidate, file, own in _files(path):
            known = {**own, **given}
            for row in readable(lambda file=file: list(json_rows(file)), file):  # type: ignore[misc]
                found = conversations(row.fields, candidate=name or candidate, source=str(row.place), items=known)
                yield from (conversation for conversation in found if conversation.part in parts)


def _named(source: str) -> tuple[str, Path]:
    """NAME=PATH in its parts; a path that exists as it stands has no name."""
    name, sign, rest = source.partition("=")
    return ("", Path(source)) if not sign or Path(source).exists() else (name, Path(rest))


def _files(path: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """(candidate, records file, items) of a run folder, of a folder with records.jsonl, or of a file."""
    if (path / "experiment.yaml").is_file():
        stages = sorted(file for file in (path / "stages").glob("*.*/records.jsonl") if _is_exam(file.parent.name))
        if not stages:
            raise ValueError(f"run {path} has no finished exam: there is no stages/EXAM.CANDIDATE/records.jsonl")
        frozen = [path / "exam" / "items.jsonl", *sorted((path / "stages").glob("exam.*/items.jsonl"))]
        known = {item.id: item for file in frozen for item in _items(file)}
        for file in stages:
            yield file.parent.name.partition(".")[2], file, known
    elif path.is_dir():
        if not (path / "records.jsonl").is_file():
            raise ValueError(f"--records {path}: the folder holds neither experiment.yaml (a run) nor records.jsonl")
        beside = path / "items.jsonl"  # evaluate writes it
        own = _items(beside) if beside.is_file() else []
        yield path.resolve().name, path / "records.jsonl", {item.id: item for item in own}
    elif path.is_file():
        yield path.resolve().parent.name if path.name == "records.jsonl" else path.stem, path, {}
    else:
        raise ValueError(f"--records {path}: there is no such file or folder")


def _is_exam(stage: str) -> bool:
    return not stage.startswith(("detect.", "train.", "prefilter."))


def _items(path: Path) -> list[Any]:
    from evaluation.benchmarks.reading import json_rows
    from evaluation.items import Item
    from serving.files import readable

    items = []
    for row in readable(lambda: list(json_rows(path)), path):
        try:
            items.append(Item.from_json(row.fields))
        except (TypeError, KeyError) as error:
            raise row.place.error(f"not an exam item ({error}); give the items.jsonl of a run's exam folder") from None
    return items


def _show(out: Path) -> None:
    metrics = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    for name, count in metrics["rated"].items():
        print(f"  {name:22} rated {count} of {metrics['n']}")
    for name in ("cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic"):
        if name in metrics:
            mean, pairs = metrics[name]["mean"], len(metrics[name]["pairs"])
            label = name.replace("cohen_kappa", "Cohen's kappa").replace("_", ", ")
            print(f"  {label:26} {'-' if mean is None else f'{mean:.3f}'} (mean of {pairs} pairs)")
    if "fleiss_kappa" in metrics:
        fleiss = metrics["fleiss_kappa"]
        value = "-" if fleiss["value"] is None else f"{fleiss['value']:.3f}"
        print(f"  {'Fleiss kappa':26} {value} ({fleiss['n']} conversations rated by {fleiss['raters']})")
        alpha = metrics["krippendorff_alpha"]
        value = "-" if alpha["value"] is None else f"{alpha['value']:.3f}"
        print(f"  {'Krippendorff alpha':26} {value} ({alpha['n']} conversations rated by two or more)")
    raters = " ".join(f"--human {name}" for name in metrics["rated"])
    print(f"next: proctor agree --data {out / 'ratings.jsonl'} {raters} --score COLUMN --out DIR")
