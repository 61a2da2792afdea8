"""What is asked of the cluster: one command, its resources, and the jobs it comes after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Spread = Literal["first", "every", "ray"]
"""Where the command runs: on the first node, on every node at once (torchrun), or on the first with a Ray cluster
over all of them (an engine whose model spans nodes)."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """name: unique among the jobs of a run; also the stem of its script
    kind: what the profile's ``stages`` may set resources for, besides the name itself
    command: argument list; an array's tasks get ``--shard INDEX/SHARDS`` appended
    log: file that output is appended to (``%a`` stands for an array's index)
    gpus: per node
    needs: names of jobs that must have ended well
    servers: names of jobs that must have started: what they serve is asked
    shards: tasks of an array; 0 for a plain job
    """

    name: str
    kind: str
    command: tuple[str, ...]
    log: Path
    nodes: int = 1
    gpus: int = 0
    needs: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    shards: int = 0
    spread: Spread = "first"
    environment: Mapping[str, str] = field(default_factory=dict)
