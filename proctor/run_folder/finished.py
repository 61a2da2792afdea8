"""Reading what a finished stage left: its records, and the items they are of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluation.items import Item


def read_records(source: Path) -> tuple[Path, list[dict[str, Any]]]:
    """The records of a finished exam: their file and its rows. ValueError if the folder has none."""
    from serving.files import read_jsonl, readable

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
    from evaluation.exam_set import read_items
    from serving.files import readable

    places = [source / "items.jsonl", *_frozen(source.resolve())]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise ValueError(f"{source}: the items of these records are not found (items.jsonl beside them, or RUN/exam)")
    return file, {item.id: item for item in readable(lambda: read_items(file), file)}


def _frozen(stage: Path) -> list[Path]:
    """Where the run that a stage's folder lies in keeps the items of its exam."""
    from proctor.run_folder.run import open_run

    folder = stage.parent.parent
    if not (folder / "experiment.yaml").is_file():
        return []
    run = open_run(folder)
    names = (name for name in run.experiment.exams if stage.name.removeprefix(f"{name}.") in run.experiment.candidates)
    exam = next(names, None)
    return [] if exam is None else [run.items_folder(exam) / "items.jsonl"]
