"""What an experiment would do: stages, models, one rendered item per exam, and an upper bound of its cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaluation import protocols
from proctor.experiment import Experiment
from proctor.frozen import FrozenExam
from proctor.stages.base import Stage
from serving.records import Ask, Demand, Prompt


def preview(experiment: Experiment, exam: FrozenExam, stages: list[Stage]) -> Iterator[str]:
    yield f"experiment {experiment.name}: seed {experiment.seed}, mode {experiment.mode}"
    yield f"exam: {len(exam.items)} items, {len(exam.leaked)} leak; {len(exam.exemplars)} exemplars"
    for name, spec in experiment.models.items():
        yield f"model {name}: {spec.path} ({spec.engine}, {spec.dtype}, tensor parallel {spec.tensor_parallel})"
    for note in exam.notes:
        yield f"note: {note}"
    for name, config in experiment.exams.items():
        protocol: Any = protocols.build(config.protocol, config.options, seed=experiment.seed, exemplars=exam.exemplars)
        items = exam.part(config.items, config.limit)
        sitting = len(experiment.candidates if config.candidates is None else config.candidates)
        yield f"--- exam {name} ({config.protocol}): {len(items)} items x {sitting} candidates; the first item asks:"
        dialogue = next(iter(protocol.dialogues(items[:1])))
        first = next(dialogue)
        demands: list[Demand] = list(first) if isinstance(first, list | tuple) else [first]
        yield from _shown(demands)
        dialogue.close()
    yield f"--- {len(stages)} stages: {', '.join(stage.name for stage in stages)}"


def _shown(demands: list[Demand]) -> Iterator[str]:
    first = demands[0]
    for line in _text(first.prompt).splitlines():
        yield f"    {line}"
    if isinstance(first, Ask):
        yield f"    -> {first.role} generates up to {first.sampling.max_tokens} tokens"
    else:
        continuations = [demand.continuation for demand in demands if not isinstance(demand, Ask)]
        yield f"    -> {first.role} scores the continuations {continuations}"


def _text(prompt: Prompt) -> str:
    return prompt if isinstance(prompt, str) else "\n".join(f"<{m.role}> {m.content}" for m in prompt)
