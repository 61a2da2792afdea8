"""Which stages of a run still need a model that is served."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.experiment import Experiment
from proctor.plan import plan, states
from proctor.runfolder import RunFolder
from proctor.stages.group import protocol_for

NEVER = ("exam", "report", "train", "analysis")
"""Stages that ask no served model: freezing, the report, training, analyses."""


def needing(run: RunFolder, models: Sequence[str]) -> list[str]:
    """Names of the stages that are not done and may ask one of the models.

    A stage whose use of models isn't known here counts as one that asks: a server that ends too late costs time, one
    that ends too early costs the stage.
    """
    return [
        state.stage.name
        for state in states(run, plan(run.experiment))
        if state.state != "done" and asks(run.experiment, state.stage.name, models)
    ]


def asks(experiment: Experiment, stage: str, models: Sequence[str]) -> bool:
    """Whether a stage may ask one of the models."""
    from evaluation import protocols

    wanted = set(models)
    kind, _, rest = stage.partition(".")
    if kind in NEVER:
        return False
    if kind in experiment.exams:
        config = experiment.exams[kind]
        protocol = protocols.build(config.protocol, config.options, seed=experiment.seed)
        roles = {experiment.roles[role] for role in protocol.roles[1:] if role in experiment.roles}
        return bool(wanted & (roles | _model_of(experiment, rest)))
    if kind == "group" and rest in experiment.groups:
        members = experiment.members(rest)
        asked = [role for role in protocol_for(experiment, rest).roles if role not in members]
        playing = {experiment.roles[role] for role in asked if role in experiment.roles}
        return bool(wanted & playing.union(*(_model_of(experiment, name) for name in members)))
    if kind == "detect":
        reference = experiment.detection.reference if experiment.detection else None
        return bool(wanted & (_model_of(experiment, rest) | {reference}))
    return True


def _model_of(experiment: Experiment, candidate: str) -> set[str]:
    """The entry of models that a candidate is; a trained one is served as its base is."""
    if candidate not in experiment.candidates:
        return {experiment.base}
    model = experiment.candidates[candidate].model
    return set() if model is None else {model}
