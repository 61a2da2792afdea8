"""Where an exam is frozen: the stage, the folder, the items."""

from __future__ import annotations

from pathlib import Path

from evaluation.exam_set import FrozenExam, read_exam
from proctor.experiment.experiment import Experiment
from proctor.run_folder.run import RunFolder


def name_for(experiment: Experiment, exam: str) -> str:
    """The stage that freezes the items of an exam or a group."""
    config = experiment.sitting(exam)
    if config.build is not None:
        return f"build.{config.build}"
    return "exam" if config.benchmark is None else f"exam.{exam}"


def folder_for(run: RunFolder, exam: str) -> Path:
    """Where an exam's frozen items lie."""
    folder = run.stage(name_for(run.experiment, exam)).path
    chosen = run.experiment.sitting(exam).set
    return folder if chosen is None else folder / "sets" / chosen


def read_items(run: RunFolder, exam: str) -> FrozenExam:
    """An exam's frozen items. ValueError if the build made no such set."""
    folder = folder_for(run, exam)
    if not (folder / "items.jsonl").is_file():
        made = sorted(place.name for place in folder.parent.glob("*") if place.is_dir())
        where = f"{run.experiment.place(exam)}.set"
        raise ValueError(f"{where}: the build made no set {folder.name!r}; it made {', '.join(made) or 'none'}")
    return read_exam(folder)
