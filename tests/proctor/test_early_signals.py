"""SIGUSR1, SLURM's warning before a time limit, at any moment: exit code 75, on which a job goes back to the queue."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import proctor
from proctor.run_folder.run import open_run
from proctor.runner.interruption import Interruption, held_back
from proctor.runner.local import StageFailed, Started, conclude, start_stage
from tests.proctor.scripted import do, scripted


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return do(tmp_path, scripted(), "exam")


def ended(process: subprocess.Popen[bytes]) -> int:
    process.communicate(timeout=60)
    return process.returncode


def test_a_stage_that_was_just_started_is_interrupted_not_killed(run: Path) -> None:
    """Its interpreter is still starting: the runner holds the signal back for it."""
    opened = open_run(run)
    started = start_stage(opened, "kieval.one", "0" * 64)
    started.process.send_signal(signal.SIGUSR1)
    assert ended(started.process) == 75
    assert "error: interrupted; run the same command again" in started.log.read_text()
    with pytest.raises(StageFailed, match="was interrupted") as failed:
        conclude(started)
    assert failed.value.code == 75


@pytest.mark.parametrize("after", [0.2, 0.5, 0.8])
def test_while_a_stage_imports(run: Path, after: float) -> None:
    command = [sys.executable, "-P", "-m", "proctor.cli", "stage", str(run), "kieval.one"]
    with held_back():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(after)
    process.send_signal(signal.SIGUSR1)
    assert ended(process) == 75


def test_a_stage_that_the_signal_killed_was_interrupted(run: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGUSR1)"])
    folder = open_run(run).stage("kieval.one")
    folder.path.mkdir(parents=True)
    (folder.path / "log.txt").touch()
    assert ended(process) == -signal.SIGUSR1
    with pytest.raises(StageFailed) as failed:
        conclude(Started(name="kieval.one", folder=folder, process=process, begin=0, start=0.0))
    assert failed.value.code == 75


def test_an_interruption_keeps_its_exit_code(tmp_path: Path) -> None:
    """A KeyboardInterrupt that arises while Python runs text, as a dataclass is made, ends the interpreter by SIGINT at
    its exit, though it was caught."""
    code = """
import sys
from proctor.runner.interruption import Interruption
def stop(): raise {kind}
try:
    exec("stop()")
except KeyboardInterrupt:
    sys.exit(75)
"""

    def code_of(kind: str) -> int:
        (tmp_path / "stopped.py").write_text(code.format(kind=kind))
        path = {"PYTHONPATH": f"{tmp_path}:{Path(proctor.__file__).parents[1]}"}
        command = [sys.executable, "-m", "stopped"]
        return subprocess.run(command, env={**os.environ, **path}, capture_output=True).returncode

    assert code_of("KeyboardInterrupt") == -signal.SIGINT
    assert code_of("Interruption") == 75
    assert issubclass(Interruption, KeyboardInterrupt)
