"""Stage ``group.<group>``: several candidates are examined together."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from evaluation.exam_set import FrozenExam
from evaluation.items import Item
from evaluation.protocol import GroupProtocol
from evaluation.run_exam import Report, draw_group, examine, merge
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import others, protocol_for
from proctor.run_folder.run import RunFolder
from proctor.stages.base import Shards, Stage, gpus_of
from serving.model.fingerprint import model_identity, served_as


def name_for(group: str) -> str:
    return f"group.{group}"


def stage(experiment: Experiment, group: str) -> Stage:
    config = experiment.groups[group]
    protocol = protocol_for(experiment, group)
    members = experiment.members(group)
    specs = {name: experiment.spec(name, Path("trained")) for name in members}
    trained = [name for name in members if experiment.candidates[name].recipe is not None]
    models = {name: spec for name, spec in specs.items() if name not in trained}
    models |= others(experiment, group, protocol)
    items = [] if protocol.assignments() is not None else [experiment.items_stage(group)]
    return Stage(
        name=name_for(group),
        needs=(*items, *(f"train.{name}" for name in trained)),
        version=protocol.version,
        config={
            "group": config.inputs(),
            "candidates": list(members),
            "mode": experiment.mode,
            "seed": experiment.seed,
            "serve": {name: served_as(spec) for name, spec in specs.items()},
            "models": {role: model_identity(model) for role, model in models.items()},
            "prompts": protocol.prompt_hashes(),
            "max_failure_rate": experiment.max_failure_rate,
        },
        body=lambda run, folder, report: _examine(run, folder, report, group),
        gpus=gpus_of((*specs.values(), *models.values())),
        shards=Shards(
            part=lambda run, folder, report, index, count: _examine(run, folder, report, group, (index, count)),
            merge=lambda run, folder, parts: _merge(run, folder, parts, group),
        ),
    )


class Held(NamedTuple):
    protocol: GroupProtocol
    items: list[Item]
    frozen: FrozenExam


def _held(run: RunFolder, group: str) -> Held:
    config = run.experiment.groups[group]
    protocol = protocol_for(run.experiment, group)
    own = protocol.assignments()
    if own is not None:
        return Held(protocol, own, FrozenExam(own, frozenset(), [], halved=False))
    frozen = run.items(group)
    return Held(protocol, frozen.part(config.items, config.limit), frozen)


def _examine(
    run: RunFolder, folder: Path, report: Report, group: str, shard: tuple[int, int] | None = None
) -> list[str]:
    experiment = run.experiment
    held = _held(run, group)
    members = experiment.members(group)
    metrics = examine(
        held.protocol,
        held.items,
        models={
            **{name: experiment.spec(name, run.candidate_model(name)) for name in members},
            **others(experiment, group, held.protocol),
        },
        mode=experiment.schedule,
        folder=folder,
        ledger_folder=run.ledger(name_for(group)),
        wave=experiment.groups[group].wave,
        report=report,
        extra=lambda item: {"half": held.frozen.half(item.id)},
        max_failure_rate=experiment.max_failure_rate,
        shard=shard,
    )
    return ["records.jsonl"] if shard is not None else _concluded(held.protocol, metrics, folder)


def _merge(run: RunFolder, folder: Path, parts: list[Path], group: str) -> list[str]:
    experiment = run.experiment
    held = _held(run, group)
    metrics = merge(
        held.protocol,
        held.items,
        parts,
        mode=experiment.schedule,
        folder=folder,
        max_failure_rate=experiment.max_failure_rate,
    )
    return _concluded(held.protocol, metrics, folder)


def _concluded(protocol: GroupProtocol, metrics: dict[str, Any], folder: Path) -> list[str]:
    drawn = draw_group(protocol, metrics, folder / "figures")
    return ["records.jsonl", "metrics.json", *(f"figures/{name}" for name in drawn)]
