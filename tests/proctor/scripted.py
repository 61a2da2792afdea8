"""Experiments of scripted models: whole runs without weights or torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor.experiment.experiment import Experiment
from proctor.experiment.load import resolve
from proctor.run_folder.run import create, open_run
from proctor.runner.one_stage import do_stage
from proctor.runner.plan import plan
from serving.files import write_jsonl
from tests.proctor.command import proctor, write_experiment


def scripted(**changes: Any) -> dict[str, Any]:
    value: dict[str, Any] = {
        "name": "scripted",
        "models": {"m": {"path": "none", "engine": "scripted"}, "q": {"path": "other", "engine": "scripted"}},
        "base": "m",
        "roles": {"interactor": "m", "evaluator": "m"},
        "benchmark": {"format": "embedded", "limit": 12},
        "candidates": {"one": {"model": "m"}, "two": {"model": "q"}},
        "exams": {
            "static": {"protocol": "static"},
            "kieval": {"protocol": "kieval", "limit": 2, "options": {"rounds": 2}},
        },
        "detection": {"formats": ["as_trained"]},
    }
    return {**value, **changes}


def finish(folder: Path, value: dict[str, Any], *arguments: str) -> Path:
    """Runs the experiment to its end; the run folder."""
    result = proctor("run", write_experiment(folder, value), "--out", folder / "run", *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / "run"


def rewrite(run: Path, stage: str, rows: list[dict[str, Any]]) -> None:
    """Other records, as if the stage had ended with them."""
    folder = open_run(run).stage(stage)
    done = folder.done()
    assert done is not None
    write_jsonl(folder.path / "records.jsonl", rows)
    folder.finish(done.inputs, list(done.sizes))


def do(folder: Path, value: dict[str, Any], *stages: str) -> Path:
    """Does these stages (or all) in this process, which is quicker than a run; the run folder."""
    run = create(folder / "run", resolve(Experiment.model_validate(value)))
    for stage in stages or [stage.name for stage in plan(run.experiment)]:
        do_stage(run, stage)
    return run.path
