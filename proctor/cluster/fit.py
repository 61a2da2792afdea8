"""What can be known to go wrong on the cluster before anything is queued: memory, the nodes' environment, disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from proctor.cluster.submit import placement
from proctor.experiment.experiment import Experiment
from proctor.stages.base import Stage
from serving.model.fingerprint import resolve_model
from serving.model.spec import ModelSpec
from slurm.profile import Profile

GIB = 2**30
RUNTIME_GIB = 3.0
"""What CUDA, the framework and CUDA graphs take beside weights and cache on each GPU."""
ENVIRONMENT_TIMEOUT_S = 300


def check_fit(experiment: Experiment, profile: Profile) -> list[str]:
    """Notes about GPU memory. ValueError for a model or a training that can't fit into ``gpu_memory_gib``."""
    memory = profile.gpu_memory_gib
    if memory is None or not profile.gpus_per_node:
        return []
    used = dict.fromkeys([experiment.base, *experiment.roles.values()])
    used |= dict.fromkeys(c.model for c in experiment.candidates.values() if c.model is not None)
    notes = []
    for name in used:
        spec = experiment.models[name]
        if spec.engine != "scripted":
            notes += _check_model(name, spec, resolve_model(spec), memory)
    for candidate in [name for name, c in experiment.candidates.items() if c.recipe is not None]:
        _check_training(experiment, candidate, memory)
    return notes


def _check_model(name: str, spec: ModelSpec, folder: Path, memory: float) -> list[str]:
    devices = spec.tensor_parallel * spec.pipeline_parallel
    weights = weight_bytes(folder, spec) / devices / GIB
    share = spec.memory_share * memory
    length = spec.max_length or 2048
    cache = cache_bytes(folder) / devices / GIB
    needed = weights + cache * length + RUNTIME_GIB
    if needed > share:
        raise ValueError(
            f"models.{name}: weights of {weights:.1f} GiB per GPU, {cache * length:.1f} GiB of cache for one "
            f"sequence of {length} tokens and {RUNTIME_GIB:g} GiB of runtime are more than memory_share "
            f"{spec.memory_share:g} of {memory:g} GiB; raise tensor_parallel or memory_share, or lower max_length"
        )
    room = int((share - weights - RUNTIME_GIB) / cache) if cache else 0
    if cache and room < spec.max_num_seqs * length:
        return [
            f"models.{name}: the cache holds about {room} tokens, {room // length} sequences of {length}; of "
            f"max_num_seqs {spec.max_num_seqs} some will wait when all are long"
        ]
    return []


def weight_bytes(folder: Path, spec: ModelSpec) -> float:
    """Bytes of the weights as they are served: the files', in the spec's dtype."""
    pattern = "*.safetensors" if any(folder.glob("*.safetensors")) else "*.bin"
    stored = sum(file.stat().st_size for file in folder.glob(pattern))
    if spec.quantization is not None or spec.dtype == "auto":
        return stored
    config = _config(folder)
    own = str(config.get("dtype") or config.get("torch_dtype") or "float32").removeprefix("torch.")
    width = {"float32": 4, "bfloat16": 2, "float16": 2}
    return stored * width[spec.dtype] / width.get(own, width[spec.dtype])


def cache_bytes(folder: Path) -> float:
    """Bytes of keys and values of one token in all layers, in 16 bit; 0 where the configuration does not say."""
    config = _config(folder)
    config = config.get("text_config", config)
    try:
        heads = int(config["num_attention_heads"])
        size = int(config.get("head_dim") or config["hidden_size"] // heads)
        return 2 * int(config["num_hidden_layers"]) * int(config.get("num_key_value_heads") or heads) * size * 2
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return 0.0


def _config(folder: Path) -> dict[str, Any]:
    try:
        value = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _check_training(experiment: Experiment, candidate: str, memory: float) -> None:
    from proctor.stages.train import job_for
    from training.memory import advice, estimate_for

    job = job_for(experiment, candidate)
    for config in (job.leak, job.chat_sft):
        needed = estimate_for(Path(job.base), config)
        if needed.total / GIB > memory:
            raise ValueError(f"candidate {candidate}, GPUs of {memory:g} GiB: {advice(config, needed)}")


def check_environment(profile: Profile, stages: Iterable[Stage]) -> None:
    """Runs the profile's set-up as a job would and imports Proctor. ValueError with what bash or Python said.

    Modules that only compute nodes have can't be told from missing ones: a profile with a container is not tried."""
    if profile.container:
        return
    wanted = ["proctor.cli"]
    if any(placement(stage, profile)[2] == "ray" for stage in stages):
        wanted.append("ray")
    lines = ["set -e", *(f"module load {_quoted(name)}" for name in profile.modules), *profile.setup]
    python = _quoted(profile.python or sys.executable)
    lines.append(f"exec {python} -P -c {_quoted('import ' + ', '.join(wanted))}")
    try:
        done = subprocess.run(  # noqa: S603 - the user's own set-up lines, as in the job's script
            ["/bin/bash", "-lc", "\n".join(lines)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ENVIRONMENT_TIMEOUT_S,
            env={**os.environ, **profile.environment},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ValueError(f"profile: modules and setup did not end within {ENVIRONMENT_TIMEOUT_S} s") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise ValueError(
            f"profile: with its modules and setup, {python} can't import {' and '.join(wanted)}: {said}; "
            "mend modules, setup or python (docs/slurm.md shows how to make the environment)"
        )


def check_space(folder: Path, experiment: Experiment) -> None:
    """ValueError if the disk of the run folder can't hold the trained candidates: weights, and while one is trained
    two checkpoints with optimiser state."""
    trained = [name for name, c in experiment.candidates.items() if c.recipe is not None]
    if not trained:
        return
    spec = experiment.models[experiment.base]
    if spec.engine == "scripted":
        return
    weights = weight_bytes(resolve_model(spec), spec)
    needed = weights * len(trained) + weights * 8 * 2
    place = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if free < needed:
        raise ValueError(
            f"{place} has {free / GIB:.0f} GiB free, and {len(trained)} trained candidates with two checkpoints may "
            f"take {needed / GIB:.0f} GiB; choose another --out"
        )


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
