"""Stage ``detect.<candidate>``: evidence of leakage in the candidate's token probabilities (``base``: the control)."""

from __future__ import annotations

from pathlib import Path

from detection.audit import exam_texts
from detection.detectors import build
from proctor.atomic import write_json
from proctor.detecting import FILES, detect
from proctor.examining import Report
from proctor.experiment import Experiment
from proctor.frozen import read_exam
from proctor.runfolder import RunFolder
from proctor.stages.base import Stage
from serving.fingerprint import model_identity, served_as
from serving.models import ModelSpec

CONTROL = "base"


def subject(experiment: Experiment, candidate: str, folder: Path) -> ModelSpec:
    """The model under examination: a candidate, or the untouched base (``base``)."""
    if candidate == CONTROL and CONTROL not in experiment.candidates:
        return experiment.models[experiment.base].resolved()
    return experiment.spec(candidate, folder)


def stage(experiment: Experiment, candidate: str) -> Stage:
    config = experiment.detection
    assert config is not None
    detectors = build(config.methods)
    spec = subject(experiment, candidate, Path("trained"))
    known = experiment.candidates.get(candidate)
    trained = known is not None and known.recipe is not None
    return Stage(
        name=f"detect.{candidate}",
        needs=("exam", f"train.{candidate}") if trained else ("exam",),
        version=1,
        config={
            "detection": config.model_dump(mode="json", exclude={"candidates"}),
            "versions": {detector.name: detector.version for detector in detectors},
            "leak_format": experiment.leak_format,
            "mode": experiment.mode,
            "seed": experiment.seed,
            "serve": served_as(spec),
            "model": None if trained else model_identity(spec),
        },
        body=lambda run, folder, report: _detect(run, folder, report, candidate),
        gpus=spec.tensor_parallel,
    )


def _detect(run: RunFolder, folder: Path, report: Report, candidate: str) -> list[str]:
    experiment = run.experiment
    config = experiment.detection
    assert config is not None
    exam = read_exam(run.stage("exam").path)
    spec = subject(experiment, candidate, run.candidate_model(candidate))
    sets = {folder / how: exam_texts(exam.items, exam.leaked, how, experiment.leak_format) for how in config.formats}
    usage = detect(
        sets,
        config.methods,
        model=spec,
        mode=experiment.schedule,
        ledger_folder=run.ledger(f"detect.{candidate}"),
        seed=experiment.seed,
        report=report,
    )
    write_json(folder / "usage.json", usage)
    for name in ("records.jsonl", "metrics.json"):  # the headline's, where every stage has them
        (folder / name).write_bytes((folder / config.formats[0] / name).read_bytes())
    return ["records.jsonl", "metrics.json", *(f"{how}/{name}" for how in config.formats for name in FILES)]
