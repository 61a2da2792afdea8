"""Stage ``analysis.<name>``: figures over the finished exams of several candidates, for the report."""

from __future__ import annotations

from pathlib import Path

from detection.run_detectors import clean
from evaluation.run_exam import Report
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import analysis_for
from proctor.run_folder.run import RunFolder
from proctor.stages.base import Stage
from serving.files import write_json


def name_for(analysis: str) -> str:
    return f"analysis.{analysis}"


def stage(experiment: Experiment, name: str) -> Stage:
    config = experiment.analyses[name]
    try:
        analysis = analysis_for(experiment, name)
        needs = analysis.needs(experiment)
        identity = analysis.identity()
    except ValueError as error:
        where = f"analyses.{name}"
        raise ValueError(str(error) if str(error).startswith(where) else f"{where}: {error}") from error
    return Stage(
        name=name_for(name),
        needs=tuple(needs),
        version=analysis.version,
        config={"kind": config.kind, "options": config.options, "seed": experiment.seed, **identity},
        body=lambda run, folder, report: _analyse(run, folder, report, name),
    )


def _analyse(run: RunFolder, folder: Path, report: Report, name: str) -> list[str]:
    report(0, 1, "analysing")
    metrics, plots = analysis_for(run.experiment, name).compute(run, folder)
    write_json(folder / "metrics.json", clean(metrics))
    write_json(folder / "plots.json", clean(plots))
    report(1, 1, "analysed")
    return ["metrics.json", "plots.json"]
