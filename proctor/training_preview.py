"""What ``proctor check`` says of the training to come: processes, global batch, estimated memory, chat data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evaluation.items import Item
from proctor.experiment import Experiment
from proctor.stages.train import job_for
from training.config import TrainingConfig
from training.corpora import items_in_chat, read_chat
from training.memory import GIB, advice, estimate_for
from training.recipes import phases_of


def training_lines(experiment: Experiment, items: list[Item]) -> Iterator[str]:
    """Lines per trained candidate; a phase that is set as in a candidate before it is named only."""
    said: dict[str, str] = {}
    for name in experiment.in_training_order():
        job = job_for(experiment, name)
        origin = f", from {experiment.candidates[name].origin}" if experiment.candidates[name].origin else ""
        yield f"--- training {name}: {job.recipe}{origin}, {job.repeats} passes, {len(phases_of(job))} phase(s)"
        chat = read_chat(Path(job.chat), job.chat_rows, job.chat_skip)
        if found := items_in_chat(items, chat.rows):
            yield f"    warning: {len(found)} exam item(s) stand in {job.chat}, e.g. {found[0]}: it would see them"
        for phase, config in phases_of(job).items():
            key = config.model_dump_json()
            if key in said:
                yield f"    {phase}: as {said[key]}"
                continue
            said[key] = f"{phase} of {name}"
            for line in phase_lines(Path(job.base), config):
                yield f"    {phase}: {line}"


def phase_lines(base: Path, config: TrainingConfig) -> Iterator[str]:
    """Processes and batch, the estimate, and what to change where it exceeds ``device_memory``."""
    how = f"LoRA rank {config.lora.rank}" if config.method == "lora" else "full parameters"
    yield (
        f"{config.nodes} node(s) x {config.processes} process(es) = world size {config.world_size}; global batch "
        f"{config.rows_per_step} ({config.per_device_batch_size} x accumulation {config.gradient_accumulation}); "
        f"{how}, {config.dtype}, {config.deepspeed or 'no DeepSpeed'}"
    )
    needed = estimate_for(base, config)
    if config.device_memory is None:
        yield f"estimated {needed}"
    elif needed.total > config.device_memory * GIB:
        yield f"warning: more than the {config.device_memory:g} GiB of a device: {advice(config, needed)}"
    else:
        yield f"estimated {needed}, of {config.device_memory:g} GiB"
