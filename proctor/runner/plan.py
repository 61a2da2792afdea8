"""From an experiment to its stages, in an order in which every stage comes after what it reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from proctor.experiment.experiment import Experiment
from proctor.experiment.made import CONTROL
from proctor.run_folder.run import RunFolder
from proctor.stages import analysis, build, detect, exam, freeze, prefilter, report, train
from proctor.stages.base import Stage
from serving.named import nearest


def plan(experiment: Experiment) -> list[Stage]:
    """All stages. ValueError if a model, file, option, recipe, protocol or method is wrong."""
    stages = [freeze.stage(experiment)]
    stages += [freeze.stage(experiment, name) for name, exam in experiment.exams.items() if exam.benchmark is not None]
    stages += [freeze.stage(experiment, name) for name, one in experiment.groups.items() if one.benchmark is not None]
    stages += [build.stage(experiment, name) for name in experiment.builds]
    stages += [train.stage(experiment, name) for name in experiment.in_training_order()]
    stages += [prefilter.stage(experiment, name) for name, config in experiment.exams.items() if config.prefilter]
    stages += [
        exam.stage(experiment, exam_name, name)
        for exam_name, config in experiment.exams.items()
        for name in experiment.candidates
        if config.candidates is None or name in config.candidates
    ]
    stages += [exam.group_stage(experiment, name) for name in experiment.groups]
    if experiment.detection is not None:
        chosen = experiment.detection.candidates
        examined = dict.fromkeys([CONTROL, *(tuple(experiment.candidates) if chosen is None else chosen)])
        stages += [detect.stage(experiment, name) for name in examined]
    stages += [analysis.stage(experiment, name) for name in experiment.analyses]
    stages.append(report.stage(experiment, [stage.name for stage in stages]))
    twice = [name for name, count in Counter(stage.name for stage in stages).items() if count > 1]
    if twice:
        raise ValueError(f"two stages would be called {twice[0]!r}; rename the exam or the candidate")
    return stages


def find(stages: list[Stage], name: str) -> Stage:
    for stage in stages:
        if stage.name == name:
            return stage
    raise ValueError(f"no stage {name!r}; {nearest(name, [stage.name for stage in stages], all_known='there are')}")


@dataclass(frozen=True)
class State:
    """A stage as it stands: ``done`` (current), ``stale`` (inputs changed), ``ready`` or ``waiting`` (to be done)."""

    stage: Stage
    state: str
    digest: str | None


def states(run: RunFolder, stages: list[Stage]) -> list[State]:
    """Where each stage stands. A stage whose needs are not all current is ``waiting``."""
    outputs: dict[str, str] = {}
    result = []
    for stage in stages:
        if any(need not in outputs for need in stage.needs):
            result.append(State(stage, "waiting", None))
            continue
        digest = stage.digest(outputs)
        done = run.stage(stage.name).done()
        if done is not None and stage.intact(run):
            if done.inputs == digest:
                outputs[stage.name] = done.outputs
                result.append(State(stage, "done", digest))
                continue
            result.append(State(stage, "stale", digest))
        else:
            result.append(State(stage, "ready", digest))
    return result
