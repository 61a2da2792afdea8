"""A stage's folder: its lock, its progress, its outputs and the DONE marker that is written last.

    stages/<stage>/{records.jsonl, metrics.json, log.txt, progress.json, LOCK, DONE}

A stage may be killed at any moment: without DONE nothing in the folder counts, and the next run does the stage again
(its models' answers come from the ledger). When the inputs of a finished stage change, its outputs move to ``stale/``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.run_folder.lock import StageBusy as StageBusy
from proctor.run_folder.lock import find_holder, hold
from serving.files import write_json

KEPT = {"LOCK", "LOCK.guard", "log.txt", "stale", "progress.json", "INPUTS", "shards"}


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

    def lock(self) -> AbstractContextManager[None]:
        """Holds the stage for this process. StageBusy if a live process has it; a dead one's lock is taken over."""
        return hold(self.path)

    def holder(self) -> dict[str, Any] | None:
        """Who holds the lock and is alive."""
        return find_holder(self.path)
