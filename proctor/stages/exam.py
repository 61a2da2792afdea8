"""Stage ``<exam>.<candidate>``: one candidate sits one exam."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from evaluation import registry as protocols
from evaluation.exam_set import FrozenExam
from evaluation.items import Item
from evaluation.protocol import ExamProtocol
from evaluation.run_exam import Report, examine, merge
from proctor.experiment.experiment import Experiment
from proctor.run_folder.run import RunFolder
from proctor.stages import prefilter
from proctor.stages.base import Shards, Stage, gpus_of
from serving.model.fingerprint import model_identity, served_as


def stage(experiment: Experiment, exam: str, candidate: str) -> Stage:
    config = experiment.exams[exam]
    protocol = protocols.build(config.protocol, config.options, seed=experiment.seed)
    trained = experiment.candidates[candidate].recipe is not None
    models = experiment.role_specs(protocol.roles[1:])
    spec = experiment.spec(candidate, Path("trained"))
    if not trained:
        models = {"candidate": spec, **models}
    needs = [experiment.items_stage(exam)]
    needs += [f"train.{candidate}"] if trained else []
    needs += [prefilter.name_for(exam)] if config.prefilter else []
    return Stage(
        name=f"{exam}.{candidate}",
        needs=tuple(needs),
        version=protocol.version,
        config={
            "exam": config.inputs(),
            "mode": experiment.mode,
            "seed": experiment.seed,
            "serve": served_as(spec),
            "models": {role: model_identity(model) for role, model in models.items()},
            "prompts": protocol.prompt_hashes(),
            "max_failure_rate": experiment.max_failure_rate,
        },
        body=lambda run, folder, report: _sit(run, folder, report, exam, candidate),
        gpus=gpus_of((spec, *models.values())),
        shards=Shards(
            part=lambda run, folder, report, index, count: _sit(run, folder, report, exam, candidate, (index, count)),
            merge=lambda run, folder, parts: _merge(run, folder, parts, exam),
        ),
    )


class ExamInputs(NamedTuple):
    protocol: ExamProtocol
    items: list[Item]
    frozen: FrozenExam


def _sitting(run: RunFolder, exam: str) -> ExamInputs:
    experiment = run.experiment
    config = experiment.exams[exam]
    frozen = run.items(exam)
    if config.prefilter:
        frozen = frozen.kept(prefilter.read_ids(run, exam))
    protocol = protocols.build(config.protocol, config.options, seed=experiment.seed, exemplars=frozen.exemplars)
    return ExamInputs(protocol, list(frozen.part(config.items, config.limit)), frozen)


def _sit(
    run: RunFolder, folder: Path, report: Report, exam: str, candidate: str, shard: tuple[int, int] | None = None
) -> list[str]:
    experiment = run.experiment
    config = experiment.exams[exam]
    sitting = _sitting(run, exam)
    models = {
        "candidate": experiment.spec(candidate, run.candidate_model(candidate)),
        **experiment.role_specs(sitting.protocol.roles[1:]),
    }
    examine(
        sitting.protocol,
        sitting.items,
        models=models,
        mode=experiment.schedule,
        folder=folder,
        ledger_folder=run.ledger(f"{exam}.{candidate}"),
        wave=config.wave,
        report=report,
        extra=lambda item: {"half": sitting.frozen.half(item.id)},
        max_failure_rate=experiment.max_failure_rate,
        shard=shard,
    )
    return ["records.jsonl", *(["metrics.json"] if shard is None else [])]


def _merge(run: RunFolder, folder: Path, parts: list[Path], exam: str) -> list[str]:
    experiment = run.experiment
    sitting = _sitting(run, exam)
    merge(
        sitting.protocol,
        sitting.items,
        parts,
        mode=experiment.schedule,
        folder=folder,
        max_failure_rate=experiment.max_failure_rate,
    )
    return ["records.jsonl", "metrics.json"]
