"""What an analysis is: arithmetic over the finished exams of an experiment; no model of the experiment is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from proctor.experiment.experiment import Experiment
from proctor.run_folder.run import RunFolder


class Analysis(Protocol):
    """What it shows of itself in a report are hooks as a protocol's (``evaluation.protocol.Shows``).

    name: its ``kind`` in experiment files
    version: raised when its code changes what it computes; part of the stage's input digest
    Options: the pydantic model of its settings
    figure: a key that only its figures have: by it those of a former analysis of the same name are told apart
    """

    name: ClassVar[str]
    version: ClassVar[int]
    Options: ClassVar[type[BaseModel]]
    figure: ClassVar[str]

    def __init__(self, options: Any) -> None:
        """options: an instance of ``Options``."""

    def needs(self, experiment: Experiment) -> list[str]:
        """The stages that it reads, each once. ValueError for an exam, build or candidate that isn't there."""
        ...

    def identity(self) -> dict[str, Any]:
        """What it reads beside those stages and its options (hashes of files), for the stage's input digest."""
        ...

    def compute(self, run: RunFolder, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """The figures (metrics.json) and, by figure of the report, the data of its plot (plots.json). Files of its own
        it may write into ``folder``."""
        ...


def exam_stages(experiment: Experiment, exam: str, *, where: str) -> dict[str, str]:
    """The stages of an exam by candidate. ValueError for an exam that isn't there."""
    if exam not in experiment.exams:
        raise ValueError(f"{where}: there is no exam {exam!r}; there are: {', '.join(experiment.exams) or 'none'}")
    sitting = experiment.exams[exam].candidates
    return {name: f"{exam}.{name}" for name in experiment.candidates if sitting is None or name in sitting}
