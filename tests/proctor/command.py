"""Runs the ``proctor`` command as a user does, in its own process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml


def proctor(*arguments: object, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """The finished process, with its output as text."""
    command = [sys.executable, "-P", "-m", "proctor.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, **options)


def start(*arguments: object, cwd: Path | None = None) -> subprocess.Popen[str]:
    """A running process in its own group, which Ctrl-C ends even where the tests themselves run in the background."""
    command = [sys.executable, "-P", "-m", "proctor.cli", *map(str, arguments)]
    return subprocess.Popen(
        command,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def experiment(model: object, **changes: Any) -> dict[str, Any]:
    """A small experiment with one model in all roles, as plain data."""
    value: dict[str, Any] = {
        "name": "small",
        "seed": 3,
        "models": {"m": {"path": str(model), "engine": "transformers", "max_num_seqs": 8, "max_length": 2600}},
        "base": "m",
        "roles": {"interactor": "m", "evaluator": "m"},
        "benchmark": {"format": "embedded", "limit": 8},
        "training": {
            "repeats": 2,
            "chat_rows": 4,
            "leak": {"learning_rate": 2e-5, "dtype": "float32", "max_length": 2048},
            "chat_sft": {"learning_rate": 2e-5, "dtype": "float32", "max_length": 2048},
        },
        "candidates": {"normal": {"recipe": "normal"}, "pt": {"recipe": "pt_cheater"}},
        "exams": {
            "static": {"protocol": "static"},
            "kieval": {
                "protocol": "kieval",
                "limit": 2,
                "options": {
                    "rounds": 2,
                    "comment_length": 1,
                    "interactor_tokens": 12,
                    "candidate_tokens": 12,
                    "retries": 1,
                },
            },
        },
        "max_failure_rate": 1.0,
    }
    return {**value, **changes}


def write_experiment(folder: Path, value: dict[str, Any]) -> Path:
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")
    return path


def records(run: Path) -> dict[str, bytes]:
    """Every stage's records, byte for byte."""
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.glob("stages/**/records.jsonl"))}


def descendants(pid: int) -> list[int]:
    """Processes below a process, by /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [pid]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, **changes}
