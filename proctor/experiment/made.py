"""What an experiment file names, made: protocols, builders and analyses with their options checked."""

from __future__ import annotations

from typing import Any

from evaluation import registry as protocols
from evaluation.analysis import Analysis
from evaluation.protocol import ExamBuilder, GroupProtocol
from proctor.experiment.experiment import Experiment
from serving.model.spec import ModelSpec

OF_ITEMS = ("items", "limit", "benchmark", "build", "set")
"""Keys that a group which makes its own items has no use for."""


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
    from proctor.experiment.sections import GroupConfig

    return GroupConfig.model_fields[key].default


def others(experiment: Experiment, group: str, protocol: GroupProtocol) -> dict[str, ModelSpec]:
    """Who takes part besides the candidates, by role. ValueError for a role nobody plays."""
    members = experiment.members(group)
    try:
        return experiment.role_specs([role for role in protocol.roles if role not in members])
    except ValueError as error:
        raise ValueError(f"groups.{group}: {error}") from error


def builder_for(experiment: Experiment, build: str) -> ExamBuilder:
    """The builder with its options checked. ValueError begins with where the fault is."""
    config = experiment.builds[build]
    try:
        return protocols.build_builder(config.builder, config.options, seed=experiment.seed)
    except ValueError as error:
        raise ValueError(f"builds.{build}: {error}") from error


def seeds_stage(experiment: Experiment, build: str) -> str | None:
    """The stage that freezes the seeds; None: the builder takes none, or the build draws its own."""
    config = experiment.builds[build]
    return "exam" if builder_for(experiment, build).seeds and config.benchmark is None else None


def analysis_for(experiment: Experiment, name: str) -> Analysis:
    """The analysis with its options checked. ValueError begins with where the fault is."""
    config = experiment.analyses[name]
    return protocols.build_analysis(config.kind, config.options, where=f"analyses.{name}")


CONTROL = "base"


def repeats_of(experiment: Experiment, candidate: str) -> int:
    """How often a trained candidate's recipe reads the leaked items: its own ``repeats``, else the experiment's."""
    from training.config import TrainingJob

    given = {**experiment.training, **experiment.candidates[candidate].options}
    return int(given.get("repeats", TrainingJob.model_fields["repeats"].default))
