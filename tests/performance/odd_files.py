"""Every odd model folder and benchmark file through the command line, in processes of their own (some 20 minutes).

    python -m tests.performance.odd_files FOLDER models|benchmarks

Counts tracebacks, escape sequences, calls over 20 s or 2 GB, and exit codes that are none of 0, 1 and 2.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.fixtures.odd_benchmarks import odd_benchmarks
from tests.fixtures.odd_models import odd_models
from tests.fixtures.tiny import make_model

MEASURED = """
import atexit, resource, sys
atexit.register(lambda: sys.stderr.write("\\nKIB %d" % resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
from proctor.cli import main
main()
"""
LIMIT_S, LIMIT_GB = 20, 2


def call(root: Path, *arguments: object) -> tuple[float, float, list[str]]:
    """Seconds, GB and what is wrong with one call."""
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            cwd=root,
            env={**os.environ, "PROCTOR_CACHE": str(root / "cache")},
        )
    except subprocess.TimeoutExpired:
        return 60.0, 0.0, ["hangs"]
    seconds = time.monotonic() - begin
    said, _, size = done.stderr.rpartition("KIB ")
    gigabytes = int(size or 0) / 1e6
    wrong = {
        "traceback": "Traceback" in said + done.stdout,
        "escape sequence": "\x1b" in said + done.stdout,
        "slow": seconds > LIMIT_S,
        "memory": gigabytes > LIMIT_GB,
        "exit code": done.returncode not in (0, 1, 2),
    }
    return seconds, gigabytes, [name for name, is_so in wrong.items() if is_so]


def calls(root: Path, kind: str) -> Iterator[tuple[str, tuple[object, ...]]]:
    """What is called of each odd folder or file; status and report where a run was made."""
    good = root / "good.jsonl"
    rows = ({"question": f"What is {i}?", "choices": ["this", "that"], "answer": "A"} for i in range(4))
    good.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    if kind == "models":
        for name, folder in odd_models(make_model(root / "whole"), root / "models"):
            yield name, ("models", "inspect", folder)
            out = root / "evaluated" / folder.name
            yield name, ("evaluate", "--candidate", folder, "--benchmark", good, "--out", out)
            model = {"path": str(folder), "engine": "transformers"}
            yield from _of_experiment(root, name, model, {"format": "jsonl", "path": str(good)})
    else:
        for name, format, path in odd_benchmarks(root / "benchmarks"):
            yield name, ("check", "--format", format, "--benchmark", path)
            scripted = {"path": "none", "engine": "scripted"}
            yield from _of_experiment(root, name, scripted, {"format": format, "path": str(path)})


def _of_experiment(
    root: Path, name: str, model: dict[str, Any], benchmark: dict[str, Any]
) -> Iterator[tuple[str, tuple[object, ...]]]:
    file, out = root / "experiment.yaml", root / "runs" / name[:40]
    value = {
        "name": "odd",
        "models": {"m": model},
        "base": "m",
        "benchmark": benchmark,
        "candidates": {"one": {"model": "m"}},
        "exams": {"static": {"protocol": "static"}},
        "detection": None,
    }
    file.write_text(yaml.safe_dump(value), encoding="utf-8")
    yield name, ("check", file, "--no-self-test")
    yield name, ("run", file, "--out", out)
    if (out / "experiment.yaml").is_file():
        yield name, ("status", out)
        yield name, ("report", out)


def main(root: Path, kind: str) -> None:
    root.mkdir(parents=True)
    measured = []
    for name, arguments in calls(root, kind):
        seconds, gigabytes, wrong = call(root, *arguments)
        measured.append((seconds, gigabytes, bool(wrong)))
        if wrong:
            print(f"{name}: {arguments[0]}: {', '.join(wrong)} ({seconds:.0f} s, {gigabytes:.1f} GB)", flush=True)
    longest, largest, bad = max(m[0] for m in measured), max(m[1] for m in measured), sum(m[2] for m in measured)
    print(f"{len(measured)} calls, {bad} bad; the longest {longest:.0f} s, the largest {largest:.2f} GB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
