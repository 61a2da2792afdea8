"""Stages ``<exam>.<candidate>`` and ``group.<group>``: a candidate sits an exam, or several are examined together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from evaluation import registry as protocols
from evaluation.exam_set import FrozenExam
from evaluation.items import Item
from evaluation.protocol import ExamProtocol, GroupProtocol
from evaluation.run_exam import Report, draw_group, examine, merge
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import others, protocol_for
from proctor.run_folder.run import RunFolder
from proctor.stages import prefilter
from proctor.stages.base import Shards, Stage, gpus_of
from serving.model.fingerprint import model_identity, served_as
from serving.model.spec import ModelSpec


class ExamInputs(NamedTuple):
    """What is held: a protocol on items. roles: who else takes part, and by what model; wave: dialogues at a time."""

    protocol: ExamProtocol | GroupProtocol
    items: list[Item]
    frozen: FrozenExam
    roles: Mapping[str, ModelSpec]
    wave: int | None


Inputs = Callable[[RunFolder], ExamInputs]


def stage(experiment: Experiment, exam: str, candidate: str) -> Stage:
    """One candidate sits one exam."""
    config = experiment.exams[exam]
    protocol = protocols.build(config.protocol, config.options, seed=experiment.seed)
    spec = experiment.spec(candidate, Path("trained"))

    def inputs(run: RunFolder) -> ExamInputs:
        frozen = run.items(exam)
        if config.prefilter:
            frozen = frozen.kept(prefilter.read_ids(run, exam))
        held = protocols.build(config.protocol, config.options, seed=experiment.seed, exemplars=frozen.exemplars)
        items = list(frozen.part(config.items, config.limit))
        return ExamInputs(held, items, frozen, experiment.role_specs(held.roles[1:]), config.wave)

    return _stage(
        experiment,
        f"{exam}.{candidate}",
        protocol,
        inputs,
        {"candidate": candidate},
        roles=experiment.role_specs(protocol.roles[1:]),
        items=[experiment.items_stage(exam)],
        after=[prefilter.name_for(exam)] if config.prefilter else [],
        head={"exam": config.inputs()},
        serve=served_as(spec),
    )


def group_name(group: str) -> str:
    """The name of a group's stage."""
    return f"group.{group}"


def group_stage(experiment: Experiment, group: str) -> Stage:
    """Several candidates are examined together."""
    config = experiment.groups[group]
    protocol = protocol_for(experiment, group)
    members = experiment.members(group)

    def inputs(run: RunFolder) -> ExamInputs:
        held = protocol_for(run.experiment, group)
        roles = others(run.experiment, group, held)
        own = held.assignments()
        if own is not None:
            return ExamInputs(held, own, FrozenExam(own, frozenset(), [], halved=False), roles, config.wave)
        frozen = run.items(group)
        return ExamInputs(held, frozen.part(config.items, config.limit), frozen, roles, config.wave)

    return _stage(
        experiment,
        group_name(group),
        protocol,
        inputs,
        {name: name for name in members},
        roles=others(experiment, group, protocol),
        items=[] if protocol.assignments() is not None else [experiment.items_stage(group)],
        after=[],
        head={"group": config.inputs(), "candidates": list(members)},
        serve={name: served_as(experiment.spec(name, Path("trained"))) for name in members},
    )


def _stage(
    experiment: Experiment,
    name: str,
    protocol: ExamProtocol | GroupProtocol,
    inputs: Inputs,
    members: Mapping[str, str],
    *,
    roles: Mapping[str, ModelSpec],
    items: Sequence[str],
    after: Sequence[str],
    head: Mapping[str, Any],
    serve: Any,
) -> Stage:
    """members: the candidates by role; roles: the other roles' models; head, serve: what identifies the exam alone"""
    trained = [who for who in members.values() if experiment.candidates[who].recipe is not None]
    specs = {role: experiment.spec(who, Path("trained")) for role, who in members.items()}
    models = {role: spec for role, spec in specs.items() if members[role] not in trained} | dict(roles)

    def hold(run: RunFolder, folder: Path, report: Report, shard: tuple[int, int] | None = None) -> list[str]:
        held = inputs(run)
        metrics = examine(
            held.protocol,
            held.items,
            models={
                **{role: run.experiment.spec(who, run.candidate_model(who)) for role, who in members.items()},
                **held.roles,
            },
            mode=run.experiment.schedule,
            folder=folder,
            ledger_folder=run.ledger(name),
            wave=held.wave,
            report=report,
            extra=lambda item: {"half": held.frozen.half(item.id)},
            max_failure_rate=run.experiment.max_failure_rate,
            shard=shard,
        )
        return ["records.jsonl"] if shard is not None else concluded(held.protocol, metrics, folder)

    def joined(run: RunFolder, folder: Path, parts: list[Path]) -> list[str]:
        held = inputs(run)
        metrics = merge(
            held.protocol,
            held.items,
            parts,
            mode=run.experiment.schedule,
            folder=folder,
            max_failure_rate=run.experiment.max_failure_rate,
        )
        return concluded(held.protocol, metrics, folder)

    def concluded(protocol: ExamProtocol | GroupProtocol, metrics: dict[str, Any], folder: Path) -> list[str]:
        drawn = draw_group(cast(GroupProtocol, protocol), metrics, folder / "figures") if "group" in head else []
        return ["records.jsonl", "metrics.json", *(f"figures/{name}" for name in drawn)]

    return Stage(
        name=name,
        needs=(*items, *(f"train.{who}" for who in trained), *after),
        version=protocol.version,
        config={
            **head,
            "mode": experiment.mode,
            "seed": experiment.seed,
            "serve": serve,
            "models": {role: model_identity(model) for role, model in models.items()},
            "prompts": protocol.prompt_hashes(),
            "max_failure_rate": experiment.max_failure_rate,
        },
        body=hold,
        gpus=gpus_of((*specs.values(), *models.values())),
        shards=Shards(
            part=lambda run, folder, report, index, count: hold(run, folder, report, (index, count)),
            merge=joined,
        ),
    )
