"""What a run will ask of its models, before it runs, and how that compares with what was measured.

*Calls* are counted by a rehearsal: the same stages with scripted models, which cost nothing. A protocol that may end
early (an interview that the evaluator stops) makes at most so many. In a build the scripted models' first replies can
always be used, so its exam comes out as large as was asked for; a real model's retries come on top. *Tokens and
seconds* per call come from a sample: a few items of every exam before the real models, the base in every candidate's
place. Training is not in it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluation.show.terminal import print_rows
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import builder_for
from proctor.experiment.sections import BuildConfig, CandidateConfig
from proctor.run_folder.run import RunFolder, create
from proctor.runner.local import StageFailed, run_all
from proctor.runner.one_stage import do_stage
from proctor.runner.plan import plan
from serving.files import read_json
from serving.model.spec import ModelSpec

NAMES = ("calls", "prompt_tokens", "output_tokens", "seconds")


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of one role in one stage. calls: exactly, or at most where a protocol may end early

    expected: calls if dialogues end as early as they did in the sample
    seconds: of the engine, loading apart; None where nothing was sampled, tokens and expected calls too
    """

    calls: int
    expected: float | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class StageEstimate:
    """seconds: the whole stage, loading and the process itself included; peak_memory: GiB of its largest process"""

    roles: dict[str, Figures]
    seconds: float | None = None
    peak_memory: float | None = None


Estimate = dict[str, StageEstimate]


def estimate(experiment: Experiment, *, items: int | None = 8) -> Estimate:
    """By stage. items: how many of each exam are sampled (None: none, calls only)."""
    with tempfile.TemporaryDirectory(prefix="proctor-estimate-") as place:
        calls = _rehearse(experiment, Path(place) / "rehearsal")
        if items is None:
            return {
                stage: StageEstimate(roles={role: Figures(calls=n) for role, n in roles.items()})
                for stage, roles in calls.items()
            }
        small = _small(experiment, items)
        rehearsed = _rehearse(small, Path(place) / "small")
        sampled = _sample(small, Path(place) / "sample")
    return {stage: _from_sample(stage, roles, rehearsed, sampled) for stage, roles in calls.items()}


def measured(run: RunFolder) -> Estimate:
    """The same of a run's finished stages, as it was."""
    found = {}
    for folder in sorted((run.path / "stages").glob("*")):
        usage, spent = _read(folder / "usage.json"), _read(folder / "time.json")
        if usage.get("roles"):
            roles = {
                role: Figures(
                    calls=row["calls"],
                    prompt_tokens=row["prompt_tokens"],
                    output_tokens=row["output_tokens"],
                    seconds=row["seconds"],
                )
                for role, row in usage["roles"].items()
            }
            found[folder.name] = StageEstimate(
                roles=roles, seconds=spent.get("seconds"), peak_memory=spent.get("peak_memory_gib")
            )
    return found


