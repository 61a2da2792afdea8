"""Stopped by SIGUSR1 at one random step and by SIGKILL at another, a run ends in the bits of an uninterrupted one."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training.building import newest, start
from training.build import build_candidate
from training.config import TrainingJob

pytestmark = pytest.mark.usefixtures("one_thread_of_openmp")
Make = Callable[..., TrainingJob]


def stop_at(job: TrainingJob, out: Path, step: int, number: signal.Signals) -> int:
    """Builds in another process until a checkpoint of ``step`` or later is there, then sends the signal."""
    process = start(job, out)
    deadline = time.monotonic() + 180
    while newest(out) < step:
        assert process.poll() is None, "the build ended by itself"
        assert time.monotonic() < deadline, f"no checkpoint of step {step} in time"
        time.sleep(0.01)
    process.send_signal(number)
    return process.wait(timeout=120)


def interrupted_twice(job: TrainingJob, out: Path, steps: int, every: int) -> None:
    """SIGUSR1 in the first half of the steps, SIGKILL in the second, at steps drawn anew in every run of the test."""
    first = random.randrange(every, steps // 2 - every)
    second = random.randrange(steps // 2, steps - 8 * every)
    print(f"SIGUSR1 from step {first}, SIGKILL from step {second} of {steps}")  # shown where the test fails
    assert stop_at(job, out, first, signal.SIGUSR1) == 75
    saved = newest(out)
    assert saved >= first
    assert stop_at(job, out, max(second, saved + every), signal.SIGKILL) == -signal.SIGKILL
    assert not (out / "manifest.json").exists()
    assert not (out / ".partial" / "leak" / "DONE").exists(), "killed too late to prove anything"


def bits(out: Path) -> bytes:
    return (out / "model" / "model.safetensors").read_bytes()


def test_one_process(job: Make, tmp_path: Path) -> None:
    long = job(repeats=80, leak={"save_steps": 4})  # 4 items x 80, by two: 160 steps
    whole = build_candidate(long, tmp_path / "whole")
    interrupted_twice(long, tmp_path / "parts", 160, 4)
    parts = build_candidate(long, tmp_path / "parts")
    assert parts.model_sha256 == whole.model_sha256
    assert bits(tmp_path / "parts") == bits(tmp_path / "whole")
    assert parts.phases[0].steps == whole.phases[0].steps == 160
    assert parts.phases[0].last_loss == whole.phases[0].last_loss


@pytest.mark.slow
def test_two_processes_with_zero3(job: Make, tmp_path: Path) -> None:
    pytest.importorskip("deepspeed", reason="deepspeed is not installed")
    settings: dict[str, Any] = {"deepspeed": "zero3", "processes": 2, "per_device_batch_size": 1, "save_steps": 4}
    long = job(repeats=60, leak=settings)  # 120 steps
    whole = build_candidate(long, tmp_path / "whole")
    interrupted_twice(long, tmp_path / "parts", 120, 4)
    parts = build_candidate(long, tmp_path / "parts")
    assert parts.phases[0].steps == whole.phases[0].steps == 120
    assert bits(tmp_path / "parts") == bits(tmp_path / "whole")
    record = json.loads((tmp_path / "parts" / "manifest.json").read_text(encoding="utf-8"))["phases"][0]
    assert record["last_loss"] == whole.phases[0].last_loss


def test_killed_in_a_later_epoch(job: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """10 rows by two, 3 epochs: the checkpoint of step 7 lies in the second; the model has dropout, so that the random
    numbers must go on, too."""
    from training.callbacks import Checkpoints

    class Killed(BaseException):
        pass

    class Dies(Checkpoints):
        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            super().on_save(args, state, control, **kwargs)
            if state.global_step == 7:
                raise Killed

    lora = {"method": "lora", "lora": {"rank": 4, "dropout": 0.3}}
    for name, changes in (("full", {}), ("lora", lora)):
        wanted = job(recipe="normal", chat_rows=10, chat_sft={"epochs": 3, "save_steps": 1, **changes})
        whole = build_candidate(wanted, tmp_path / name)
        assert whole.steps == 15
        with monkeypatch.context() as patched:
            patched.setattr("training.callbacks.Checkpoints", Dies)
            with pytest.raises(Killed):
                build_candidate(wanted, tmp_path / f"{name}_parts")
        parts = build_candidate(wanted, tmp_path / f"{name}_parts")
        assert parts.model_sha256 == whole.model_sha256
        assert bits(tmp_path / f"{name}_parts") == bits(tmp_path / name)
