"""Does one stage, in this process: lock, outputs, DONE."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from pathlib import Path

from proctor.atomic import write_json, write_text
from proctor.plan import find, plan, states
from proctor.runfolder import RunFolder


def do_stage(run: RunFolder, name: str, *, digest: str | None = None) -> bool:
    """Runs the stage unless it is current (then False).

    digest: what the runner expects its inputs to be. StageBusy if another process has the stage; ValueError if a stage
    it needs is not done, or if its inputs are not the expected ones (the experiment changed under way).
    """
    stages = plan(run.experiment)
    stage = find(stages, name)
    folder = run.stage(name)
    with folder.lock():
        state = next(s for s in states(run, stages) if s.stage.name == name)
        if state.digest is None:
            raise ValueError(
                f"stage {name} needs {', '.join(stage.needs)}, and not all of them are done; run them first"
            )
        if digest is not None and digest != state.digest:
            raise ValueError(f"the inputs of stage {name} changed while the experiment was running; run it again")
        if state.state == "done":
            return False
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
        outputs = stage.body(run, folder.path, folder.progress)
        folder.finish(state.digest, outputs)
        write_json(
            folder.path / "time.json",
            {"seconds": round(time.perf_counter() - start, 1), "peak_memory_gib": peak_memory()},
        )
        (folder.path / "progress.json").unlink(missing_ok=True)
    return True


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
