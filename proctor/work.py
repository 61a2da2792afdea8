"""Does one stage, in this process: lock, outputs, DONE."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

from proctor.atomic import write_json
from proctor.plan import find, plan, states
from proctor.runfolder import RunFolder


def do_stage(run: RunFolder, name: str) -> bool:
    """Runs the stage unless it is current (then False). StageBusy if another process has it; ValueError if a stage it
    needs is not done."""
    stages = plan(run.experiment)
    stage = find(stages, name)
    folder = run.stage(name)
    with folder.lock():
        state = next(s for s in states(run, stages) if s.stage.name == name)
        if state.state == "done":
            return False
        if state.digest is None:
            raise ValueError(
                f"stage {name} needs {', '.join(stage.needs)}, and not all of them are done; run them first"
            )
        if state.state == "stale":
            print("its inputs changed: the former outputs move to stale/")
            folder.set_aside()
            _move_owned(run, stage.owns, folder.path)
        else:
            _forget_half_done(run, stage.owns, state.digest, folder.path / "INPUTS")
        start = time.perf_counter()
        outputs = stage.body(run, folder.path, folder.progress)
        folder.finish(state.digest, outputs)
        write_json(folder.path / "time.json", {"seconds": round(time.perf_counter() - start, 1)})
    return True


def _forget_half_done(run: RunFolder, owns: tuple[str, ...], digest: str, marker: Path) -> None:
    """Half-finished work of other inputs (an interrupted training, then a changed file) can't be resumed."""
    former = marker.read_text(encoding="utf-8").strip() if marker.is_file() else None
    if former is not None and former != digest:
        _move_owned(run, owns, marker.parent)
    marker.write_text(digest, encoding="utf-8")


def _move_owned(run: RunFolder, owns: tuple[str, ...], folder: Path) -> None:
    for owned in owns:
        if (run.path / owned).exists():
            target = folder / "stale" / str(time.time_ns())
            target.mkdir(parents=True)
            shutil.move(run.path / owned, target)


def end_with_runner() -> None:
    """If a runner started this process ($PROCTOR_RUNNER), end when it is gone, whatever the main thread is doing."""
    runner = os.environ.get("PROCTOR_RUNNER")
    if runner is None or int(runner) != os.getppid():
        return

    def watch() -> None:
        while os.getppid() == int(runner):
            time.sleep(0.5)
        os._exit(70)

    threading.Thread(target=watch, name="runner-watch", daemon=True).start()
