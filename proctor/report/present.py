"""Which of a run's stages are there: part of the experiment as it is now, and finished."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.experiment.experiment import Experiment
from proctor.experiment.made import CONTROL
from proctor.experiment.sections import ExamConfig
from proctor.run_folder.run import RunFolder
from serving.files import read_json, read_jsonl

Rows = list[dict[str, Any]]


def expected(run: RunFolder) -> list[str]:
    """The stages of the experiment before the report, by name, in the plan's order."""
    experiment = run.experiment
    own = [f"exam.{name}" for name, exam in experiment.exams.items() if exam.benchmark is not None]
    own += [f"exam.{name}" for name, group in experiment.groups.items() if group.benchmark is not None]
    own += [f"build.{name}" for name in experiment.builds]
    trained = [f"train.{name}" for name, candidate in experiment.candidates.items() if candidate.recipe is not None]
    filters = [f"prefilter.{name}" for name, exam in experiment.exams.items() if exam.prefilter]
    sat = [f"{exam}.{name}" for exam in experiment.exams for name in experiment.candidates]
    audited = [f"detect.{name}" for name in dict.fromkeys([CONTROL, *experiment.candidates])]
    together = [f"group.{name}" for name in experiment.groups]
    present = [name for name in [*sat, *together, *audited] if contains(experiment, name)]
    return ["exam", *own, *trained, *filters, *present, *(f"analysis.{name}" for name in experiment.analyses)]


def has_halves(exam: ExamConfig) -> bool:
    """Whether an exam is held on the experiment's own items: those of another benchmark or a build leaked to nobody."""
    return exam.benchmark is None and exam.build is None


def records(run: RunFolder, stage: str, part: str = "records.jsonl") -> Rows | None:
    """The records of a finished stage that the experiment contains; what former experiments left is not read."""
    file = run.stage(stage).path / part
    return read_jsonl(file) if file.is_file() and contains(run.experiment, stage) and finished(run, stage) else None


def finished(run: RunFolder, stage: str) -> bool:
    """Whether a stage's marker is there, and its files are as it says. Of an unfinished one nothing counts; nor of one
    whose files ``RunFolder.verify`` found changed, or of an exam or group that has another protocol now."""
    folder = run.stage(stage)
    if folder.done() is None or stage in run.damaged:
        return False
    exam, (kind, _, name) = exam_at(run.experiment, stage), stage.partition(".")
    config = run.experiment.exams.get(exam or "") or (run.experiment.groups.get(name) if kind == "group" else None)
    held = read_json(folder.path / "metrics.json").get("protocol") if config else None
    return config is None or held in (None, config.protocol)


def contains(experiment: Experiment, stage: str) -> bool:
    """Whether a stage is part of the experiment as it is now."""
    kind, _, candidate = stage.partition(".")
    if kind == "detect":
        config = experiment.detection
        chosen = None if config is None else config.candidates
        return config is not None and (candidate == CONTROL or chosen is None or candidate in chosen)
    tables: dict[str, Mapping[str, Any]] = {
        "build": experiment.builds,
        "analysis": experiment.analyses,
        "group": experiment.groups,
    }
    if kind in tables:
        return candidate in tables[kind]
    if kind == "exam" and candidate in experiment.groups:
        return experiment.groups[candidate].benchmark is not None
    if kind in ("exam", "prefilter") and candidate:
        own = experiment.exams.get(candidate)
        return own is not None and (own.prefilter if kind == "prefilter" else own.benchmark is not None)
    exam = exam_at(experiment, stage)
    if exam is None:
        return stage == "exam"
    sitting = experiment.exams[exam].candidates
    return sitting is None or stage.removeprefix(f"{exam}.") in sitting


def exam_at(experiment: Experiment, stage: str) -> str | None:
    """The exam that a stage is of (``EXAM.CANDIDATE``); None for any other stage."""
    for name in experiment.exams:
        # else it may be one of an exam "name.more"
        if stage.startswith(f"{name}.") and stage.removeprefix(f"{name}.") in experiment.candidates:
            return name
    return None
