"""Does one stage, in this process: lock, outputs, DONE."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from proctor.run_folder.run import RunFolder
from proctor.run_folder.stage import StageBusy, StageFolder
from proctor.runner.plan import State, find, plan, states
from proctor.stages.base import Stage
from serving.files import write_json, write_text

POLL_S = 2.0


def do_stage(
    run: RunFolder, name: str, *, digest: str | None = None, merge: int | None = None, wait: bool = False
) -> bool:
    """Runs the stage unless it is current (then False).

    digest: what the runner expects its inputs to be. StageBusy if another process has the stage; ValueError if a stage
    it needs is not done, or if its inputs are not the expected ones (the experiment changed under way).
    merge: make its outputs from that many shards, which are done
    wait: for another process that has the stage, instead of StageBusy
    """
    stages = plan(run.experiment)
    stage = find(stages, name)
    folder = run.stage(name)
    with _lock(folder, wait):
        state = _state(run, stages, name, digest)
        if state.state == "done":
            return False
        assert state.digest is not None
        parts = [] if merge is None else _parts(stage, folder, state.digest, merge)
        inputs = folder.path / "INPUTS"
        former = inputs.read_text(encoding="utf-8") if inputs.is_file() else None
        if state.state == "stale":
            print("its inputs changed: the former outputs move to stale/")
            folder.set_aside()
        if former != state.digest or folder.done() is not None:
            # only an interrupted training of the very same inputs goes on; a finished one that is no longer intact,
            # or one of other inputs, begins anew
            _move_owned(run, stage.owns, folder.path)
        write_text(inputs, state.digest)
        start = time.perf_counter()
        if stage.shards is not None and merge is not None:
            outputs = stage.shards.merge(run, folder.path, parts)
        else:
            outputs = stage.body(run, folder.path, folder.progress)
        folder.finish(state.digest, outputs)
        write_json(
            folder.path / "time.json",
            {"seconds": round(time.perf_counter() - start, 1), "peak_memory_gib": peak_memory()},
        )
        (folder.path / "progress.json").unlink(missing_ok=True)
        shutil.rmtree(folder.path / "shards", ignore_errors=True)
    return True


def do_shard(
    run: RunFolder, name: str, index: int, count: int, *, digest: str | None = None, wait: bool = False
) -> bool:
    """Runs one part of the stage unless it, or the whole stage, is current (then False). Errors as of ``do_stage``."""
    stages = plan(run.experiment)
    stage = find(stages, name)
    if stage.shards is None:
        raise ValueError(f"stage {name} can't be split; only exams run in shards")
    if not 0 <= index < count:
        raise ValueError(f"shard {index}/{count}: the index must lie in 0..{count - 1}")
    folder = run.stage(name).shard(index, count)
    with _lock(folder, wait):
        state = _state(run, stages, name, digest)
        assert state.digest is not None
        done = folder.done()
        if state.state == "done" or (done is not None and done.inputs == state.digest):
            return False
        (folder.path / "DONE").unlink(missing_ok=True)
        outputs = stage.shards.part(run, folder.path, folder.progress, index, count)
        folder.finish(state.digest, outputs)
    return True


def follow(run: RunFolder, name: str) -> None:
    """Takes part in a stage that another node of this job leads: its body knows what a follower does.

    Waits until the leader has the stage, so that nothing of former inputs is taken for its own."""
    stages = plan(run.experiment)
    stage = find(stages, name)
    folder = run.stage(name)
    while True:
        state = _state(run, stages, name, None)
        if state.state == "done":
            return
        holder = folder.holder()
        inputs = folder.path / "INPUTS"
        led = holder is not None and holder.get("job") == os.environ.get("SLURM_JOB_ID")
        if led and inputs.is_file() and inputs.read_text(encoding="utf-8") == state.digest:
            break
        time.sleep(POLL_S)
    own = StageFolder(folder.path / "followers" / os.environ["SLURM_NODEID"])
    stage.body(run, own.path, own.progress)


def _state(run: RunFolder, stages: list[Stage], name: str, digest: str | None) -> State:
    """Where the stage stands. ValueError if it can't be done now, or its inputs are not the expected ones."""
    state = next(s for s in states(run, stages) if s.stage.name == name)
    if state.digest is None:
        needs = ", ".join(state.stage.needs)
        raise ValueError(f"stage {name} needs {needs}, and not all of them are done; run them first")
    if digest is not None and digest != state.digest:
        raise ValueError(f"the inputs of stage {name} changed while the experiment was running; run it again")
    return state


def _parts(stage: Stage, folder: StageFolder, digest: str, count: int) -> list[Path]:
    """The folders of all shards. ValueError if the stage has none, or names the shards that are not done."""
    if stage.shards is None:
        raise ValueError(f"stage {stage.name} can't be split; only exams run in shards")
    parts = [folder.shard(index, count) for index in range(count)]
    missing = [str(index) for index, part in enumerate(parts) if (done := part.done()) is None or done.inputs != digest]
    if missing:
        raise ValueError(f"stage {stage.name}: shards {', '.join(missing)} of {count} are not done; run them first")
    return [part.path for part in parts]


@contextlib.contextmanager
def _lock(folder: StageFolder, wait: bool) -> Iterator[None]:
    told = False
    while True:
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(folder.lock())
            except StageBusy as busy:
                if not wait:
                    raise
                if not told:
                    print(f"{busy}: waiting", flush=True)
                told = True
            else:
                yield
                return
        time.sleep(POLL_S)


def peak_memory() -> float:
    """GiB of the largest process so far: this one, or one that it started and that has ended. Not a GPU's memory."""
    import resource

    largest = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(largest / (1024**3 if sys.platform == "darwin" else 1024**2), 2)


def _move_owned(run: RunFolder, owns: tuple[str, ...], folder: Path) -> None:
    for owned in owns:
        if (run.path / owned).exists():
            target = folder / "stale" / str(time.time_ns())
            target.mkdir(parents=True)
            shutil.move(run.path / owned, target)


def end_with_runner() -> None:
    """If a runner started this process ($PROCTOR_RUNNER), end when it is gone, whatever the main thread is doing."""
    runner = os.environ.pop("PROCTOR_RUNNER", None)
    if runner is None:
        return
    if int(runner) != os.getppid():  # it was killed before this process came so far
        os._exit(70)

    def watch() -> None:
        while os.getppid() == int(runner):
            time.sleep(0.5)
        os._exit(70)

    threading.Thread(target=watch, name="runner-watch", daemon=True).start()
