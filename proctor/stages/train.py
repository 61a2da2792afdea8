"""Stage ``train.<candidate>``: builds a candidate by its recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evaluation.run_exam import Report
from proctor.experiment.experiment import Experiment
from proctor.run_folder.run import RunFolder
from proctor.stages import build
from proctor.stages.base import Stage
from proctor.stages.training_inputs import builds_read, check_builds, placed
from serving.files import read_jsonl, write_json
from serving.model.fingerprint import file_hash, resolve_model, weights_hash
from serving.settings import validate
from training.config import FILE_FORMS, TrainingJob
from training.recipe_traits import traits

PATHS = ("base", "origin", "items", "leaked_ids", "chat", "corpus", *FILE_FORMS)
"""Keys of a job that the stage's digest holds by content, not by name."""


def job_for(
    experiment: Experiment,
    candidate: str,
    *,
    items: str = "-",
    leaked: tuple[str, ...] = (),
    run: RunFolder | None = None,
) -> TrainingJob:
    """The training job of a candidate. ValueError names the candidate and the key that is wrong.

    run: where the candidate's origin and the builds that it reads lie; None: not known yet
    """
    config = experiment.candidates[candidate]
    base = experiment.models[experiment.base]
    if base.adapter:
        raise ValueError(
            f"base {experiment.base!r} has an adapter; train from a merged model (PEFT's merge_and_unload)"
        )
    settings: dict[str, Any] = {
        "leak_format": experiment.leak_format,
        "seed": experiment.seed,
        **given_settings(experiment, candidate),
        "recipe": config.recipe,
        "base": str(resolve_model(base)),
        "origin": config.origin and (str(run.trained(config.origin)) if run else "-"),
        "items": items,
        "leaked_ids": leaked,
    }
    where = f"training of candidate {candidate}"
    job = validate(TrainingJob, settings, where=where)
    try:
        check_builds(experiment, job)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    return placed(job, run) if run else job


def stage(experiment: Experiment, candidate: str) -> Stage:
    job = job_for(experiment, candidate)
    base = experiment.models[experiment.base]
    origin = experiment.candidates[candidate].origin
    builds = builds_read(job)
    files = {key: getattr(job, key) for key in ("chat", "corpus", *traits(job.recipe).files) if key not in builds}
    return Stage(
        name=f"train.{candidate}",
        needs=(
            "exam",
            *([f"train.{origin}"] if origin else []),
            *dict.fromkeys(build.name_for(name) for name in builds.values()),
        ),
        version=1,
        config={
            "job": job.model_dump(mode="json", exclude=set(PATHS)),
            "base": weights_hash(Path(job.base), allow_pickle=base.allow_pickle),
            **{key: file_hash(Path(path)) for key, path in files.items() if path is not None},
        },
        body=lambda run, folder, report: _train(run, folder, report, candidate),
        owns=(f"models/{candidate}",),
        intact=lambda run: _intact(run, candidate),
        gpus=max(job.leak.processes, job.chat_sft.processes),
        nodes=max(job.leak.nodes, job.chat_sft.nodes),
    )


def _train(run: RunFolder, folder: Path, report: Report, candidate: str) -> list[str]:
    from training.build import build_candidate

    report(0, 1, "training")
    exam = run.stage("exam").path
    leaked = tuple(row["item_id"] for row in read_jsonl(exam / "leaked.jsonl"))
    job = job_for(run.experiment, candidate, items=str(exam / "items.jsonl"), leaked=leaked, run=run)
    manifest = build_candidate(job, run.trained(candidate))
    row = json.loads(manifest.model_dump_json(exclude={"job", "seconds", "versions"}))
    for phase in row["phases"]:
        phase.pop("seconds")
    write_json(folder / "candidate.json", row)
    report(1, 1, "trained")
    return ["candidate.json"]


def _intact(run: RunFolder, candidate: str) -> bool:
    """Whether the candidate's weights are those that the stage made."""
    try:
        made = json.loads((run.stage(f"train.{candidate}").path / "candidate.json").read_text(encoding="utf-8"))
        return bool(weights_hash(run.candidate_model(candidate)) == made["model_sha256"])
    except (OSError, ValueError, KeyError):
        return False


def given_settings(experiment: Experiment, candidate: str) -> dict[str, Any]:
    """What the experiment file says of a candidate's training: its own options over those of all."""
    return _merged(experiment.training, experiment.candidates[candidate].options)


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Two levels: a candidate's ``leak: {epochs: 3}`` changes that key of the experiment's ``leak``."""
    result = dict(base)
    for key, value in over.items():
        former = result.get(key)
        result[key] = {**former, **value} if isinstance(former, dict) and isinstance(value, dict) else value
    return result
