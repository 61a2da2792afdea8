"""Stage ``analysis.<name>``: figures over the finished exams of several candidates, for the report."""

from __future__ import annotations

from pathlib import Path

from proctor import analyses
from proctor.analyses.base import Analysis
from proctor.atomic import write_json
from proctor.detecting import clean
from proctor.examining import Report
from proctor.experiment import Experiment
from proctor.runfolder import RunFolder
from proctor.stages.base import Stage


def name_for(analysis: str) -> str:
    return f"analysis.{analysis}"


def analysis_for(experiment: Experiment, name: str) -> Analysis:
    """The analysis with its options checked. ValueError begins with where the fault is."""
    config = experiment.analyses[name]
    return analyses.build(config.kind, config.options, where=f"analyses.{name}")


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
