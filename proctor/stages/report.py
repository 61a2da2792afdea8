"""Stage ``report``: summary.json and the page."""

from __future__ import annotations

from pathlib import Path

from evaluation.run_exam import Report
from proctor import __version__
from proctor.experiment.experiment import Experiment
from proctor.run_folder.run import RunFolder
from proctor.stages.base import Stage


def stage(experiment: Experiment, needs: list[str]) -> Stage:
    return Stage(
        name="report",
        needs=tuple(needs),
        version=8,
        config={
            "name": experiment.name,
            "seed": experiment.seed,
            "proctor": __version__,
            # the order decides which exam stands in the table
            "exams": [[name, exam.protocol, exam.options] for name, exam in experiment.exams.items()],
            "groups": [[name, group.protocol, group.options] for name, group in experiment.groups.items()],
            "analyses": [[name, analysis.kind, analysis.options] for name, analysis in experiment.analyses.items()],
            "candidates": [[name, candidate.recipe] for name, candidate in experiment.candidates.items()],
            "formats": list(experiment.detection.formats) if experiment.detection else [],
            "leak_format": experiment.leak_format,
        },
        body=_report,
    )


def _report(run: RunFolder, folder: Path, report: Report) -> list[str]:
    from proctor.report.write import write_report

    report(0, 1, "writing")
    names = write_report(run, folder)
    report(1, 1, "written")
    return names
