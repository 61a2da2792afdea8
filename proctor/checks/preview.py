"""What would be asked: stages, models, one rendered item per benchmark and mode, per exam the first item's demand."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from evaluation import registry as protocols
from evaluation.benchmarks import Benchmark
from evaluation.benchmarks.chosen import BenchmarkConfig
from evaluation.items import Item
from evaluation.static import StaticOptions
from proctor.checks.experiment import Checked
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import protocol_for
from proctor.stages.train import job_for
from serving.records import Ask, Demand, Prompt
from training.config import TrainingConfig
from training.corpora import items_in_chat, read_chat
from training.memory import GIB, advice, estimate_for
from training.recipes import phases_of

SHOWN_SUBJECTS = 12
SHOWN_CHARACTERS = 8_000


def preview(experiment: Experiment, checked: Checked) -> Iterator[str]:
    exam = checked.exam
    yield f"experiment {experiment.name}: seed {experiment.seed}, mode {experiment.mode}"
    for name, spec in experiment.models.items():
        yield f"model {name}: {spec.path} ({spec.engine}, {spec.dtype}, tensor parallel {spec.tensor_parallel})"
    yield f"exam: {len(exam.items)} items, {len(exam.leaked)} leak"
    yield from _benchmark(experiment.benchmark, exam.items, exam.exemplars, exam.notes)
    for name, config in experiment.exams.items():
        own = checked.items.get(name)
        if own is None:
            yield f"--- exam {name} ({config.protocol}): the items that stage build.{config.build} will write"
            continue
        if config.benchmark is not None:
            yield from _benchmark(config.benchmark, own.items, own.exemplars, own.notes)
        items = own.part(config.items, config.limit)
        sitting = len(experiment.candidates if config.candidates is None else config.candidates)
        known = ", those that the evaluator knows" if config.prefilter else ""
        yield f"--- exam {name} ({config.protocol}): {len(items)} items{known} x {sitting} candidates; the first asks:"
        yield from _first_demand(config.protocol, config.options, items, own.exemplars, experiment.seed)
    yield from _groups(experiment, checked)
    yield from training_lines(experiment, exam.items)
    yield f"--- {len(checked.stages)} stages: {', '.join(stage.name for stage in checked.stages)}"


def _groups(experiment: Experiment, checked: Checked) -> Iterator[str]:
    for name, config in experiment.groups.items():
        protocol = protocol_for(experiment, name)
        members = ", ".join(experiment.members(name))
        own = checked.items.get(name)
        if config.build is not None:
            about = f"the items that stage build.{config.build} will write"
        elif own is None:
            about = f"{len(protocol.assignments() or ())} sets of questions of their own"
        else:
            about = f"{len(own.part(config.items, config.limit))} items"
            if config.benchmark is not None:
                yield from _benchmark(config.benchmark, own.items, own.exemplars, own.notes)
        yield f"--- group {name} ({config.protocol}): {about}, {members} together"


def preview_benchmark(
    config: BenchmarkConfig, found: Benchmark, pool: Sequence[Item], notes: Sequence[str] = ()
) -> Iterator[str]:
    """A benchmark alone. notes: what else is to be said of it."""
    yield from _benchmark(config, found.items, pool, (*found.notes(), *notes))


def _benchmark(
    config: BenchmarkConfig, items: Sequence[Item], pool: Sequence[Item], notes: Sequence[str]
) -> Iterator[str]:
    """Counts, what is amiss, and the first item in every mode and text format of the static exam that can ask it."""
    where = f" ({config.path})" if config.path else ""
    yield f"=== benchmark {config.format}{where}: {len(items)} items, {len(pool)} exemplars"
    subjects = Counter(item.subject for item in items)
    if any(subjects):
        shown = ", ".join(f"{name} {n}" for name, n in sorted(subjects.items())[:SHOWN_SUBJECTS])
        more = f" and {len(subjects) - SHOWN_SUBJECTS} more" if len(subjects) > SHOWN_SUBJECTS else ""
        yield f"{len(subjects)} subjects: {shown}{more}"
    for note in notes:
        yield f"note: {note}"
    first = items[0]
    source = f", publisher's id {first.source_id}" if first.source_id else ""
    yield f"first item: id {first.id}, key {shortened(first.answer)!r}{source}"
    if not first.answer.strip():  # without a key: for a judge
        yield f"--- {config.format}, protocol mt_bench:"
        yield from _first_demand("mt_bench", {}, [first], pool, 0)
        for turn in first.followups:
            yield f"    then: {shortened(turn)}"
        return
    modes = get_args(StaticOptions.model_fields["mode"].annotation)
    for mode, text_format in itertools.product(modes, ("plain", "chat")):
        yield f"--- {config.format}, mode {mode}, {text_format}:"
        try:
            yield from _first_demand("static", {"mode": mode, "text_format": text_format}, [first], pool, 0)
        except ValueError as error:
            yield f"    can't be asked so: {error}"


def _first_demand(
    protocol: str, options: dict[str, Any], items: Sequence[Item], pool: Sequence[Item], seed: int
) -> Iterator[str]:
    exam: Any = protocols.build(protocol, options, seed=seed, exemplars=pool)
    dialogue = next(iter(exam.dialogues(items[:1])))
    first = next(dialogue)
    demands: list[Demand] = list(first) if isinstance(first, list | tuple) else [first]
    for line in shortened(_text(demands[0].prompt)).splitlines():
        yield f"    {line}"
    if isinstance(demands[0], Ask):
        yield f"    -> {demands[0].role} generates up to {demands[0].sampling.max_tokens} tokens"
    else:
        continuations = [demand.continuation for demand in demands if not isinstance(demand, Ask)]
        yield f"    -> {demands[0].role} scores the continuations {shortened(str(continuations))}"
    dialogue.close()


def shortened(text: str) -> str:
    """The beginning of a long text, and how much more there is: a question may have 200 MB."""
    more = len(text) - SHOWN_CHARACTERS
    return text if more <= 0 else f"{text[:SHOWN_CHARACTERS]}\n[... {more:,} more characters]"


def _text(prompt: Prompt) -> str:
    return prompt if isinstance(prompt, str) else "\n".join(f"<{m.role}> {m.content}" for m in prompt)


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
