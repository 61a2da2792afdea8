"""Kill -9 at random moments, then run again: the records are those of an uninterrupted run, byte for byte."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.proctor.command import alive, descendants, experiment, proctor, records, start, write_experiment


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> tuple[Path, Path, float]:
    """An uninterrupted run: experiment file, run folder, seconds."""
    folder = tmp_path_factory.mktemp("resume")
    file = write_experiment(folder, experiment(tiny_model))
    began = time.monotonic()
    result = proctor("run", file, "--out", folder / "whole")
    assert result.returncode == 0, result.stdout + result.stderr
    return file, folder / "whole", time.monotonic() - began


@pytest.mark.slow
def test_three_kills_change_nothing(finished: tuple[Path, Path, float], tmp_path: Path) -> None:
    file, whole, seconds = finished
    rng = random.Random(20)
    out = tmp_path / "killed"
    for number in range(3):
        process = start("run", file, "--out", out)
        time.sleep(rng.uniform(0.15, 0.4) * seconds)
        below = descendants(process.pid)
        os.kill(process.pid, signal.SIGKILL)  # the runner alone: its stage must notice by itself
        process.wait()
        deadline = time.monotonic() + 5
        while any(alive(pid) for pid in below) and time.monotonic() < deadline:
            time.sleep(0.1)
        left = [pid for pid in below if alive(pid)]
        assert not left, f"kill {number + 1} left processes {left}"
    result = proctor("run", file, "--out", out)
    assert result.returncode == 0, result.stdout + result.stderr
    assert records(out) == records(whole)
    assert len(records(whole)) >= 7


def test_a_second_run_does_nothing(finished: tuple[Path, Path, float]) -> None:
    file, whole, _ = finished
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*")}
    result = proctor("run", file, "--out", whole)
    assert result.returncode == 0
    assert result.stdout.startswith("nothing to do: all 11 stages of small are done")
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*")} == before


def test_only_what_changed_is_done_again(finished: tuple[Path, Path, float]) -> None:
    file, whole, _ = finished
    result = proctor("run", file, "--out", whole, "-s", "exams.kieval.limit=1", "--dry-run")
    states = dict(line.split()[:2] for line in result.stdout.splitlines()[1:])
    assert {name for name, state in states.items() if state != "done"} == {"kieval.normal", "kieval.pt", "report"}
    assert states["kieval.pt"] == "stale"
    result = proctor("run", file, "--out", whole, "-s", "training.repeats=3", "--dry-run")
    states = dict(line.split()[:2] for line in result.stdout.splitlines()[1:])
    assert states["train.normal"] == "stale"
    assert states["exam"] == states["detect.base"] == "done"


def test_status_and_summary(finished: tuple[Path, Path, float]) -> None:
    import json

    _, whole, _ = finished
    lines = proctor("status", whole).stdout.splitlines()
    assert len(lines) == 11
    assert all(line.split()[1] == "done" for line in lines)
    summary = json.loads((whole / "report" / "summary.json").read_text())
    for name in ("normal", "pt"):
        candidate = summary["candidates"][name]
        for key in ("accuracy_leaked", "accuracy_untouched", "kieval", "kieval_released", "rounds", "loss_gap"):
            assert isinstance(candidate[key], float), (name, key)
        assert set(candidate["detection"]["min_k@20"]) >= {"auc", "auc_ci", "tpr_at_5", "n"}
        assert candidate["verdict"]["outcome"] in ("contaminated", "not detected", "inconclusive")


def test_a_missing_output_is_made_again(finished: tuple[Path, Path, float]) -> None:
    """A run folder from which someone deleted a file is mended from the ledger, without a model."""
    file, whole, _ = finished
    kept = records(whole)
    (whole / "stages" / "kieval.pt" / "records.jsonl").unlink()
    result = proctor("run", file, "--out", whole)
    assert result.returncode == 0, result.stdout + result.stderr
    assert records(whole) == kept
    log = (whole / "stages" / "kieval.pt" / "usage.json").read_text()
    assert '"seconds": 0.0' in log
