"""idgen funnel, export, import, estimate, predict: how items were grown, what people check, what is estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from evaluation.items import Item

app = typer.Typer(
    help="Grown items: human checks, and estimators of discrimination and difficulty.", no_args_is_help=True
)
KINDS = ("usability", "references", "answers")
KEYS = {
    "usability": ("id", "item_id"),
    "references": ("id", "item_id", "text", "roles", "chosen"),
    "answers": ("id", "item_id", "candidate", "max_score"),
}
"""What the rows of a key hold, by kind."""


@app.command("funnel")
def funnel(
    build: Annotated[list[Path], typer.Option(help="Folder of a build; several are added up.")],
    out: Annotated[Path, typer.Option(help="Folder for funnel.json and the figure.")],
) -> None:
    """Each step's yield with the reasons for rejection, and the cost per item."""
    from evaluation.idgen.funnel import added
    from evaluation.item_analysis.plots import write_funnel
    from proctor.run_folder.single import check_folder
    from serving.files import read_json, write_json

    check_folder(out)
    summaries = [read_json(folder / "metrics.json") for folder in build]
    for folder, summary in zip(build, summaries, strict=True):
        if "funnel" not in summary:
            raise ValueError(f"--build {folder}: its metrics.json has no funnel; is it a build of idgen?")
    usages = [read_json(folder / "usage.json") for folder in build]
    seconds = sum(role["seconds"] for usage in usages for role in usage.get("roles", {}).values())
    total = added(summaries, seconds)
    write_json(out / "funnel.json", total)
    bars = []
    for kind, rows in total["funnel"].items():
        for row in rows:
            reasons = "; ".join(f"{reason} {count}" for reason, count in row["reasons"].items())
            print(f"{kind:8} {row['step']:12} {row['came']:5} came {row['kept']:5} went on  {reasons}".rstrip())
            bars.append((f"{kind}: {row['step']}", row["came"], row["kept"]))
    write_funnel(bars, out)
    cost = total["cost"]
    if total["kept"]:
        print("per kept item: {calls:.1f} calls, {tokens:.0f} tokens, {seconds:.1f} s".format(**cost["per_item"]))
    print(f"{total['seeds']} seeds, {total['kept']} items, {cost['calls']} calls, {cost['tokens']} tokens, "
          f"{cost['seconds']:.0f} s; figure: {out / 'funnel.svg'}")  # fmt: skip


@app.command("export")
def export(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="usability, references or answers.")],
    build: Annotated[Path, typer.Option(help="Folder of the build: items.jsonl, records.jsonl.")],
    out: Annotated[Path, typer.Option(help="Folder for sheet.csv and key.jsonl (keep the key from annotators).")],
    annotator: Annotated[list[str], typer.Option(help="Name of an annotator: a column of the sheet.")],
    records: Annotated[
        list[str], typer.Option(help="answers: NAME=FILE, a candidate's records.jsonl of an idgen exam.")
    ] = [],  # noqa: B006
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Draws the order.")] = 0,
) -> None:
    """A sheet for annotators: 0 or 1 (usable? right?), or 0..max_score for candidates' answers."""
    from evaluation.human_rating.sheet import check_annotators, write_sheet
    from evaluation.idgen import human_check
    from proctor.commands.options import one_of
    from proctor.run_folder.single import check_folder
    from serving.files import write_jsonl, write_text

    one_of("KIND", kind, KINDS)
    check_annotators(annotator)
    check_folder(out)
    if (out / "key.jsonl").exists():
        raise ValueError(f"--out {out} holds an export already; choose another folder")
    if (kind == "answers") != bool(records):
        raise ValueError("--records NAME=FILE, once per candidate, belongs to answers, and answers needs it")
    items = _items(build)
    if kind == "usability":
        chosen, key = human_check.usability_sheet(items)
    elif kind == "references":
        chosen, key = human_check.references_sheet(items, _rows(build / "records.jsonl"), seed)
    else:
        chosen, key = human_check.answers_sheet(_by_candidate(records), {item.id: item for item in items}, seed)
    write_text(out / "sheet.csv", write_sheet(chosen, annotator))
    write_jsonl(out / "key.jsonl", key)
    print(f"{len(chosen)} rows: {out / 'sheet.csv'}; the key: {out / 'key.jsonl'}")


