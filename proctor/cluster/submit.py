"""From the stages of an experiment to SLURM jobs: resources, scripts, what is to be submitted, and what was.

    <run>/slurm/<job>.sbatch   the script            <run>/slurm/<job>.json   the job it became, and for which inputs

A sharded exam is two jobs: the array ``<stage>.shards`` and the merge, which has the stage's name. Served models are
jobs ``serve.<model>`` (proctor/cluster/serve_jobs.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proctor.cluster.jobs import FOLDER, SHARDS, Submitted
from proctor.cluster.serve_jobs import (
    PREFIX,
    asked,
    ending,
    forget_failures,
    gpus_for,
    prerequisites,
    serve_intents,
    served_together,
)
from proctor.run_folder.run import RunFolder
from proctor.runner.plan import State, states
from proctor.stages.base import Stage
from serving.files import write_json, write_text
from slurm import submitter
from slurm.job import Job, Spread
from slurm.profile import Profile
from slurm.script import render


def jobs_for(run: RunFolder, stage: Stage, profile: Profile, python: str | None = None) -> list[Job]:
    """The stage's job, or its array and its merge. ValueError if the profile's nodes can't give what it needs."""
    nodes, gpus, spread = placement(stage, profile)
    interpreter = python or profile.python or sys.executable
    command = (interpreter, "-P", "-m", "proctor.cli", "stage", str(run.path), stage.name)
    kind = stage.name.partition(".")[0]
    logs = run.stage(stage.name).path
    servers = asked(run, stage)
    shards = shard_count(stage, profile)
    if not shards:
        return [
            Job(
                name=stage.name,
                kind=kind,
                command=(*command, "--wait"),
                log=_log(logs / "log.txt"),
                nodes=nodes,
                gpus=gpus,
                needs=stage.needs,
                servers=servers,
                spread=spread,
            )
        ]
    array = Job(
        name=stage.name + SHARDS,
        kind=kind,
        command=(*command, "--wait"),
        log=_log(logs, "log.%a.txt"),
        nodes=nodes,
        gpus=gpus,
        needs=stage.needs,
        servers=servers,
        shards=shards,
        spread=spread,
    )
    merge = Job(
        name=stage.name,
        kind="merge",
        command=(*command, "--wait", "--merge", str(shards)),
        log=_log(logs / "log.txt"),
        needs=(array.name,),
    )
    return [array, merge]


def _log(folder: Path, name: str = "") -> Path:
    """Where ``%`` stands in a folder's name, SLURM wants it twice."""
    return Path(str(folder).replace("%", "%%")) / name


def shard_count(stage: Stage, profile: Profile) -> int:
    """Shards the profile asks for: by the stage's name before its exam's; 0 for none."""
    kind = stage.name.partition(".")[0]
    return profile.shards.get(stage.name, profile.shards.get(kind, 0)) if stage.shards is not None else 0


def serve_jobs(run: RunFolder, stages: Sequence[Stage], profile: Profile) -> dict[str, Job]:
    """The jobs that serve models to these stages. ValueError if the profile's nodes can't hold one."""
    found = {}
    interpreter = profile.python or sys.executable
    for name, models in served_together(run).items():
        if not any(name in asked(run, stage) for stage in stages):
            continue
        gpus = gpus_for(run.experiment, models)
        if profile.gpus_per_node and gpus > profile.gpus_per_node:
            raise ValueError(
                f"job {name} needs {gpus} GPUs (tensor_parallel x pipeline_parallel), and a server runs on one node, "
                f"which has {profile.gpus_per_node}; lower them, or use engine: vllm, whose models may span nodes"
            )
        found[name] = Job(
            name=name,
            kind="serve",
            command=(
                *(interpreter, "-P", "-m", "proctor.cli", "serve", *models, "--run", str(run.path)),
                *("--host", profile.serve_host),
            ),
            log=_log(run.path / "serving", f"{name}.txt"),
            gpus=gpus if profile.gpus_per_node else 0,
            needs=prerequisites(run, stages, name),
        )
    return found


