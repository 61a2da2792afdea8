"""Stage ``group.<group>``: several candidates are examined together."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from evaluation import protocols
from evaluation.items import Item
from evaluation.protocols.base import GroupProtocol
from proctor.examining import Report, examine, merge
from proctor.experiment import Experiment
from proctor.frozen import FrozenExam
from proctor.runfolder import RunFolder
from proctor.stages import freeze
from proctor.stages.base import Shards, Stage, gpus_of
from serving.fingerprint import model_identity, served_as
from serving.models import ModelSpec

OF_ITEMS = ("items", "limit", "benchmark", "build", "set")
"""Keys that a group which makes its own items has no use for."""


def name_for(group: str) -> str:
    return f"group.{group}"


def protocol_for(experiment: Experiment, group: str) -> GroupProtocol:
    """The protocol, made for the group's candidates. ValueError begins with where the fault is."""
    config = experiment.groups[group]
    try:
        made = protocols.build_group(
            config.protocol, config.options, candidates=experiment.members(group), seed=experiment.seed
        )
        given = [key for key in OF_ITEMS if key in config.model_fields_set and getattr(config, key) != _default(key)]
        if given and made.assignments() is not None:
            raise ValueError(f"{config.protocol} makes its own questions; leave {given[0]!r} out")
    except ValueError as error:
        raise ValueError(f"groups.{group}: {error}") from error
    return made


def _default(key: str) -> Any:
    from proctor.experiment_sections import GroupConfig

    return GroupConfig.model_fields[key].default


def others(experiment: Experiment, group: str, protocol: GroupProtocol) -> dict[str, ModelSpec]:
    """Who takes part besides the candidates, by role. ValueError for a role nobody plays."""
    members = experiment.members(group)
    try:
        return experiment.role_specs([role for role in protocol.roles if role not in members])
    except ValueError as error:
        raise ValueError(f"groups.{group}: {error}") from error


def stage(experiment: Experiment, group: str) -> Stage:
    config = experiment.groups[group]
    protocol = protocol_for(experiment, group)
    members = experiment.members(group)
    specs = {name: experiment.spec(name, Path("trained")) for name in members}
    trained = [name for name in members if experiment.candidates[name].recipe is not None]
    models = {name: spec for name, spec in specs.items() if name not in trained}
    models |= others(experiment, group, protocol)
    items = [] if protocol.assignments() is not None else [freeze.name_for(experiment, group)]
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
    frozen = freeze.read_items(run, group)
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
    from proctor.report.examiner_figures import draw_figures

    drawn = draw_figures(protocol.name, metrics, folder / "figures")
    return ["records.jsonl", "metrics.json", *(f"figures/{name}" for name in drawn)]
