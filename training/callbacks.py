"""What happens beside the training steps: progress, checkpoints that are known to be complete, the wish to stop."""

from __future__ import annotations

import itertools
import math
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from training.interrupt import stop_wanted

COMPLETE = "COMPLETE"


class Progress(TrainerCallback):  # type: ignore[misc]
    """Step, loss, tokens per second and time left: a line every few seconds, or one line rewritten on a terminal.

    tokens: tokens of every row in training order, padding not counted; rows_per_step: of all processes together
    """

    def __init__(self, name: str, tokens: Sequence[int], rows_per_step: int, seconds: float = 5.0) -> None:
        self.name, self.rows, self.seconds = name, rows_per_step, seconds
        self.sums = [0, *itertools.accumulate(tokens)]
        self.terminal = sys.stderr.isatty()
        self.loss = math.nan
        self.began, self.first_step, self.last_line = 0.0, 0, 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.began = time.monotonic()
        self.first_step = state.global_step

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        loss = (logs or {}).get("loss")
        if loss is None:
            return
        self.loss = float(loss)
        if not math.isfinite(self.loss):
            raise ValueError(
                f"{self.name}: the loss is {self.loss} at step {state.global_step}; lower learning_rate, or add warmup"
            )
        now = time.monotonic()
        last = state.global_step == state.max_steps
        if state.is_world_process_zero and (self.terminal or last or now - self.last_line >= self.seconds):
            self.last_line = now
            end = "\n" if last or not self.terminal else ""
            print(("\r\x1b[K" if self.terminal else "") + self.line(state, now), end=end, file=sys.stderr, flush=True)

    def line(self, state: Any, now: float) -> str:
        done = self._until(state.global_step) - self._until(self.first_step)
        left = self.sums[-1] - self._until(state.global_step)
        speed = done / max(now - self.began, 1e-9)
        return (
            f"{self.name}: step {state.global_step}/{state.max_steps}  loss {self.loss:.4f}  "
            f"{speed:.0f} tokens/s  {_clock(left / speed if speed else 0.0)} left"
        )

    def _until(self, step: int) -> int:
        return self.sums[min(step * self.rows, len(self.sums) - 1)]


class Checkpoints(TrainerCallback):  # type: ignore[misc]
    """Marks a checkpoint as complete once every process has written its part; stops after one where that is wanted."""

    def __init__(self, folder: Path, signs: Path) -> None:
        self.folder, self.signs, self.stopped = folder, signs, False

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step < state.max_steps and _anyone(stop_wanted(self.signs), args.device):
            self.stopped = True
            control.should_save = control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        _barrier()
        if state.is_world_process_zero:
            (self.folder / f"checkpoint-{state.global_step}" / COMPLETE).touch()


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint; half-written ones are removed, so that they can be written anew."""
    complete = []
    for path in folder.glob("checkpoint-*"):
        if (path / COMPLETE).exists():
            complete.append(path)
        else:
            shutil.rmtree(path, ignore_errors=True)
    return max(complete, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _anyone(mine: bool, device: Any) -> bool:
    """Whether any process says yes: all must stop at the same step."""
    import torch
    import torch.distributed as dist

    if not dist.is_initialized():
        return mine
    flag = torch.tensor(int(mine), device=device)
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def _barrier() -> None:
    import torch.distributed as dist

    if dist.is_initialized():
        dist.barrier()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
