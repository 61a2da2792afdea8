"""The site's profile: a YAML file that says what a cluster calls its resources and how its nodes are made ready."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

Word = Annotated[str, StringConstraints(pattern=r"^[^\s#\"'`$\\]+$")]
"""Something that stands in an ``#SBATCH`` line as it is."""
Time = Annotated[str, StringConstraints(pattern=r"^(\d+-\d+(:\d\d){0,2}|\d+(:\d\d){0,2})$")]
"""SLURM's notation: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]."""
Memory = Annotated[str, StringConstraints(pattern=r"^\d+[KMGT]?$")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StageResources(Strict):
    """What differs for some stages. Keys of ``stages`` are a stage's name, or its kind: exam, train, detect, prefilter,
    merge, report, or an exam's name."""

    partition: Word | None = None
    qos: Word | None = None
    time: Time | None = None
    cpus: int | None = Field(default=None, ge=1)
    memory: Memory | None = None
    constraint: Word | None = None


class Profile(Strict):
    """partition, account, qos, constraint: as sbatch takes them
    time: limit of a job; signal_seconds: how long before it a stage is asked to stop
    gpus_per_node, gpu_type, gpu_memory_gib: of the nodes (0: a partition of CPUs; jobs ask for no GPU)
    nodes: most nodes a job may span
    cpus, memory: of a job without GPUs; cpus_per_gpu, memory_per_gpu: of the others (memory is per node)
    modules: names for ``module load``; setup: lines of bash that make the environment ready
    python: the interpreter that has Proctor (None: the one that submits)
    container: words put before the command, e.g. [apptainer, exec, --nv, image.sif]; srun: further options of srun
    scratch: folder for temporary files; cache: folder for caches (Hugging Face, vLLM, Triton); may name variables of
        the node, e.g. $SLURM_TMPDIR
    environment: variables set in jobs; directives: further #SBATCH options, e.g. --exclusive
    max_requeues: how often an interrupted job goes back to the queue by itself
    serve_host: where jobs of served models listen: an address, or ``node`` (the node's own private one)
    share: others of the cluster may read run folders (else they have mode 0700)
    shards: exam stages that run as arrays, by stage or exam name; shards_at_once: of one array (None: all)
    device: kind of GPU as Proctor names it (``cuda:NVIDIA A100-SXM4-80GB``), where the login node has none
    """

    partition: Word | None = None
    account: Word | None = None
    qos: Word | None = None
    constraint: Word | None = None
    time: Time = "24:00:00"
    signal_seconds: int = Field(default=120, ge=1, le=65535)
    gpus_per_node: int = Field(default=1, ge=0)
    gpu_type: Word | None = None
    gpu_memory_gib: float | None = Field(default=None, gt=0)
    nodes: int = Field(default=1, ge=1)
    cpus: int = Field(default=4, ge=1)
    memory: Memory | None = None
    cpus_per_gpu: int = Field(default=8, ge=1)
    memory_per_gpu: Memory | None = None
    modules: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    python: str | None = None
    container: tuple[str, ...] = ()
    srun: tuple[str, ...] = ()
    scratch: str | None = None
    cache: str | None = None
    environment: dict[str, str] = Field(default_factory=dict)
    directives: tuple[str, ...] = ()
    serve_host: Word = "node"
    share: bool = False
    max_requeues: int = Field(default=3, ge=0)
    shards: dict[str, int] = Field(default_factory=dict)
    shards_at_once: int | None = Field(default=None, ge=1)
    device: str | None = None
    stages: dict[str, StageResources] = Field(default_factory=dict)

    @field_validator("directives")
    @classmethod
    def _options(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for line in value:
            if not line.startswith("-") or "\n" in line:
                raise ValueError(f"{line!r} is not an option of sbatch; write e.g. --exclusive")
        return value

    @field_validator("shards")
    @classmethod
    def _counts(cls, value: dict[str, int]) -> dict[str, int]:
        for name, count in value.items():
            if not 2 <= count <= 1000:
                raise ValueError(f"{name}: {count}; an array has 2 to 1000 shards")
        return value

    def resources(self, name: str, kind: str) -> StageResources:
        """What ``stages`` says: a stage's own entry before that of its kind."""
        own = self.stages.get(name, StageResources()).model_dump(exclude_none=True)
        return StageResources(**{**self.stages.get(kind, StageResources()).model_dump(exclude_none=True), **own})


def read_profile(path: Path) -> Profile:
    """ValueError names the file, the key, and what would be right."""
    import yaml

    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"profile {path} does not exist; slurm/profiles/ of Proctor has examples") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"profile {path} can't be read: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"profile {path} must hold keys (partition: ..., time: ...), e.g. as in slurm/profiles/")
    try:
        return Profile.model_validate(value)
    except ValidationError as error:
        raise ValueError("\n".join(_explain(path, fault) for fault in error.errors(include_url=False))) from None


def _explain(path: Path, fault: Any) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        known = list(StageResources.model_fields if key.startswith("stages.") else Profile.model_fields)
        close = difflib.get_close_matches(str(fault["loc"][-1]), known, n=1, cutoff=0.5)
        return f"{path}: unknown key {key!r}; " + (
            f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(sorted(known))}"
        )
    hint = ""
    if key.endswith("time"):
        hint = ' (hours:minutes:seconds or days-hours, in quotes: "24:00:00")'
    elif "memory" in key and "gib" not in key:
        hint = ' (e.g. "64G")'
    return f"{path}: {key}: {fault['msg'].removeprefix('Value error, ')}{hint} (given: {fault['input']!r})"
