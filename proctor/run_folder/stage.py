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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.run_folder.lock import StageBusy as StageBusy
from proctor.run_folder.lock import find_holder, hold
from serving.files import write_json

KEPT = {"LOCK", "LOCK.guard", "log.txt", "stale", "progress.json", "INPUTS", "shards"}


@dataclass(frozen=True)
class Done:
    """What DONE says: digests of inputs and outputs, and size and SHA-256 of every output file.

    hashes: none in what an earlier version finished, which has the digest of all of them only
    """

    inputs: str
    outputs: str
    sizes: dict[str, int]
    hashes: dict[str, str] = field(default_factory=dict)


class StageFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    # markers

    def done(self) -> Done | None:
        """The marker, if the stage finished and its files are all there, of the size they had."""
        try:
            row = json.loads((self.path / "DONE").read_text(encoding="utf-8"))
            done = Done(str(row["inputs"]), str(row["outputs"]), dict(row["sizes"]), dict(row.get("hashes", {})))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        for name, size in done.sizes.items():
            file = self.path / name
            if not file.is_file() or file.stat().st_size != size:
                return None
        return done

    def finish(self, inputs: str, outputs: list[str]) -> Done:
        """Writes DONE. ``outputs`` are file names relative to the folder; their contents make the output digest."""
        sizes = {name: (self.path / name).stat().st_size for name in sorted(outputs)}
        hashes = {name: _sha256(self.path / name) for name in sizes}
        done = Done(inputs, _digest(hashes), sizes, hashes)
        row = {"inputs": done.inputs, "outputs": done.outputs, "sizes": done.sizes, "hashes": done.hashes}
        write_json(self.path / "DONE", row)
        return done

    def damaged(self) -> list[str]:
        """Output files of a finished stage whose content is not what it was, though their size is.

        Reads them all: some 0.7 s per GB. Of a stage without hashes per file: all of its files."""
        done = self.done()
        if done is None:
            return []
        found = {name: _sha256(self.path / name) for name in done.sizes}
        if _digest(found) == done.outputs:
            return []
        return [name for name, value in found.items() if done.hashes.get(name) != value]

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


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest(hashes: dict[str, str]) -> str:
    """One digest of all outputs, by name and content."""
    lines = (f"{name}\0{value}\n" for name, value in sorted(hashes.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
