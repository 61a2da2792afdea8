"""The local runner: the stages that are missing, one process each, with progress, a log per stage, and resumption."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaluation.show.terminal_text import harmless
from proctor.run_folder.run import RunFolder
from proctor.run_folder.stage import StageFolder
from proctor.runner.interruption import held_back
from proctor.runner.plan import State, plan, states

INTERRUPTED = 75
_ENDED = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGUSR1)


class StageFailed(RuntimeError):
    """A stage ended badly; ``code`` is the exit code that the command should have."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def run_all(run: RunFolder, *, only: str | None = None) -> int:
    """Runs every stage that is not current, in order; returns how many were run.

    A stage whose outputs come out as before leaves those after it alone. StageFailed at the first that fails.
    """
    stages = plan(run.experiment)
    count = 0
    for position, stage in enumerate(stages):
        if only is not None and stage.name != only:
            continue
        state: State = states(run, stages)[position]
        if state.state == "done":
            continue
        if state.digest is None:
            raise ValueError(f"stage {stage.name} needs {', '.join(stage.needs)}; run without --only first")
        count += 1
        _run_stage(run, stage.name, state.digest, f"[{position + 1}/{len(stages)}]")
    return count


def mend(run: RunFolder) -> Iterator[str]:
    """Sets aside the outputs of finished stages that are not what the stage wrote, so that it is done again (its
    models' answers come from the ledger). A line for each."""
    for stage in plan(run.experiment):
        folder = run.stage(stage.name)
        damaged = folder.damaged()
        if damaged:
            with folder.lock():
                folder.set_aside()
            yield (
                f"{stage.name}: {', '.join(damaged)} changed after the stage was done (a faulty disk, or somebody "
                f"wrote to it): moved to {folder.path / 'stale'}; the stage is done again"
            )


def _run_stage(run: RunFolder, name: str, digest: str, place: str) -> None:
    started = start_stage(run, name, digest)
    try:
        with _shown(f"{place} {name}") as show:
            while started.process.poll() is None:
                show(started.progress())
                time.sleep(0.2)
    except BaseException:
        started.end()
        raise
    print(f"{place} {name}: done in {conclude(started):.0f} s", flush=True)


@dataclass(frozen=True, kw_only=True)
class Started:
    """A stage in its process. begin: where in its log this process begins, in bytes; start: on the monotonic clock"""

    name: str
    folder: StageFolder
    process: subprocess.Popen[bytes]
    begin: int
    start: float

    @property
    def log(self) -> Path:
        return self.folder.path / "log.txt"

    def progress(self) -> dict[str, Any]:
        state = self.folder.read_progress()
        if state and self.name.startswith("train."):  # the trainer tells step, loss and time left in its log
            state["note"] = _last_line(self.log, self.begin)
        return state

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=60)
        self.process.kill()
        self.process.wait()


def start_stage(run: RunFolder, name: str, digest: str, devices: Sequence[str] | None = None) -> Started:
    """Starts the stage's process. devices: the only GPUs it may see (None: all)"""
    folder = run.stage(name)
    folder.path.mkdir(parents=True, exist_ok=True)
    (folder.path / "progress.json").unlink(missing_ok=True)
    environment = {**os.environ, "PROCTOR_RUNNER": str(os.getpid()), "PYTHONUNBUFFERED": "1"}
    shown = ""
    if devices is not None:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
        shown = f" on GPUs {','.join(devices) or 'none'}"
    with (folder.path / "log.txt").open("a", encoding="utf-8") as log:
        log.write(f"--- {datetime.now(UTC).isoformat(timespec='seconds')} {name}{shown}\n")
        log.flush()
        with held_back():
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments, no shell
                [sys.executable, "-P", "-m", "proctor.cli", "stage", str(run.path), name, "--digest", digest],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        return Started(name=name, folder=folder, process=process, begin=log.tell(), start=time.monotonic())


def conclude(started: Started) -> float:
    """The seconds that a stage took whose process has ended. StageFailed says what went wrong."""
    name, process, log_path, begin = started.name, started.process, started.log, started.begin
    if process.returncode == 0:
        return time.monotonic() - started.start
    if process.returncode == INTERRUPTED or -process.returncode in _ENDED:
        raise StageFailed(
            f"stage {name} was interrupted (exit code {process.returncode}) and can go on: run the same command again\n"
            f"(if nobody ended it, it may have run out of memory; log: {log_path})",
            INTERRUPTED,
        )
    with log_path.open("rb") as stream:
        stream.seek(begin)
        lines = stream.read().decode("utf-8", "replace").strip().split("\n")
    marked = next((i for i in range(len(lines) - 1, -1, -1) if lines[i].startswith("error: ")), None)
    if marked is not None:
        said = "\n".join(lines[marked:]).removeprefix("error: ")
    elif process.returncode < 0:
        said = (
            f"ended by signal {signal.Signals(-process.returncode).name}; what was computed so far is kept: run again"
        )
    else:
        said = "\n".join(lines[-12:])
    raise StageFailed(f"stage {name} failed: {said}\n(log: {log_path})", 2 if process.returncode == 2 else 1)


def _last_line(log: Path, begin: int) -> str:
    """The last line of a log that was written since ``begin`` (bytes)."""
    with log.open("rb") as stream:
        stream.seek(max(begin, log.stat().st_size - 400))
        lines = stream.read().decode("utf-8", "replace").replace("\r", "\n").split("\n")
    return next((line.strip()[:100] for line in reversed(lines) if line.strip()), "")


@contextlib.contextmanager
def _shown(title: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A live progress bar on a terminal; elsewhere a line when something changed, at most every 15 seconds."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(title, total=None)

            def show(state: dict[str, Any]) -> None:
                if state:
                    note = harmless(str(state.get("note", "")))
                    progress.update(
                        task,
                        description=f"{title} {note}".replace("[", "\\["),
                        completed=state.get("done"),
                        total=state.get("total"),
                    )

            yield show
        return
    last, said = 0.0, ""
    print(f"{title}: started", flush=True)

    def line(state: dict[str, Any]) -> None:
        nonlocal last, said
        told = f"{title}: {state.get('done')}/{state.get('total')} {state.get('note', '')}" if state else ""
        text = harmless(told)
        if text and text != said and time.monotonic() - last > 15:
            print(text, flush=True)
            last, said = time.monotonic(), text

    yield line
