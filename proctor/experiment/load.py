"""What of an experiment depends on this machine and on the working directory, written down once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.benchmarks.chosen import BenchmarkConfig
from proctor.experiment.experiment import Experiment
from proctor.experiment.sections import (
    BUILD,
    FILES,
    AnalysisConfig,
    DetectionConfig,
    S,
)


def resolve(experiment: Experiment) -> Experiment:
    """Decides what depends on this machine (engines, mode) and on the working directory (paths), so that it is written
    down and the run folder can be used from anywhere."""
    models = {}
    for name, spec in experiment.models.items():
        places = {key: getattr(spec, key) for key in ("path", "adapter", "chat_template", "endpoint")}
        models[name] = spec.resolved().model_copy(update={key: _absolute(value) for key, value in places.items()})
    builds = {
        name: build.model_copy(
            update={
                "benchmark": None if build.benchmark is None else _placed(build.benchmark),
                "options": _with_places(build.options),
            }
        )
        for name, build in experiment.builds.items()
    }
    candidates = {
        name: candidate.model_copy(update={"options": _with_places(candidate.options)})
        for name, candidate in experiment.candidates.items()
    }
    return experiment.model_copy(
        update={
            "models": models,
            "mode": experiment.schedule,
            "benchmark": _placed(experiment.benchmark),
            "training": _with_places(experiment.training),
            "candidates": candidates,
            "builds": builds,
            "exams": {name: _sat_here(exam) for name, exam in experiment.exams.items()},
            "groups": {name: _sat_here(group) for name, group in experiment.groups.items()},
            "analyses": {name: _with_sets(analysis) for name, analysis in experiment.analyses.items()},
            "detection": None if experiment.detection is None else _with_files(experiment.detection),
        }
    )


def _sat_here(config: S) -> S:
    benchmark = None if config.benchmark is None else _placed(config.benchmark)
    return config.model_copy(update={"benchmark": benchmark, "options": _with_places(config.options)})


def _with_files(config: DetectionConfig) -> DetectionConfig:
    from detection.inputs import with_places

    files = {key: _absolute(getattr(config, key)) for key in ("corpus", "non_members", "members")}
    return config.model_copy(update={**files, "options": with_places(config.options)})


def _with_sets(config: AnalysisConfig) -> AnalysisConfig:
    """The question sets and the encoder that an analysis names, as absolute paths."""
    options = dict(config.options)
    if isinstance(options.get("benchmarks"), Mapping):
        options["benchmarks"] = {
            name: {key: _absolute(value) if key in ("path", "exemplars") else value for key, value in one.items()}
            if isinstance(one, Mapping)
            else one
            for name, one in options["benchmarks"].items()
        }
    if "encoder" in options:
        options["encoder"] = _absolute(options["encoder"])
    return config.model_copy(update={"options": options})


def _placed(benchmark: BenchmarkConfig) -> BenchmarkConfig:
    files = {"path": _absolute(benchmark.path), "exemplars": _absolute(benchmark.exemplars)}
    return benchmark.model_copy(update=files)


def _with_places(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _absolute(value) if key in FILES else value for key, value in settings.items()}


def _absolute(value: str | None) -> str | None:
    """An existing file or folder as an absolute path; anything else (a hub name, ``embedded``, a build) as it is."""
    if not isinstance(value, str) or not value or value.startswith(BUILD):
        return value
    path = Path(value).expanduser()
    return str(path.resolve()) if path.exists() else value


def load_experiment(path: Path, overrides: Sequence[str] = ()) -> Experiment:
    """Reads and validates an experiment file. ValueError says what, where, and what would be right."""
    from proctor.experiment.yaml_file import read_yaml
    from serving.settings import validate

    read = read_yaml(path, overrides)
    return resolve(validate(Experiment, read.value, where=str(path))).reading(read.references)
