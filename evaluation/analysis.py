"""What an analysis is: arithmetic over the finished exams of an experiment; no model of the experiment is asked.

An analysis knows of an experiment and of its run what is written here, and nothing else of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from evaluation.exam_set import FrozenExam
from serving.model.spec import ModelSpec


class Exam(Protocol):
    """An exam, or a group, as the experiment file has it. benchmark: None where it is the experiment's own"""

    @property
    def protocol(self) -> str: ...
    @property
    def options(self) -> Mapping[str, Any]: ...
    @property
    def build(self) -> str | None: ...
    @property
    def set(self) -> str | None: ...
    @property
    def candidates(self) -> Sequence[str] | None: ...


class Build(Protocol):
    """An exam that models write."""

    @property
    def builder(self) -> str: ...
    @property
    def options(self) -> Mapping[str, Any]: ...
    @property
    def roles(self) -> Mapping[str, str]: ...


class Candidate(Protocol):
    """model: an entry of ``models``, or None for one that a recipe trains"""

    @property
    def model(self) -> str | None: ...
    @property
    def recipe(self) -> str | None: ...


class Experiment(Protocol):
    """Exams, builds, candidates, roles and models by name, and the seed."""

    @property
    def seed(self) -> int: ...
    @property
    def exams(self) -> Mapping[str, Exam]: ...
    @property
    def builds(self) -> Mapping[str, Build]: ...
    @property
    def candidates(self) -> Mapping[str, Candidate]: ...
    @property
    def roles(self) -> Mapping[str, str]: ...
    @property
    def models(self) -> Mapping[str, ModelSpec]: ...

    def sitting(self, name: str) -> Exam:
        """The exam or the group of that name."""
        ...

    def build_specs(self, build: str, roles: Sequence[str]) -> Mapping[str, ModelSpec]:
        """The models that play ``roles`` in a build. ValueError for a role nobody plays."""
        ...

    def items_stage(self, exam: str) -> str:
        """The stage that freezes the items of an exam."""
        ...


class Folder(Protocol):
    @property
    def path(self) -> Path: ...


class Run(Protocol):
    """A run of an experiment: each stage's folder (records.jsonl, metrics.json), each exam's items."""

    @property
    def experiment(self) -> Experiment: ...

    def stage(self, name: str) -> Folder: ...

    def items(self, exam: str) -> FrozenExam: ...


class Analysis(Protocol):
    """What it shows of itself in a report are hooks as a protocol's (``evaluation.protocol.Shows``).

    name: its ``kind`` in experiment files
    version: raised when its code changes what it computes; part of the stage's input digest
    Options: the pydantic model of its settings
    figure: a key of the metrics that ``compute`` always gives and no other kind does. The report leaves out figures
        without it: those that a former analysis of the same name left
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

    def compute(self, run: Run, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        """The figures (metrics.json) and, by figure of the report, the data of its plot (plots.json). Files of its own
        it may write into ``folder``."""
        ...


def exam_stages(experiment: Experiment, exam: str, *, where: str) -> dict[str, str]:
    """The stages of an exam by candidate. ValueError for an exam that isn't there."""
    if exam not in experiment.exams:
        raise ValueError(f"{where}: there is no exam {exam!r}; there are: {', '.join(experiment.exams) or 'none'}")
    sitting = experiment.exams[exam].candidates
    return {name: f"{exam}.{name}" for name in experiment.candidates if sitting is None or name in sitting}
