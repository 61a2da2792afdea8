"""A run folder: the resolved experiment and where every stage keeps its files.

runs/<name>/  experiment.yaml  environment.json  exam/  ledger/<stage>/  models/<candidate>/  stages/<stage>/  report/
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from evaluation.exam_set import FrozenExam, read_exam
from proctor.experiment.environment_references import read_environment, with_references
from proctor.experiment.experiment import Experiment
from proctor.run_folder.stage import StageFolder
from serving.files import write_text
from serving.settings import validate

SPECIAL = {"exam": "exam", "report": "report"}


class RunFolder:
    def __init__(self, path: Path, experiment: Experiment) -> None:
        self.path = path
        self.experiment = _with_endpoints(experiment, path)
        self.damaged: dict[str, list[str]] = {}
        """Finished stages of which ``verify`` found output files with other content, and those files."""

    def verify(self, stages: Iterable[str]) -> None:
        """Reads the outputs of finished stages and notes in ``damaged`` what is not as the stage left it."""
        found = {name: self.stage(name).damaged() for name in stages}
        self.damaged = {name: files for name, files in found.items() if files}

    def stage(self, name: str) -> StageFolder:
        return StageFolder(self.path / SPECIAL.get(name, f"stages/{name}"))

    def ledger(self, stage: str) -> Path:
        return self.path / "ledger" / stage

    def items_folder(self, exam: str) -> Path:
        """Where the frozen items of an exam or a group lie."""
        folder = self.stage(self.experiment.items_stage(exam)).path
        chosen = self.experiment.sitting(exam).set
        return folder if chosen is None else folder / "sets" / chosen

    def items(self, exam: str) -> FrozenExam:
        """The frozen items of an exam or a group. ValueError if the build made no such set."""
        folder = self.items_folder(exam)
        if not (folder / "items.jsonl").is_file():
            made = sorted(place.name for place in folder.parent.glob("*") if place.is_dir())
            where = f"{self.experiment.place(exam)}.set"
            raise ValueError(f"{where}: the build made no set {folder.name!r}; it made {', '.join(made) or 'none'}")
        return read_exam(folder)

    def trained(self, candidate: str) -> Path:
        """Where a candidate is trained; its weights are in ``model/`` below."""
        return self.path / "models" / candidate

    def candidate_model(self, candidate: str) -> Path:
        return self.trained(candidate) / "model"


def _with_endpoints(experiment: Experiment, path: Path) -> Experiment:
    """Models on a server are found where ``proctor serve --run`` writes: <run>/serving/<model>.json."""
    models = {
        name: spec.model_copy(update={"endpoint": str(path.absolute() / "serving" / f"{name}.json")})
        if spec.engine == "server" and spec.endpoint is None
        else spec
        for name, spec in experiment.models.items()
    }
    return experiment if models == experiment.models else experiment.model_copy(update={"models": models})


def check_free(path: Path, name: str) -> None:
    """ValueError if ``path`` is not a folder that this experiment may use; writes nothing."""
    file = path / "experiment.yaml"
    if file.is_file():
        other = read_environment(read_resolved(file), str(file))[0].get("name")
        if other != name:
            raise ValueError(
                f"output folder {path} belongs to the experiment {other!r}, not {name!r}; choose another --out"
            )
    elif path.is_file() or (path.is_dir() and any(not entry.name.startswith("LOCK") for entry in path.iterdir())):
        raise ValueError(f"output folder {path} exists and is not a run folder; choose another --out")


def create(path: Path, experiment: Experiment) -> RunFolder:
    """Makes or updates the folder: writes the resolved experiment, if it changed."""
    check_free(path, experiment.name)
    value = with_references(experiment.model_dump(mode="json"), experiment.references)
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    file = path / "experiment.yaml"
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        write_text(file, text)
    return RunFolder(path, experiment)


def read_resolved(file: Path) -> dict[str, Any]:
    """A resolved experiment: plain YAML, in which only references to the environment are left."""
    try:
        value = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{file} is damaged: {error}; write the experiment into it again with 'proctor run'"
        ) from error
    if not isinstance(value, dict):
        raise ValueError(f"{file} is damaged: it holds no experiment; remove it and run 'proctor run' again")
    return value


def open_run(path: Path) -> RunFolder:
    """A run folder that exists. ValueError if it is none."""
    file = path / "experiment.yaml"
    if not file.is_file():
        raise ValueError(
            f"{path} is not a run folder (it has no experiment.yaml); give the folder that 'proctor run' made"
        )
    value, references = read_environment(read_resolved(file), str(file))
    return RunFolder(path, validate(Experiment, value, where=str(file)).reading(references))