def total(figures: Estimate) -> Figures:
    """Sums over stages and roles; ``seconds`` are whole stages'. None where a part is unknown."""
    roles = [role for stage in figures.values() for role in stage.roles.values()]

    def add(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    return Figures(
        calls=sum(role.calls for role in roles),
        expected=add([role.expected for role in roles]),
        prompt_tokens=add([role.prompt_tokens for role in roles]),
        output_tokens=add([role.output_tokens for role in roles]),
        seconds=add([stage.seconds for stage in figures.values()]),
    )


def as_json(figures: Estimate) -> dict[str, Any]:
    return {name: asdict(stage) for name, stage in figures.items()}


def _rehearse(experiment: Experiment, folder: Path) -> dict[str, dict[str, int]]:
    """Calls by stage and role, counted with scripted models."""
    rules = [dict(rule) for name in experiment.builds for rule in builder_for(experiment, name).rehearsal]
    arguments = {"replies": rules} if rules else {}
    models = {name: ModelSpec(path=name, engine="scripted", engine_args=arguments) for name in experiment.models}
    run = create(folder, _before(experiment, models))
    found = {}
    for stage in plan(run.experiment):
        if stage.name == "report":
            continue
        do_stage(run, stage.name)
        roles = _read(run.stage(stage.name).path / "usage.json").get("roles", {})
        if roles:
            found[stage.name] = {role: int(row["calls"]) for role, row in roles.items()}
    return found


def rehearsed(protocol: str) -> bool:
    """Whether a group's calls can be counted with models that give scripted answers."""
    from evaluation.registry import group_protocol

    return bool(getattr(group_protocol(protocol), "rehearsed", True))


def _before(experiment: Experiment, models: Mapping[str, ModelSpec]) -> Experiment:
    """The experiment with existing models in place of trained ones. Nothing is filtered: that takes real answers; nor
    do peers examine each other: that takes real questions."""
    candidates = {
        name: candidate if candidate.model is not None else CandidateConfig(model=experiment.base)
        for name, candidate in experiment.candidates.items()
    }
    exams = {name: exam.model_copy(update={"prefilter": False}) for name, exam in experiment.exams.items()}
    groups = {name: group for name, group in experiment.groups.items() if rehearsed(group.protocol)}
    return experiment.model_copy(
        update={
            "models": dict(models),
            "candidates": candidates,
            "exams": exams,
            "groups": groups,
            "analyses": {},
            "max_failure_rate": 1.0,
        }
    )


def _small(experiment: Experiment, items: int) -> Experiment:
    """A few items of every exam, before one candidate; detection of the control alone."""
    before = _before(experiment, experiment.models)
    exams = {
        name: exam.model_copy(
            update={
                "limit": min(items, exam.limit or items),
                "candidates": ((exam.candidates or tuple(before.candidates))[0],),
            }
        )
        for name, exam in before.exams.items()
    }
    groups = {
        name: group.model_copy(update={"limit": min(items, group.limit or items)})
        for name, group in before.groups.items()
    }
    limit = min(2 * items, before.benchmark.limit or 2 * items)
    builds = {name: _small_build(before, name, items) for name in before.builds}
    detection = before.detection and before.detection.model_copy(update={"candidates": ()})
    benchmark = before.benchmark.model_copy(update={"limit": limit})
    return before.model_copy(
        update={
            "exams": exams,
            "groups": groups,
            "benchmark": benchmark,
            "detection": detection,
            "builds": builds,
        }
    )


def _small_build(experiment: Experiment, name: str, items: int) -> BuildConfig:
    """A build of a few seeds, or of a quarter as large a size (at least 1, at most ``items``) where it has none."""
    config = experiment.builds[name]
    builder = builder_for(experiment, name)
    if builder.seeds:
        return config.model_copy(update={"limit": min(items, config.limit or items)})
    option = builder.size_option
    size = max(1, min(items, getattr(builder.Options.model_validate(config.options), option) // 4))
    return config.model_copy(update={"options": {**config.options, option: size}})


def _sample(experiment: Experiment, folder: Path) -> dict[str, dict[str, Any]]:
    """usage.json and time.json of every stage that asks models, run for real in a process of its own.

    Of a build whose few tries made no item, what it asked is known all the same; stages that need it have no sample."""
    run = create(folder, experiment)
    found: dict[str, dict[str, Any]] = {}
    lost: set[str] = set()
    for stage in plan(run.experiment):
        if stage.name == "report" or lost & set(stage.needs):
            lost.add(stage.name)
            continue
        path = run.stage(stage.name).path
        start = time.monotonic()
        try:
            run_all(run, only=stage.name)
        except StageFailed:
            if not stage.name.startswith("build.") or not (path / "usage.json").is_file():
                raise
            lost.add(stage.name)
        if (path / "usage.json").is_file():
            spent = _read(path / "time.json") or {"seconds": time.monotonic() - start}
            found[stage.name] = {"roles": _read(path / "usage.json")["roles"], **spent}
    return found


def _from_sample(
    stage: str, calls: dict[str, int], rehearsed: dict[str, dict[str, int]], sampled: dict[str, dict[str, Any]]
) -> StageEstimate:
    """By the sampled stage of the same name, or of the same kind; calls alone where there is none."""
    kind = stage.partition(".")[0]
    alike = [
        name for name in sampled if name == stage or (kind not in ("build", "group") and name.partition(".")[0] == kind)
    ]
    if not alike:
        return StageEstimate(roles={role: Figures(calls=n) for role, n in calls.items()})
    name = stage if stage in alike else alike[0]
    return _scaled(calls, rehearsed[name], sampled[name])


def _scaled(calls: dict[str, int], rehearsed: dict[str, int], sample: dict[str, Any]) -> StageEstimate:
    """A sample's tokens and seconds, times how many more calls the whole stage makes."""
    roles, loading, busy, spent = {}, 0.0, 0.0, 0.0
    for role, n in calls.items():
        row = sample["roles"][role]
        # An interview that ended early in the sample is expected to end early in the run: its cost is scaled by what
        # the rehearsals say of the two, not by the calls that were made.
        factor = n / rehearsed[role] if rehearsed.get(role) else 0.0
        roles[role] = Figures(
            calls=n,
            expected=row["calls"] * factor,
            prompt_tokens=row["prompt_tokens"] * factor,
            output_tokens=row["output_tokens"] * factor,
            seconds=row["seconds"] * factor,
        )
        loading += row["loading"]
        busy += row["seconds"]
        spent += row["seconds"] * factor
    around = max(0.0, sample["seconds"] - busy - loading)
    return StageEstimate(roles=roles, seconds=around + loading + spent, peak_memory=sample.get("peak_memory_gib"))


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except (ValueError, OSError):
        return {}


def table(before: Estimate, after: Estimate | None = None, say: Callable[[str], None] = print) -> None:
    """Lines of text: per stage and role the estimate, and beside it what was measured."""
    lines, whole = [], []
    for name, stage in before.items():
        then = after.get(name) if after is not None else None
        for role, figures in stage.roles.items():
            lines.append(_line(name, role, figures, then.roles.get(role) if then else None, after is not None))
        memory = f"; largest process {stage.peak_memory:.1f} GiB" if stage.peak_memory else ""
        if stage.seconds is not None:
            was = f" (measured {then.seconds:.0f} s)" if then is not None and then.seconds is not None else ""
            whole.append(f"{name}: whole stage: {stage.seconds:.0f} s{was}{memory}")
    compared = {name: stage for name, stage in before.items() if after is None or name in after}
    then_total = None if after is None else total({name: after[name] for name in compared})
    lines.append(_line("total", "", total(compared), then_total, after is not None))
    header = ("stage", "role", "calls", "prompt tokens", "output tokens", "seconds")
    print_rows("", header, lines, left=("stage", "role"), say=say)
    for line in whole:
        say(line)


def _line(stage: str, role: str, figures: Figures, then: Figures | None, both: bool) -> list[str]:
    cells = [_calls(figures), *(_number(getattr(figures, n)) for n in NAMES[1:])]
    if both:
        measured = (_number(getattr(then, n) if then else None) for n in NAMES)
        cells = [f"{shown} / {was}" for shown, was in zip(cells, measured, strict=True)]
    return [stage, role, *cells]


def _calls(figures: Figures) -> str:
    """At most so many; where the sample's dialogues ended early, how many are expected, too: ``<= 48, 32``."""
    if figures.expected is None or round(figures.expected) == figures.calls:
        return _number(figures.calls)
    return f"<= {figures.calls:,}, {figures.expected:,.0f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
