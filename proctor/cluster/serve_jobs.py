"""Served models on SLURM: ``proctor serve`` as a job of its own, which the stages that ask it come after.

A model with engine ``server`` and no endpoint gets a job ``serve.<model>``; adapters of one base share one. It starts
when every stage that all its askers wait for has ended; an asker may start once it has started (``after:``), and waits
for its health. It ends by itself when no job needs it any more, whether these jobs ended well or not.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence

from proctor.experiment.experiment import Experiment
from proctor.experiment.made import protocol_for
from proctor.run_folder.run import RunFolder
from proctor.run_folder.stage import StageFolder
from proctor.runner.plan import plan, states
from proctor.stages.base import Stage
from serving.endpoint import failure_file, read_endpoint
from slurm import submitter

PREFIX = "serve."


def served_together(run: RunFolder) -> dict[str, tuple[str, ...]]:
    """By job name, the models that a job of this run serves: those on a server that is nobody else's.

    A model that no stage asks has no job: that is for whoever plans to decide."""
    groups: dict[str, list[str]] = {}
    for name, spec in run.experiment.models.items():
        if spec.engine != "server" or spec.endpoint != str(run.path.absolute() / "serving" / f"{name}.json"):
            continue
        alike = spec.model_dump(mode="json", exclude={"adapter", "endpoint", "patience"})
        key = json.dumps(alike, sort_keys=True) if spec.adapter else name
        groups.setdefault(key, []).append(name)
    return {PREFIX + names[0]: tuple(names) for names in groups.values()}


def asked(run: RunFolder, stage: Stage) -> tuple[str, ...]:
    """Names of the jobs whose models a stage may ask."""
    return tuple(job for job, models in served_together(run).items() if asks(run.experiment, stage.name, models))


def prerequisites(run: RunFolder, stages: Sequence[Stage], job: str) -> tuple[str, ...]:
    """Stages that every asker of the job comes after: until they have ended, a server would only wait.

    Shown as the job's own needs; those among them that others of them imply are left out."""
    upstream: dict[str, set[str]] = {}
    for stage in stages:  # in order: needs come first
        upstream[stage.name] = set(stage.needs).union(*(upstream[need] for need in stage.needs))
    askers = [stage.name for stage in stages if job in asked(run, stage)]
    common = set.intersection(*(upstream[name] for name in askers)) if askers else set()
    implied = set().union(*(upstream[name] for name in common))
    return tuple(stage.name for stage in stages if stage.name in common - implied)


def serve_intents(run: RunFolder) -> dict[str, str]:
    """For every such job the digest of what it serves."""
    return {
        job: hashlib.sha256(
            json.dumps(
                [
                    run.experiment.models[name].model_dump(mode="json", exclude={"endpoint", "patience"})
                    for name in models
                ],
                sort_keys=True,
            ).encode()
        ).hexdigest()
        for job, models in served_together(run).items()
    }


def gpus_for(experiment: Experiment, models: Iterable[str]) -> int:
    return max(spec.tensor_parallel * spec.pipeline_parallel for spec in (experiment.models[name] for name in models))


def ending(run: RunFolder, models: Iterable[str]) -> bool:
    """Whether their server has said that it ends, though SLURM still shows its job: it serves nobody new."""
    endpoints = [read_endpoint(run.path / "serving" / f"{name}.json") for name in models]
    return any(endpoint is not None and endpoint.ended for endpoint in endpoints)


def forget_failures(run: RunFolder, models: Iterable[str]) -> None:
    """Before a new server: what the former one said of its end must not end the stages that wait for this one."""
    for name in models:
        failure_file(run.path / "serving" / f"{name}.json").unlink(missing_ok=True)


def still_needed(run: RunFolder, models: Sequence[str]) -> list[str]:
    """Stages that need a server of these models: not done, and in a job that ``proctor submit`` made also queued or
    running, since a stage that failed asks no more. Where SLURM can't be asked, it is taken to need the server."""
    from proctor.cluster.jobs import SHARDS, active_jobs, submitted

    stages = needing(run, models)
    own = os.environ.get("SLURM_JOB_ID")
    jobs: Mapping[str, object] = submitted(run.path) if own else {}
    if not stages or own not in {getattr(one, "job", None) for name, one in jobs.items() if name.startswith(PREFIX)}:
        return stages
    if StageFolder(run.path).holder() is not None:  # a submission is under way, or a local run
        return stages
    try:
        active = active_jobs(run.path)
    except (ValueError, submitter.SlurmError):
        return stages
    return [name for name in stages if name in active or name + SHARDS in active]


def node_address() -> str:
    """This machine's address that other nodes reach it by: the first private one of its name, or of the interface that
    leads outward. ValueError if there is none."""
    import ipaddress
    import socket

    from serving.endpoint import local

    found: list[str] = []
    for name in (os.environ.get("SLURMD_NODENAME"), socket.gethostname()):
        if name:
            try:
                found += [str(row[4][0]) for row in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
            except OSError:
                continue
    for family, far in ((socket.AF_INET, "10.255.255.255"), (socket.AF_INET6, "fd00:ffff::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((far, 9))  # of a datagram socket: asks the routing table, sends nothing
            found.append(str(probe.getsockname()[0]))
    for text in found:
        address = ipaddress.ip_address(text.partition("%")[0])
        if local(address) and not address.is_loopback and not address.is_link_local:
            return str(address)
    raise ValueError(
        f"this node has no private address ({', '.join(dict.fromkeys(found)) or 'none at all'}); give --host (in the "
        "profile: serve_host) the address that other nodes reach it by, and allow it in PROCTOR_ALLOWED_HOSTS"
    )


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
    from evaluation import registry as protocols

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