@app.command("import")
def import_(
    key: Annotated[Path, typer.Option(help="key.jsonl of the export.")],
    sheet: Annotated[list[Path], typer.Option(help="A filled sheet; once per annotator's copy.")],
    out: Annotated[Path, typer.Option(help="Folder for the results.")],
    build: Annotated[
        Path | None, typer.Option(help="references: the build, whose items are written with checked references.")
    ] = None,
) -> None:
    """Ratings to figures: metrics.json, checked items.jsonl (references) or matrix.csv (answers) in --out."""
    from evaluation.human_rating.sheet import read_sheets
    from evaluation.idgen import human_check
    from evaluation.item_analysis.matrix import to_csv
    from proctor.run_folder.single import check_folder
    from serving.files import write_json, write_jsonl, write_text

    check_folder(out)
    rows = _rows(key)
    kinds = {str(row.get("kind")) for row in rows}
    if len(kinds) != 1 or not kinds <= set(KINDS):
        raise ValueError(f"{key} is no key of 'proctor idgen export'")
    (kind,) = kinds
    lacking = next((name for row in rows for name in KEYS[kind] if name not in row), None)
    if lacking is not None:
        raise ValueError(f"{key} is no key of 'proctor idgen export': a row has no {lacking!r}")
    scale = range(int(rows[0]["max_score"]) + 1) if kind == "answers" else (0, 1)
    ratings = read_sheets(sheet, [row["id"] for row in rows], scale)
    if not ratings:
        raise ValueError("no row of the sheets is rated")
    if kind == "usability":
        metrics = human_check.usability_figures(rows, ratings)
        print(_line("usable", metrics))
    elif kind == "references":
        metrics = human_check.reference_figures(rows, ratings)
        for name, part in (("chosen", metrics["all"]["chosen"]), *metrics["all"]["models"].items()):
            print(_line(name, part))
        if build is not None:
            items, metrics["checked"] = human_check.checked_items(_items(build), rows, ratings)
            write_jsonl(out / "items.jsonl", [item.to_json() for item in items])
            print(f"items: {out / 'items.jsonl'} ({metrics['checked']})")
    else:
        matrix = human_check.answers_matrix(rows, ratings)
        metrics = {"candidates": len(matrix.candidates), "items": len(matrix.items), "max_score": matrix.max_score}
        write_text(out / "matrix.csv", to_csv(matrix))
        print(f"next: proctor analyse --matrix {out / 'matrix.csv'} --max-score {matrix.max_score:g} --out DIR")
    write_json(out / "metrics.json", {"kind": kind, "annotators": sorted(ratings), **metrics})


