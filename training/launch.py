"""Where a phase runs: in this process, or in workers that torchrun starts.

A phase is a folder: ``task.json`` (what to do), ``rows.npz`` (the rows, in training order); when it is done ``model/``
or ``adapter/`` and, last, ``trained.json``. ``python -m training.launch FOLDER`` is one worker.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from serving.files import write_text
from training.agent import AGENT_VARIABLE, PARENT_VARIABLE
from training.config import TrainingConfig
from training.interrupt import Interrupted, forget_stop, stop_on_signal, stop_wanted
from training.trainer import Trained

WATCH_SECONDS = 0.5
NODE_VARIABLES = ("PROCTOR_NODE_RANK", "SLURM_NODEID")


def wait_politely() -> None:
    """Lets OpenMP's threads sleep where they wait for each other. No effect once torch is loaded.

    By default they spin. On a machine whose cores are shared that was measured to make a training step up to ten times
    slower (2 cores with another busy process: 32 s spinning, 2.7 s sleeping; alone there is hardly a difference).
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


class WorkerError(RuntimeError):
    """A worker failed; the message is the worker's own error."""


def node_rank() -> int:
    """Which of a job's nodes this is, 0 for the first."""
    return next((int(os.environ[name]) for name in NODE_VARIABLES if os.environ.get(name, "").isdigit()), 0)


def write_task(folder: Path, *, name: str, start: Path, config: TrainingConfig, logs: Path, pad_id: int) -> None:
    """Describes the phase to whoever trains it; written last, so that its presence means that the folder is ready."""
    task = {"name": name, "start": str(start), "config": config.model_dump(mode="json"), "logs": str(logs)}
    write_json(folder / "task.json", {**task, "pad_id": pad_id})


def train_folder(folder: Path) -> Trained:
    """Trains the phase of a folder in this process (one of several, under torchrun)."""
    from training.rows import load_rows
    from training.trainer import train

    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    trained = train(
        Path(task["start"]),
        load_rows(folder / "rows.npz"),
        TrainingConfig(**task["config"]),
        name=task["name"],
        folder=folder,
        logs=Path(task["logs"]),
        pad_id=task["pad_id"],
    )
    if int(os.environ.get("RANK", "0")) == 0:
        write_json(folder / "trained.json", asdict(trained))
    return trained


def launch(folder: Path, config: TrainingConfig) -> Trained:
    """Trains the phase of a folder and waits for it. Interrupted if asked to stop; the worker's error if it fails."""
    forget_stop(folder)
    for name in ("error.json", "interrupted"):
        (folder / name).unlink(missing_ok=True)
    with stop_on_signal(folder):
        if not config.launched:
            return train_folder(folder)
        code = run_agent(folder, config)
    return outcome(folder, code)


def outcome(folder: Path, code: int) -> Trained:
    """What the workers of a phase left behind: the result, or the error to raise."""
    if (folder / "trained.json").exists():
        return Trained(**json.loads((folder / "trained.json").read_text(encoding="utf-8")))
    if (folder / "interrupted").exists():
        raise Interrupted((folder / "interrupted").read_text(encoding="utf-8"))
    if (folder / "error.json").exists():
        error = json.loads((folder / "error.json").read_text(encoding="utf-8"))
        raise {"ValueError": ValueError, "memory": MemoryError}.get(error["kind"], WorkerError)(error["text"])
    if stop_wanted(folder):
        raise Interrupted(f"{folder.name}: stopped before its first step; run again to go on")
    raise WorkerError(f"torchrun ended with code {code} and no worker said why (killed for memory? see the log above)")


def meeting_point(config: TrainingConfig) -> str:
    """host:port where the nodes of a job find each other. ValueError if it is left to a script that did not say."""
    if config.rendezvous != "auto":
        return str(config.rendezvous)
    place = os.environ.get("PROCTOR_RENDEZVOUS")
    if not place:
        raise ValueError("rendezvous is auto, but PROCTOR_RENDEZVOUS is not set; submit it as a job, or set host:port")
    return place


def run_agent(folder: Path, config: TrainingConfig) -> int:
    """Starts torchrun on this node for the phase and waits for it; its exit code."""
    where = (
        ["--standalone", "--nnodes", "1"]
        if config.nodes == 1
        else [
            *("--nnodes", str(config.nodes), "--node-rank", str(node_rank())),
            *("--rdzv-backend", "c10d", "--rdzv-endpoint", meeting_point(config), "--rdzv-id", folder.name),
        ]
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    environment = {
        **os.environ,
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")])),
        "PYTHONWARNINGS": os.environ.get("PYTHONWARNINGS", "ignore::FutureWarning"),
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE"),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(1, cores // config.processes))),
        PARENT_VARIABLE: str(os.getpid()),
    }
    command = [sys.executable, "-m", "training.agent", *where, "--nproc-per-node", str(config.processes)]
    agent = subprocess.Popen([*command, "-m", "training.launch", str(folder)], env=environment)  # noqa: S603
    try:
        return agent.wait()
    except BaseException:
        agent.kill()
        agent.wait()
        raise


def work(folder: Path) -> int:
    """One worker, from torchrun's start to its exit code. What went wrong is left in ``error.json`` for the parent."""
    threading.Thread(target=_watch, args=(int(os.environ[AGENT_VARIABLE]), folder), daemon=True).start()
    with stop_on_signal(folder):
        try:
            train_folder(folder)
        except Interrupted as stop:
            (folder / "interrupted").write_text(str(stop), encoding="utf-8")
        except Exception as error:
            traceback.print_exc()
            _leave_error(folder, error)
            return 1
    return 0


def write_json(path: Path, value: Any) -> None:
    """Indented JSON, whole or not at all; a loss may be NaN."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _leave_error(folder: Path, error: Exception) -> None:
    from training.memory import is_out_of_memory

    kind = "memory" if is_out_of_memory(error) else "ValueError" if isinstance(error, ValueError) else "other"
    if not (folder / "error.json").exists():
        write_json(folder / "error.json", {"kind": kind, "text": f"{error}" or type(error).__name__})


def _watch(agent: int, folder: Path) -> None:
    """Ends this worker, and compilers it has started, when the agent is gone or another worker has failed."""
    while True:
        time.sleep(WATCH_SECONDS)
        if os.getppid() != agent or (folder / "error.json").exists():
            if os.getppid() == agent:
                time.sleep(2 * WATCH_SECONDS)  # let a worker that has failed itself print its traceback
            if os.getpgrp() == os.getpid():
                os.killpg(os.getpgrp(), signal.SIGKILL)
            os._exit(1)


if __name__ == "__main__":
    sys.exit(work(Path(sys.argv[1])))
