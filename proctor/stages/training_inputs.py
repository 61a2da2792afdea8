"""Training data that a build of the same experiment makes: ``variants: build:NAME``, ``rewrites: build:NAME``."""

from __future__ import annotations

from pathlib import Path

from evaluation.exam_set import FrozenExam
from evaluation.registry import BUILDERS
from evaluation.registry import builder as builder_class
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import builder_for
from proctor.experiment.sections import BUILD
from proctor.run_folder.run import RunFolder
from proctor.stages.build import chosen_seeds, name_for
from serving.named import known
from training.config import TrainingJob
from training.recipe_traits import traits

MADE = {"variants": "sets/variants/items.jsonl", "rewrites": "items.jsonl"}
"""Settings that may name a build, and the file of it that is read: every accepted version; the exam itself."""


def builds_read(job: TrainingJob) -> dict[str, str]:
    """By setting, the builds whose items the job's recipe trains on; a setting that its recipe doesn't read is none."""
    values = {key: getattr(job, key) for key in traits(job.recipe).files if key in MADE}
    return {key: value.removeprefix(BUILD) for key, value in values.items() if value and value.startswith(BUILD)}


def check_builds(experiment: Experiment, job: TrainingJob) -> None:
    """ValueError if a build that the job reads is none, or makes nothing that the recipe could train on."""
    for key, name in builds_read(job).items():
        where = f"{key}: build {name!r}"
        known(key, name, experiment.builds, "builds")
        config, builder = experiment.builds[name], builder_for(experiment, name)
        unfit = getattr(builder, "unfit", None)
        if unfit is None:
            able = [other for other in BUILDERS if hasattr(builder_class(other), "unfit")]
            said = f"which writes other questions; name one of {', '.join(map(repr, able))}"
            raise ValueError(f"{where} is of the builder {config.builder!r}, {said}")
        if config.benchmark is not None:
            raise ValueError(f"{where} has a benchmark of its own; name one that rewrites the experiment's exam")
        if config.items == "untouched":
            raise ValueError(f"{where} rewrites the untouched half only; let it rewrite what leaks (items: leaked)")
        if why := unfit(key):
            raise ValueError(f"{where}{why}")


def check_seeds(experiment: Experiment, job: TrainingJob, exam: FrozenExam) -> None:
    """ValueError if a build leaves out leaked items of which the recipe needs a rewrite."""
    for key, name in builds_read(job).items():
        if key != "rewrites":
            continue
        missing = exam.leaked - {item.id for item in chosen_seeds(experiment, name, exam)}
        if missing:
            raise ValueError(
                f"{key}: build {name!r} rewrites {len(exam.leaked) - len(missing)} of {len(exam.leaked)} leaked items, "
                f"and each needs a rewrite; raise or remove its limit ({experiment.builds[name].limit})"
            )


def placed(job: TrainingJob, run: RunFolder) -> TrainingJob:
    """The job with the builds' files in place of their names. RuntimeError if a build came out without one."""
    places: dict[str, str] = {}
    for key, name in builds_read(job).items():
        path: Path = run.stage(name_for(name)).path / MADE[key]
        if not path.is_file():
            raise RuntimeError(
                f"{key}: build {name!r} made no version that was accepted ({path} is missing); take a stronger prober, "
                "or more attempts"
            )
        places[key] = str(path)
    return job.model_copy(update=places) if places else job