@app.command("estimate")
def estimate(
    items: Annotated[Path, typer.Option(help="items.jsonl of the analysed exam.")],
    analysis: Annotated[Path, typer.Option(help="Folder of 'proctor analyse' on it.")],
    out: Annotated[Path, typer.Option(help="Folder for the estimators and their validation.")],
    judged: Annotated[Path | None, typer.Option(help="records.jsonl of the build: its critic's predictions.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Local model (or 'embedded'): trains a sequence classifier, too.")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Of the cross-validation.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Of the classifier.")] = 3,
    learning_rate: Annotated[float, typer.Option(help="Of the classifier.")] = 2e-5,
    batch_size: Annotated[int, typer.Option(min=1, help="Of the classifier.")] = 8,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of folds and training.")] = 0,
) -> None:
    """Learn discrimination labels and difficulty from questions; cross-validated against the majority class."""
    from evaluation.idgen.estimators import baseline, classifier, difficulty
    from evaluation.idgen.estimators.rows import read_rows
    from evaluation.idgen.estimators.validation import validate
    from proctor.commands.options import model_spec
    from proctor.run_folder.single import check_folder, once
    from serving.files import read_json, readable, write_json
    from serving.model.fingerprint import file_hash, model_identity, resolve_model

    check_folder(out)
    rows = readable(lambda: read_rows(items, analysis / "rows.jsonl", judged), items)
    if len(rows) < folds:
        raise ValueError(f"--folds is {folds}, but only {len(rows)} items have a label")
    spec = None if model is None else model_spec(model, engine="transformers")
    training = classifier.Training(epochs=epochs, learning_rate=learning_rate, batch_size=batch_size, seed=seed)
    inputs: dict[str, Any] = {
        "items": file_hash(items),
        "analysis": file_hash(analysis / "rows.jsonl"),
        "judged": None if judged is None else file_hash(judged),
        "model": None if spec is None else model_identity(spec),
        "settings": [folds, epochs, learning_rate, batch_size, seed],
    }

    def body(folder: Path, report: Any) -> list[str]:
        metrics = {"baseline": validate(rows, baseline.fit, folds=folds, seed=seed)}
        baseline.fit(rows).save(folder / "baseline")
        difficulty.fit(rows).save(folder / "difficulty")
        names = ["metrics.json", "baseline/baseline.json", "difficulty/difficulty.json"]
        if spec is not None:
            base = Path(resolve_model(spec))
            report(0, folds + 1, "training the classifier")
            metrics["classifier"] = validate(
                rows, lambda seen: classifier.fit(seen, base, training), folds=folds, seed=seed
            )
            classifier.fit(rows, base, training).save(folder / "classifier")
            names += [f"classifier/{file.name}" for file in sorted((folder / "classifier").iterdir())]
        write_json(folder / "metrics.json", metrics)
        return names

    once(out, inputs, body)
    for name, part in read_json(out / "metrics.json").items():
        low, high = part["gain_interval"]
        print(
            f"{name}: accuracy {part['accuracy']:.3f}, majority class {part['majority']:.3f} "
            f"(gain {part['gain']:+.3f} [{low:+.3f}, {high:+.3f}]), Spearman {_figure(part['spearman'])}, "
            f"n {part['n']}"
        )
        hard = part["difficulty"]
    print(
        f"difficulty: Spearman {_figure(hard['spearman'])}, mean absolute error {hard['mean_absolute_error']:.3f} "
        f"(of predicting the mean {hard['by_mean']:.3f})"
    )


@app.command("predict")
def predict(
    estimators: Annotated[Path, typer.Option(help="Folder of 'proctor idgen estimate'.")],
    items: Annotated[Path, typer.Option(help="items.jsonl: questions nobody has sat.")],
    out: Annotated[Path, typer.Option(help="File for the predictions (JSONL).")],
    kind: Annotated[str, typer.Option(help="baseline or classifier.")] = "baseline",
    judged: Annotated[Path | None, typer.Option(help="records.jsonl of the build: its critic's predictions.")] = None,
) -> None:
    """Predicted label and difficulty of new questions."""
    from evaluation.idgen.estimators.baseline import Baseline
    from evaluation.idgen.estimators.classifier import Classifier
    from evaluation.idgen.estimators.difficulty import DifficultyModel
    from evaluation.idgen.estimators.rows import read_rows
    from evaluation.item_analysis.classical import LABELS
    from proctor.commands.options import one_of
    from serving.files import readable, write_jsonl

    one_of("--kind", kind, ("baseline", "classifier"))
    rows = readable(lambda: read_rows(items, judged=judged), items)
    made = Baseline.load(estimators / kind) if kind == "baseline" else Classifier.load(estimators / kind)
    chances = made.probabilities(rows)[:, : len(made.classes)]
    hard = DifficultyModel.load(estimators / "difficulty").predict(rows)
    found = []
    for row, chance, value in zip(rows, chances, hard, strict=True):
        label = made.classes[int(chance.argmax())]
        shares = {LABELS[known]: round(float(p), 6) for known, p in zip(made.classes, chance, strict=True)}
        found.append(
            {
                "item": row.item,
                "label": label,
                "label_name": LABELS[label],
                "probabilities": shares,
                "difficulty": round(float(value), 6),
            }
        )
    write_jsonl(out, found)
    print(f"{len(found)} predictions: {out}")


def _items(build: Path) -> list[Item]:
    from evaluation.items import Item

    file = build / "items.jsonl"
    if not file.is_file():
        raise ValueError(f"{build}: there is no items.jsonl; give a build that made items")
    try:
        return [Item.from_json(row) for row in _rows(file)]
    except TypeError as error:
        raise ValueError(f"{file}: the rows are not items of 'proctor build': {error}") from error


def _rows(path: Path) -> list[dict[str, Any]]:
    from evaluation.benchmarks.reading import json_rows

    return [dict(row.fields) for row in json_rows(path)]


def _by_candidate(records: Sequence[str]) -> Mapping[str, list[dict[str, Any]]]:
    from serving.named import named_values

    return {name: _rows(Path(path)) for name, path in named_values(records, "--records", form="NAME=FILE").items()}


def _line(name: str, part: Mapping[str, Any]) -> str:
    if part["share"] is None:
        return f"{name}: nothing rated"
    return "{}: {:.1%} [{:.1%}, {:.1%}], n {}".format(name, part["share"], *part["interval"], part["n"])


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
