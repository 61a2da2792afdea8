"""Stage ``build.<build>``: models write an exam, once for all candidates."""

from __future__ import annotations

from pathlib import Path

from evaluation.exam_set import FrozenExam, read_exam
from evaluation.items import Item
from evaluation.registry import group_protocol
from evaluation.run_builder import authors, build_exam, check_weights
from evaluation.run_exam import Report
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import builder_for, seeds_stage
from proctor.run_folder.run import RunFolder
from proctor.stages.base import Stage, gpus_of
from proctor.stages.freeze import draw_exam
from serving.model.fingerprint import model_identity


def name_for(build: str) -> str:
    return f"build.{build}"


def draw_seeds(experiment: Experiment, build: str) -> FrozenExam:
    """The seeds, read from the benchmark; an empty exam for a builder without seeds."""
    config = experiment.builds[build]
    if not builder_for(experiment, build).seeds:
        if config.benchmark is not None or config.limit is not None:
            raise ValueError(
                f"builds.{build}: builder {config.builder!r} takes no seeds; leave benchmark and limit out"
            )
        return FrozenExam([], frozenset(), [], halved=False)
    return draw_exam(experiment) if config.benchmark is None else draw_exam(experiment, build=build)


def chosen_seeds(experiment: Experiment, build: str, seeds: FrozenExam) -> list[Item]:
    config = experiment.builds[build]
    return seeds.part(config.items, config.limit)


def check(experiment: Experiment, build: str, seeds: FrozenExam) -> None:
    """ValueError if the builder can't start from these seeds, or a role is nobody's."""
    builder = builder_for(experiment, build)
    try:
        check_weights(builder, experiment.build_specs(build, builder.roles))
        for dialogue in builder.dialogues(chosen_seeds(experiment, build, seeds)):
            dialogue.close()
        kinds = {name: group_protocol(group.protocol) for name, group in experiment.groups.items()}
        ranked = [name for name, kind in kinds.items() if getattr(kind, "examined", True)]
        for exam in (*experiment.exams, *ranked):
            sitting = authors(experiment, exam) if experiment.sitting(exam).build == build else []
            if sitting and not getattr(builder, "allow_generator", True):
                raise ValueError(_refusal(experiment.place(exam), sitting[0]))
    except ValueError as error:
        raise ValueError(f"builds.{build}: {error}") from error


def _refusal(place: str, candidate: str) -> str:
    return (
        f"candidate {candidate!r} wrote the exam {place.partition('.')[2]!r}, and no model sits an exam of its own "
        f"making; leave it out ({place}.candidates), or set the build's option allow_generator: true"
    )


def stage(experiment: Experiment, build: str) -> Stage:
    from evaluation.benchmarks.chosen import benchmark_files

    config = experiment.builds[build]
    builder = builder_for(experiment, build)
    models = experiment.build_specs(build, builder.roles)
    own = seeds_stage(experiment, build)
    return Stage(
        name=name_for(build),
        needs=() if own is None else (own,),
        version=builder.version,
        config={
            "build": config.model_dump(mode="json", exclude={"benchmark": {"path", "exemplars"}, "roles": True}),
            "files": {} if config.benchmark is None else benchmark_files(config.benchmark),
            "mode": experiment.mode,
            "seed": experiment.seed,
            "models": {role: model_identity(model) for role, model in models.items()},
            "prompts": builder.prompt_hashes(),
        },
        body=lambda run, folder, report: _build(run, folder, report, build),
        gpus=gpus_of(models.values()),
    )


def _build(run: RunFolder, folder: Path, report: Report, build: str) -> list[str]:
    experiment = run.experiment
    builder = builder_for(experiment, build)
    own = seeds_stage(experiment, build)
    seeds = draw_seeds(experiment, build) if own is None else read_exam(run.stage(own).path)
    return build_exam(
        builder,
        seeds,
        chosen_seeds(experiment, build, seeds),
        models=experiment.build_specs(build, builder.roles),
        mode=experiment.schedule,
        folder=folder,
        ledger_folder=run.ledger(name_for(build)),
        wave=experiment.builds[build].wave,
        report=report,
    )
