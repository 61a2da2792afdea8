"""Stages ``exam`` and ``exam.<exam>``: draw the exam, or one exam's (or group's) own items, and freeze them."""

from __future__ import annotations

from pathlib import Path

from proctor.examining import Report
from proctor.experiment import Experiment
from proctor.experiment_sections import BenchmarkConfig
from proctor.frozen import FrozenExam, draw_exam, read_exam, write_exam
from proctor.runfolder import RunFolder
from proctor.stages import build
from proctor.stages.base import Stage
from serving.fingerprint import file_hash


def name_for(experiment: Experiment, exam: str) -> str:
    """The stage that freezes the items of an exam or a group."""
    config = experiment.sitting(exam)
    if config.build is not None:
        return build.name_for(config.build)
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


def stage(experiment: Experiment, exam: str | None = None) -> Stage:
    config = experiment.benchmark if exam is None else experiment.benchmark_of(exam)
    return Stage(
        name="exam" if exam is None else f"exam.{exam}",
        needs=(),
        version=1,
        config={
            "benchmark": config.model_dump(mode="json", exclude={"path", "exemplars"}),
            "files": benchmark_files(config),
            "seed": experiment.seed,
            # said only where it is not the default: exams that were frozen before stay as they are
            **({"leaked_items": experiment.leaked_items} if exam is None and experiment.leaked_items != "half" else {}),
        },
        body=lambda run, folder, report: _freeze(run, folder, report, exam),
    )


def _freeze(run: RunFolder, folder: Path, report: Report, name: str | None) -> list[str]:
    exam = draw_exam(run.experiment, name)
    for note in exam.notes:
        print(note)
    names = write_exam(exam, folder)
    print(f"{len(exam.items)} items, {len(exam.leaked)} of them leak; {len(exam.exemplars)} exemplars")
    report(len(exam.items), len(exam.items), "frozen")
    return names


def benchmark_files(config: BenchmarkConfig) -> dict[str, str]:
    """Hashes of what a benchmark is read from."""
    files = {
        key: source_hash(Path(value).expanduser())
        for key, value in (("path", config.path), ("exemplars", config.exemplars))
        if value is not None
    }
    return files or package_hash()


def source_hash(path: Path) -> str:
    """Hash of a benchmark's file, or of every file in its folder."""
    import hashlib

    if not path.exists():
        raise ValueError(f"benchmark path {path} does not exist")
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    lines = [f"{file.relative_to(path) if path.is_dir() else file.name}\0{file_hash(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def package_hash() -> dict[str, str]:
    """Hashes of the embedded exam."""
    import evaluation

    folder = Path(evaluation.__file__).parent / "data"
    return {file.name: file_hash(file) for file in sorted(folder.glob("*.jsonl"))}