def placement(stage: Stage, profile: Profile) -> tuple[int, int, Spread]:
    """Nodes, GPUs per node, and where its command runs. ValueError if the nodes can't give that."""
    have = profile.gpus_per_node
    where = f"stage {stage.name}"
    if stage.nodes > profile.nodes:
        raise ValueError(
            f"{where} trains on {stage.nodes} nodes, and a job of this profile may span {profile.nodes}; raise 'nodes' "
            "in the profile, or lower training's nodes"
        )
    if not have:
        return stage.nodes, 0, "every" if stage.nodes > 1 else "first"
    if stage.nodes > 1:
        if stage.gpus > have:
            raise ValueError(
                f"{where} trains with {stage.gpus} processes per node, and a node has {have} GPUs; lower 'processes' "
                "and raise 'nodes' of its training"
            )
        return stage.nodes, stage.gpus, "every"
    if stage.gpus <= have:
        return 1, stage.gpus, "first"
    if stage.name.startswith("train."):
        raise ValueError(
            f"{where} trains with {stage.gpus} processes on one node, and a node has {have} GPUs; lower 'processes' of "
            "its training, and raise its 'nodes' (with rendezvous: auto)"
        )
    nodes = -(-stage.gpus // have)
    if nodes > profile.nodes:
        raise ValueError(
            f"{where} needs {stage.gpus} GPUs (tensor_parallel x pipeline_parallel of its largest model), and a job "
            f"may have {profile.nodes} node(s) of {have}; lower them, or raise 'nodes' in the profile"
        )
    if stage.gpus % have:
        raise ValueError(
            f"{where} needs {stage.gpus} GPUs, which {nodes} nodes of {have} can't share evenly; make tensor_parallel "
            f"x pipeline_parallel a multiple of {have}"
        )
    return nodes, have, "ray"


def check_names(stages: Iterable[Stage], profile: Profile) -> None:
    """ValueError for a name in the profile that is no stage's or kind's, or shards of what can't be split."""
    stages = list(stages)
    kinds = {stage.name.partition(".")[0] for stage in stages} | {stage.name for stage in stages}
    splittable = {
        name for stage in stages if stage.shards is not None for name in (stage.name, stage.name.partition(".")[0])
    }
    arrays = {stage.name + SHARDS for stage in stages if stage.shards is not None}
    for name in profile.shards:
        if name not in splittable:
            raise ValueError(
                f"profile: shards.{name}: no exam of that name; there are: {', '.join(sorted(splittable))}"
            )
    for name in profile.stages:
        if name.startswith(PREFIX):
            continue
        if name not in kinds | arrays | {"merge", "train", "detect", "prefilter", "serve"}:
            raise ValueError(f"profile: stages.{name}: no stage of that name; there are: {', '.join(sorted(kinds))}")


def intents(stages: Iterable[Stage]) -> dict[str, str]:
    """For every stage the digest of what it would compute, known before anything is computed."""
    found: dict[str, str] = {}
    for stage in stages:
        found[stage.name] = stage.digest(found)
    return found


def check_unchanged(active: Mapping[str, Submitted], wanted: Mapping[str, str], run: Path) -> None:
    """ValueError if a job that is queued or running would compute something else than the experiment now says."""
    for name, one in active.items():
        stage = name.removesuffix(SHARDS)
        if wanted.get(stage) != one.intent:
            raise ValueError(
                f"job {one.job} ({name}) is still queued or running for the former experiment; wait for it, or "
                f"'proctor cancel {run} --stage {stage}', then submit again"
            )


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A stage and what becomes of it: ``done``, ``queued`` (already), or ``submit`` with its jobs.

    array: the tasks of its array that are missing (None: all)
    """

    state: State
    action: str
    jobs: tuple[Job, ...] = ()
    array: str | None = None


def planned(run: RunFolder, stages: list[Stage], profile: Profile, active: Mapping[str, Submitted]) -> list[Planned]:
    """What is missing and not queued, in order. A finished stage after one that is to be done again is asked too: it
    ends at once where its inputs come out as before."""
    result = []
    for state in states(run, stages):
        stage = state.stage
        jobs = jobs_for(run, stage, profile)  # also of those that are done: an impossible profile is refused whole
        if state.state == "done":
            result.append(Planned(state=state, action="done"))
            continue
        if stage.name in active:
            result.append(Planned(state=state, action="queued"))
            continue
        array = None
        if len(jobs) == 2:
            missing = _missing(run, state, jobs[0].shards)
            if jobs[0].name in active or not missing:
                jobs = jobs[1:]
            elif len(missing) < jobs[0].shards:
                array = ",".join(map(str, missing))
        result.append(Planned(state=state, action="submit", jobs=tuple(jobs), array=array))
    return result


def missing_servers(
    run: RunFolder, plans: Iterable[Planned], profile: Profile, active: Mapping[str, Submitted]
) -> list[Job]:
    """Jobs of servers that those to be submitted will ask, and that are not queued or running: one that says it ends
    is not counted, though SLURM still shows it."""
    plans = list(plans)
    wanted = {server for plan in plans for job in plan.jobs for server in job.servers}
    models = served_together(run)
    jobs = serve_jobs(run, [plan.state.stage for plan in plans], profile)
    return [job for name, job in jobs.items() if name in wanted and (name not in active or ending(run, models[name]))]


def _missing(run: RunFolder, state: State, count: int) -> list[int]:
    folder = run.stage(state.stage.name)
    done = [folder.shard(index, count).done() for index in range(count)]
    return [index for index, one in enumerate(done) if one is None or one.inputs != state.digest]


def write_scripts(
    run: RunFolder, plans: Iterable[Planned], profile: Profile, servers: Iterable[Job] = ()
) -> dict[str, Path]:
    """Scripts of all jobs that are to be submitted, by job name."""
    scripts = {}
    rows = [(job, None) for job in servers] + [(job, plan.array) for plan in plans for job in plan.jobs]
    for job, array in rows:
        job.log.parent.mkdir(parents=True, exist_ok=True)
        file = run.path / FOLDER / f"{job.name}.sbatch"
        write_text(file, render(job, profile, run=run.path, prefix=run.experiment.name, array=array))
        scripts[job.name] = file
    return scripts


def submit(
    run: RunFolder,
    plans: Iterable[Planned],
    scripts: Mapping[str, Path],
    active: Mapping[str, Submitted],
    servers: Iterable[Job] = (),
) -> dict[str, str]:
    """Submits the jobs in order, each after those of its needs that are not done, a server before the first job that
    asks it; returns their ids by name."""
    plans = list(plans)
    wanted = {**intents(plan.state.stage for plan in plans), **serve_intents(run)}
    waiting = {job.name: job for job in servers}
    ids = {name: one.job for name, one in active.items() if name not in waiting}
    new: dict[str, str] = {}

    def send(job: Job, intent: str) -> None:
        after, started = ([ids[name] for name in names if name in ids] for names in (job.needs, job.servers))
        ids[job.name] = new[job.name] = submitter.submit(scripts[job.name], after, started)
        row: dict[str, Any] = {
            "job": ids[job.name],
            "intent": intent,
            "shards": job.shards,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_json(run.path / FOLDER / f"{job.name}.json", row)

    for plan in plans:
        for job in plan.jobs:
            for name in job.servers:
                if name in waiting:
                    forget_failures(run, served_together(run)[name])
                    send(waiting.pop(name), wanted[name])
            send(job, wanted[plan.state.stage.name])
    return new
