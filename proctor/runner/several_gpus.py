"""Several GPUs without SLURM: independent stages at the same time, each with devices of its own."""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence

from evaluation.show.terminal_text import harmless
from proctor.run_folder.run import RunFolder
from proctor.runner.local import StageFailed, Started, conclude, start_stage
from proctor.runner.plan import plan, states
from proctor.stages.base import Stage

REPORT_S = 15.0


def read_devices(text: str) -> tuple[str, ...]:
    """``0,1,2`` (or UUIDs of devices) as names. ValueError for none, or one twice."""
    devices = tuple(part.strip() for part in text.split(","))
    if not all(devices):
        raise ValueError(f"--gpus {text!r} must name devices, separated by commas, e.g. 0,1")
    if len(set(devices)) < len(devices):
        raise ValueError(f"--gpus {text!r} names a device twice")
    return devices


def check_devices(stages: Sequence[Stage], devices: Sequence[str]) -> None:
    """ValueError if a stage can't run on them."""
    for stage in stages:
        if stage.nodes > 1:
            raise ValueError(f"stage {stage.name} trains on {stage.nodes} nodes; submit it to a cluster instead")
        if stage.gpus > len(devices):
            raise ValueError(
                f"stage {stage.name} needs {stage.gpus} GPUs, and --gpus names {len(devices)}; name more, or lower "
                "tensor_parallel, pipeline_parallel or processes"
            )


def run_side_by_side(run: RunFolder, devices: Sequence[str], *, only: str | None = None) -> int:
    """Runs every stage that is not current; returns how many were run.

    A stage starts once what it reads is done and as many devices as it needs are free, in the plan's order: a large one
    waits for devices, and smaller ones after it do not overtake it. It sees only its own devices (none, if it needs
    none). When one fails, those that are running finish, nothing else starts, and its StageFailed is raised.
    """
    stages = plan(run.experiment)
    free = list(devices)
    running: dict[str, tuple[Started, list[str]]] = {}
    ran: set[str] = set()
    failure: StageFailed | None = None
    changed, told = True, time.monotonic()
    try:
        while changed or running:
            if changed and failure is None:  # asking where stages stand may read all weights: only after a change
                for stage, digest in _startable(run, stages, only, running):
                    if stage.name in ran:  # its process ended well, and yet it is not done
                        raise StageFailed(f"stage {stage.name} left no valid outputs; run again", 1)
                    if stage.gpus > len(free):
                        break
                    held, free = free[: stage.gpus], free[stage.gpus :]
                    running[stage.name] = (start_stage(run, stage.name, digest, held), held)
                    ran.add(stage.name)
                    print(f"{stage.name}: started on GPUs {','.join(held) or 'none'}", flush=True)
            changed = False
            for name, (started, held) in list(running.items()):
                if started.process.poll() is None:
                    continue
                changed = True
                del running[name]
                free = [device for device in devices if device in free or device in held]
                try:
                    print(f"{name}: done in {conclude(started):.0f} s", flush=True)
                except StageFailed as error:
                    failure = failure or error
                    print(f"{name}: failed" + (" (the others finish)" if running else ""), flush=True)
            if time.monotonic() - told > REPORT_S:
                told = time.monotonic()
                _tell(running)
            time.sleep(0.2)
    except BaseException:
        for started, _ in running.values():
            started.process.terminate()
        for started, _ in running.values():
            started.end()
        raise
    if failure is not None:
        raise failure
    return len(ran)


def _startable(
    run: RunFolder, stages: list[Stage], only: str | None, running: Container[str]
) -> list[tuple[Stage, str]]:
    """Stages that are not current, whose needs are, with the digest of their inputs."""
    return [
        (state.stage, state.digest)
        for state in states(run, stages)
        if state.state != "done"
        and state.digest is not None
        and state.stage.name not in running
        and only in (None, state.stage.name)
    ]


def _tell(running: Mapping[str, tuple[Started, list[str]]]) -> None:
    for name, (started, _) in running.items():
        progress = started.progress()
        if progress:
            told = f"{name}: {progress.get('done')}/{progress.get('total')} {progress.get('note', '')}"
            print(harmless(told), flush=True)
