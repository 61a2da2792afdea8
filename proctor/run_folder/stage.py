"""A stage's folder: its lock, its progress, its outputs and the DONE marker that is written last.

    stages/<stage>/{records.jsonl, metrics.json, log.txt, progress.json, LOCK, DONE}

A stage may be killed at any moment: without DONE nothing in the folder counts, and the next run does the stage again
(its models' answers come from the ledger). When the inputs of a finished stage change, its outputs move to ``stale/``.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving.files import write_json, write_text

HEARTBEAT_S = 10.0
STALE_S = 90.0
KEPT = {"LOCK", "LOCK.guard", "log.txt", "stale", "progress.json", "INPUTS", "shards"}


class StageBusy(RuntimeError):
    """Another live process holds the stage."""


@dataclass(frozen=True)
class Done:
    """What DONE says: digests of inputs and outputs, and the size of every output file."""

    inputs: str
    outputs: str
    sizes: dict[str, int]


class StageFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    # markers

    def done(self) -> Done | None:
        """The marker, if the stage finished and its files are all there, of the size they had."""
        try:
            row = json.loads((self.path / "DONE").read_text(encoding="utf-8"))
            done = Done(str(row["inputs"]), str(row["outputs"]), dict(row["sizes"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        for name, size in done.sizes.items():
            file = self.path / name
            if not file.is_file() or file.stat().st_size != size:
                return None
        return done

    def finish(self, inputs: str, outputs: list[str]) -> Done:
        """Writes DONE. ``outputs`` are file names relative to the folder; their contents make the output digest."""
        digest = hashlib.sha256()
        sizes = {}
        for name in sorted(outputs):
            file = self.path / name
            with file.open("rb") as stream:
                digest.update(f"{name}\0{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
            sizes[name] = file.stat().st_size
        done = Done(inputs, digest.hexdigest(), sizes)
        write_json(self.path / "DONE", {"inputs": done.inputs, "outputs": done.outputs, "sizes": done.sizes})
        return done

    def set_aside(self) -> None:
        """Moves the outputs of former inputs to ``stale/<time>/``."""
        old = [entry for entry in self.path.iterdir() if entry.name not in KEPT] if self.path.is_dir() else []
        if not old:
            return
        target = self.path / "stale" / str(time.time_ns())
        target.mkdir(parents=True)
        (self.path / "DONE").unlink(missing_ok=True)
        for entry in old:
            if entry.exists():
                shutil.move(entry, target / entry.name)

    # progress

    def progress(self, done: int, total: int, note: str = "") -> None:
        """What ``proctor status`` and the runner show."""
        write_json(self.path / "progress.json", {"done": done, "total": total, "note": note, "time": time.time()})

    def read_progress(self) -> dict[str, Any]:
        try:
            value = json.loads((self.path / "progress.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    # parts

    def shard(self, index: int, count: int) -> StageFolder:
        """Where one part of the stage's work is done."""
        return StageFolder(self.path / "shards" / f"{index}-of-{count}")

    # lock

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Holds the stage for this process. StageBusy if a live process has it; a dead one's lock is taken over."""
        self.path.mkdir(parents=True, exist_ok=True)
        file = self.path / "LOCK"
        owner = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "start": process_start(os.getpid()),
            "job": os.environ.get("SLURM_JOB_ID"),
        }
        text = json.dumps(owner)
        # judging a lock dead and replacing it is one step: two processes must not both take it over
        with (self.path / "LOCK.guard").open("w") as guard:
            with contextlib.suppress(OSError):  # a file system without locks: the window is milliseconds
                fcntl.flock(guard, fcntl.LOCK_EX)
            holder = self.holder()
            if holder is not None:
                raise StageBusy(
                    f"{self.path.name} is being run by process {holder['pid']} on {holder['host']}; "
                    "wait for it, or end it and run again"
                )
            write_text(file, text)
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(HEARTBEAT_S):
                with contextlib.suppress(OSError):
                    os.utime(file)

        threading.Thread(target=beat, name="heartbeat", daemon=True).start()
        try:
            yield
        finally:
            stop.set()
            with contextlib.suppress(OSError):
                if file.read_text(encoding="utf-8") == text:
                    file.unlink()

    def holder(self) -> dict[str, Any] | None:
        """Who holds the lock and is alive: on this host judged by its process, elsewhere by its SLURM job, or where
        SLURM can't say, by its heartbeat."""
        file = self.path / "LOCK"
        try:
            owner: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            age = time.time() - file.stat().st_mtime
            host, pid, start = owner["host"], int(owner["pid"]), owner["start"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if host == socket.gethostname():
            return owner if start is not None and start == process_start(pid) else None
        job = owner.get("job")
        if job and job != os.environ.get("SLURM_JOB_ID"):  # this very job, restarted on another node, seems alive
            from slurm.submitter import alive

            known = alive(str(job))
            if known is not None:
                return owner if known else None
        return owner if age < STALE_S else None


def process_start(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot (None: no such process, or a zombie): tells a pid from its
    re-use."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else int(fields[19])
