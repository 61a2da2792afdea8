"""Stage ``report``: summary.json and the page."""

from __future__ import annotations

from pathlib import Path

from proctor import __version__
from proctor.examining import Report
from proctor.experiment import Experiment
from proctor.runfolder import RunFolder
from proctor.stages.base import Stage


def stage(experiment: Experiment, needs: list[str]) -> Stage:
    return Stage(
        name="report",
        needs=tuple(needs),
        version=1,
        config={"name": experiment.name, "seed": experiment.seed, "proctor": __version__},
        body=_report,
    )


def _report(run: RunFolder, folder: Path, report: Report) -> list[str]:
    from proctor.report.write import write_report

    report(0, 1, "writing")
    names = write_report(run, folder)
    report(1, 1, "written")
    return names
