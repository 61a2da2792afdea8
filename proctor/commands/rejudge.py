"""rejudge: another evaluator judges stored KIEval interviews; the candidate is asked nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.commands.parameters import Engine, Out, Seed

if TYPE_CHECKING:
    from evaluation.items import Item


def rejudge(
    source: Annotated[Path, typer.Argument(help="Folder with KIEval's records.jsonl: a stage's, or evaluate's --out.")],
    evaluator: Annotated[str, typer.Option(help="Model that judges (folder, or 'embedded').")],
    out: Out,
    votes: Annotated[int, typer.Option(min=1, help="Verdicts per round; of several, sampled, the median counts.")] = 1,
    seed: Seed = 0,
    engine: Engine = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    schedule: Annotated[str, typer.Option(help="lockstep, batch-invariant or fast.")] = "lockstep",
    option: Annotated[list[str], typer.Option("-o", "--option", help="Option of the judge key=value.")] = [],  # noqa: B006
) -> None:
    """Judge stored KIEval interviews again and report the agreement of the two evaluators."""
    from evaluation.protocols import checked_options
    from evaluation.protocols.rejudge import Rejudge
    from proctor.adhoc import once
    from proctor.commands.options import checked_schedule, key_values, model_spec, readable, refuse_reserved
    from proctor.examining import examine
    from proctor.preflight import check_model
    from serving.fingerprint import file_hash, model_identity

    mode = checked_schedule(schedule)
    settings = key_values(option)
    refuse_reserved(settings, {"votes": "give --votes"}, "-o")
    options = settings | {"votes": votes}
    spec = model_spec(evaluator, engine=engine, dtype=dtype, score_dtype=dtype)
    check_model(spec, "--evaluator")
    records, originals = read_records(source)
    exam, items = read_exam_items(source)
    unknown = [row.get("item_id") for row in originals if row.get("item_id") not in items]
    if unknown:
        raise ValueError(f"{records}: item {unknown[0]} is not in {exam}; are these another exam's records?")
    judge = Rejudge(checked_options("rejudge", Rejudge, options), seed=seed, originals=originals)
    asked = [items[row["item_id"]] for row in originals]
    for dialogue in judge.dialogues(asked):
        dialogue.close()
    inputs: dict[str, Any] = {
        "version": judge.version,
        "options": options,
        "records": readable(lambda: file_hash(records), records),
        "items": readable(lambda: file_hash(exam), exam),
        "evaluator": model_identity(spec),
        "seed": seed,
        "schedule": schedule,
        "prompts": judge.prompt_hashes(),
    }

    def body(folder: Path, report: Any) -> list[str]:
        examine(
            judge,
            asked,
            models={"evaluator": spec},
            mode=mode,
            folder=folder,
            ledger_folder=folder / "ledger",
            wave=None,
            report=report,
        )
        return ["records.jsonl", "metrics.json"]

    if not once(out, inputs, body):
        print("nothing to do: done already")
    _show(out / "metrics.json")
    print(f"records: {out / 'records.jsonl'}")


def read_records(source: Path) -> tuple[Path, list[dict[str, Any]]]:
    """The records of a finished exam: their file and its rows. ValueError if the folder has none."""
    from proctor.atomic import read_jsonl
    from proctor.commands.options import readable

    file = source / "records.jsonl"
    if not file.is_file():
        raise ValueError(f"{source} has no records.jsonl; give a finished stage (RUN/stages/EXAM.CANDIDATE)")
    rows = readable(lambda: read_jsonl(file), file)
    if not rows:
        raise ValueError(f"{file} is empty; give the records of an exam")
    odd = next((number for number, row in enumerate(rows, start=1) if not isinstance(row, dict)), None)
    if odd is not None:
        raise ValueError(f"{file}, record {odd} is no JSON object; give the records of an exam")
    return file, rows


def read_exam_items(source: Path) -> tuple[Path, dict[str, Item]]:
    """The items beside the records (``evaluate``), or those that the run froze for this exam: file, items by id."""
    from proctor.commands.options import readable
    from training.corpora import read_items

    places = [source / "items.jsonl", *_frozen(source.resolve())]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise ValueError(f"{source}: the items of these records are not found (items.jsonl beside them, or RUN/exam)")
    return file, {item.id: item for item in readable(lambda: read_items(file), file)}


def _frozen(stage: Path) -> list[Path]:
    """Where the run that a stage's folder lies in keeps the items of its exam."""
    from proctor.runfolder import open_run
    from proctor.stages.freeze import folder_for

    folder = stage.parent.parent
    if not (folder / "experiment.yaml").is_file():
        return []
    run = open_run(folder)
    names = (name for name in run.experiment.exams if stage.name.removeprefix(f"{name}.") in run.experiment.candidates)
    exam = next(names, None)
    return [] if exam is None else [folder_for(run, exam) / "items.jsonl"]


def _show(path: Path) -> None:
    from proctor.atomic import read_json

    metrics = read_json(path)
    agreement = metrics["agreement"]
    rounds, missing = metrics["rounds_judged"], metrics["missing_verdicts"]
    print(f"  n: {metrics['n']} interviews, {rounds} rounds, {missing} of them without verdict")
    print(f"  score: {metrics['score']}  {metrics['score_interval']}")
    for key, value in agreement.items():
        if not isinstance(value, dict | list):
            print(f"  agreement, {key}: {value}")
        elif isinstance(value, dict) and "value" in value:
            print(f"  agreement, {key}: {value['value']}" + (f" ({value['reason']})" if value.get("reason") else ""))
