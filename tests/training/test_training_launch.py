"""Training in other processes: torchrun, DeepSpeed, and what becomes of them when their parent is killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training.building import complete_checkpoints, newest, start
from training.build import build_candidate
from training.config import TrainingJob
from training.interrupt import Interrupted
from training.manifest import read_manifest

pytestmark = pytest.mark.usefixtures("one_thread_of_openmp")
Make = Callable[..., TrainingJob]


def wait_for(condition: Callable[[], Any], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.02)


def processes_about(folder: Path) -> list[int]:
    """Processes whose command line names the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_a_killed_build_goes_on_to_the_same_bits(job: Make, tmp_path: Path) -> None:
    long = job(repeats=60, leak={"save_steps": 4})
    expected = build_candidate(long, tmp_path / "whole")
    killed = start(long, tmp_path / "killed")
    wait_for(lambda: complete_checkpoints(tmp_path / "killed"), 90, "a checkpoint")
    killed.kill()
    killed.wait()
    assert not (tmp_path / "killed" / "manifest.json").exists()
    assert not (tmp_path / "killed" / ".partial" / "leak" / "DONE").exists(), "killed too late to prove anything"
    resumed = build_candidate(long, tmp_path / "killed")
    assert resumed.model_sha256 == expected.model_sha256


def test_sigterm_writes_a_checkpoint_and_exits_75(job: Make, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(job(repeats=400, leak={"save_steps": 4}), out)
    wait_for(lambda: complete_checkpoints(out), 90, "a checkpoint")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 75
    assert complete_checkpoints(out)
    assert not (out / "manifest.json").exists()


@pytest.mark.slow
def test_two_processes_train_what_one_does_and_leave_nothing_behind(job: Make, tmp_path: Path) -> None:
    one = build_candidate(job(recipe="normal"), tmp_path / "one")
    two = build_candidate(job(recipe="normal", chat_sft={"processes": 2, "per_device_batch_size": 1}), tmp_path / "two")
    assert two.phases[0].steps == one.phases[0].steps
    assert two.phases[0].last_loss == pytest.approx(one.phases[0].last_loss, abs=1e-3)

    # a worker's error reaches the caller
    wrong = job(recipe="normal", chat_sft={"processes": 2, "arguments": {"adam_beta_1": 0.5}})
    with pytest.raises(ValueError, match="did you mean 'adam_beta1'"):
        build_candidate(wrong, tmp_path / "wrong")

    # SIGTERM reaches every worker, and the build goes on from there
    long = job(repeats=400, leak={"processes": 2, "per_device_batch_size": 1, "save_steps": 4})
    process = start(long, tmp_path / "long")
    wait_for(lambda: complete_checkpoints(tmp_path / "long"), 120, "a checkpoint")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 75
    assert not processes_about(tmp_path / "long")

    # kill -9 of the parent: nothing goes on training, whether the workers have only been born or are at work
    stopped_at = newest(tmp_path / "long")
    assert stopped_at > 0
    for at_work in (False, True):
        process = start(long, tmp_path / "long")
        wait_for(lambda: len(processes_about(tmp_path / "long")) >= 4, 60, "the workers")
        if at_work:
            wait_for(lambda: newest(tmp_path / "long") > stopped_at, 60, "a new checkpoint")
        process.kill()
        process.wait()
        wait_for(lambda: not processes_about(tmp_path / "long"), 5, "the workers to end")


@pytest.mark.slow
def test_zero3_on_two_processes_saves_whole_weights(job: Make, tmp_path: Path, base: Path) -> None:
    pytest.importorskip("deepspeed")
    settings = {"deepspeed": "zero3", "processes": 2, "per_device_batch_size": 1, "learning_rate": 3e-3}
    manifest = build_candidate(job(repeats=10, leak=settings, recipe="pt_cheater"), tmp_path / "out")
    leak = manifest.phases[0]
    assert leak.last_loss < leak.first_loss - 0.5
    assert leak.reloaded_loss == pytest.approx(leak.probe_loss, abs=1e-3)
    assert read_manifest(tmp_path / "out").job.leak.deepspeed == "zero3"
    shapes = [json.dumps(_shapes(folder)) for folder in (base, tmp_path / "out" / "model")]
    assert shapes[0] == shapes[1]


def _shapes(folder: Path) -> dict[str, list[int]]:
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="pt") as file:
        return {name: file.get_slice(name).get_shape() for name in sorted(file.keys())}


def test_a_stop_before_the_first_step_is_an_interruption(tmp_path: Path) -> None:
    from training.launch import WorkerError, outcome

    with pytest.raises(WorkerError, match="code 1 and no worker said why"):
        outcome(tmp_path, 1)
    (tmp_path / "STOP").touch()
    with pytest.raises(Interrupted, match="stopped before its first step"):
        outcome(tmp_path, 1)
