"""What a stage is, and the digest of its inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.run_exam import Report
from proctor.run_folder.run import RunFolder
from serving.model.spec import ModelSpec


@dataclass(frozen=True)
class Shards:
    """A stage's work in parts that together give its outputs, byte for byte.

    part: does part ``index`` of ``count`` in a folder of its own and returns the names of its output files
    merge: makes the stage's outputs from all parts' folders, in order
    """

    part: Callable[[RunFolder, Path, Report, int, int], list[str]]
    merge: Callable[[RunFolder, Path, list[Path]], list[str]]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """needs: stages whose outputs it reads
    version: raised when its code changes what it computes
    config: its slice of the experiment, prompt hashes and the fingerprints of models it did not train
    body: does the work in the stage's folder and returns the names of its output files
    owns: folders outside the stage's own that are its outputs too (moved to stale/ with it)
    intact: whether what it owns is still as it was when DONE was written
    gpus: how many its models need, on each node where it takes several
    nodes: how many its training takes
    shards: its body in parts, where it can be split
    """

    name: str
    needs: tuple[str, ...]
    version: int
    config: dict[str, Any]
    body: Callable[[RunFolder, Path, Report], list[str]]
    owns: tuple[str, ...] = ()
    intact: Callable[[RunFolder], bool] = lambda run: True
    gpus: int = field(default=0)
    nodes: int = field(default=1)
    shards: Shards | None = None

    def digest(self, outputs_of: dict[str, str]) -> str:
        """SHA-256 of name, version, config and the digests of the outputs it reads."""
        value = {
            "name": self.name,
            "version": self.version,
            "config": self.config,
            "needs": {need: outputs_of[need] for need in self.needs},
        }
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def gpus_of(models: Iterable[ModelSpec]) -> int:
    """GPUs of the largest model; one that is served elsewhere needs none here."""
    return max((m.tensor_parallel * m.pipeline_parallel for m in models if m.engine != "server"), default=0)
