"""One builder on its seeds: what a build stage and ``proctor build`` both do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation import registry
from evaluation.analysis import Experiment
from evaluation.exam_set import FrozenExam, write_exam
from evaluation.items import Item
from evaluation.protocol import ExamBuilder
from evaluation.run_exam import Report, converse
from serving.files import write_json, write_jsonl
from serving.model.spec import ModelSpec
from serving.role_engines import Mode
from serving.scheduler import wave_size


def build_exam(
    builder: ExamBuilder,
    seeds: FrozenExam,
    items: Sequence[Item],
    *,
    models: Mapping[str, ModelSpec],
    mode: Mode,
    folder: Path,
    ledger_folder: Path,
    wave: int | None,
    report: Report,
) -> list[str]:
    """Writes the exam (items.jsonl, as a frozen exam), its other sets (``sets/<name>/``), records.jsonl, metrics.json
    and usage.json into ``folder``; returns the names of the files that are the stage's output.

    seeds: the exam that ``items`` are of: a built item is in the half of its seed, and the exemplars are the seeds'
    RuntimeError if the exam comes out empty (the records are written all the same, for whoever looks into it)
    """
    dialogues = list(builder.dialogues(items))
    records = converse(
        dialogues,
        models=models,
        mode=mode,
        folder=folder,
        ledger_folder=ledger_folder,
        wave=wave or wave_size(len(dialogues), min(spec.max_num_seqs for spec in models.values()), single_step=False),
        report=report,
        doing="building",
    )
    write_jsonl(folder / "records.jsonl", records)
    built = builder.finish(items, records)
    write_json(folder / "metrics.json", {"schedule": mode, "items": len(built.items), **built.summary})
    if not built.items:
        raise RuntimeError(
            f"builder {builder.name} made no item of {len(dialogues)} tries; read {folder / 'records.jsonl'}, then "
            "take a stronger model or loosen the options"
        )
    names = ["records.jsonl", "metrics.json", *write_exam(_frozen(built.items, seeds), folder)]
    for name, others in built.sets.items():
        place = folder / "sets" / name
        place.mkdir(parents=True, exist_ok=True)
        names += [f"sets/{name}/{file}" for file in write_exam(_frozen(others, seeds), place)]
    return names


def check_weights(builder: ExamBuilder, models: Mapping[str, ModelSpec]) -> None:
    """ValueError if one model plays two roles that a builder wants played by different weights
    (``different_weights``, pairs of roles; few builders have it)."""
    pairs: Sequence[tuple[str, str]] = getattr(builder, "different_weights", ())
    for one, other in pairs:
        first, second = (_weights(models[role]) for role in (one, other))
        if first is not None and first == second:
            raise ValueError(
                f"builder {builder.name}: {one} and {other} have the same weights, and a model's second opinion on its "
                f"own is worth little; give {other} another model, or allow it (option same_checkers: true)"
            )


def _weights(spec: ModelSpec) -> tuple[Any, Any] | None:
    """What makes a model another one, however it is served; None for a scripted one."""
    from serving.model.fingerprint import model_identity

    identity = model_identity(spec)
    return None if "weights" not in identity else (identity["weights"], identity["adapter"])


def _frozen(items: Sequence[Item], seeds: FrozenExam) -> FrozenExam:
    assert len({item.id for item in items}) == len(items), "a builder gives every item its own id"
    known = {item.id for item in seeds.items}
    halved = seeds.halved and all(item.source_id in known for item in items)
    leaked = frozenset(item.id for item in items if halved and item.source_id in seeds.leaked)
    return FrozenExam(list(items), leaked, seeds.exemplars, halved=halved)


def describe(metrics: Mapping[str, Any]) -> list[str]:
    """The plain figures of a summary, a line each."""
    return [f"  {key}: {value}" for key, value in metrics.items() if not isinstance(value, dict | list)]


def authors(experiment: Experiment, exam: str) -> list[str]:
    """The candidates that sit an exam which they wrote themselves: theirs is the model that plays the builder's first
    role, which writes. Fine-tuned copies of it are other models."""
    config = experiment.sitting(exam)
    if config.build is None:
        return []
    build = experiment.builds[config.build]
    writer = registry.build_builder(build.builder, build.options, seed=experiment.seed).roles[0]
    model = {**experiment.roles, **build.roles}.get(writer)
    sitting = config.candidates or tuple(experiment.candidates)
    return [name for name in sitting if model is not None and experiment.candidates[name].model == model]
