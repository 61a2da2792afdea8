"""Who has a stage: a lock that no other process takes over while its holder lives, wherever that runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from proctor.run_folder import lock as locks
from proctor.run_folder.lock import StageBusy, boot, find_holder, hold, namespace, process_start

HOLD = """
import sys, time
from pathlib import Path
from proctor.run_folder.stage import StageFolder
with StageFolder(Path(sys.argv[1])).lock():
    print("held", flush=True)
    time.sleep(60)
"""


def holder(folder: Path, *before: str) -> subprocess.Popen[str]:
    """A process that holds the folder, started by ``before``."""
    command = [*before, sys.executable, "-c", HOLD, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def row(**changes: Any) -> dict[str, Any]:
    """What LOCK says of a holder of this machine that has died."""
    return {
        "host": os.uname().nodename,
        "boot": boot(),
        "namespace": namespace(),
        "pid": 2**22 - 3,
        "start": 1,
    } | changes


def leave(folder: Path, age: float = 0.0, **changes: Any) -> None:
    (folder / "LOCK").write_text(json.dumps(row(**changes)))
    os.utime(folder / "LOCK", (time.time() - age, time.time() - age))


def is_busy(folder: Path) -> bool:
    try:
        with hold(folder):
            return False
    except StageBusy:
        return True


def test_a_lock_of_the_dead_is_taken_over_by_one(tmp_path: Path) -> None:
    leave(tmp_path)
    with hold(tmp_path), pytest.raises(StageBusy, match=str(os.getpid())), hold(tmp_path):
        pass
    assert not (tmp_path / "LOCK").exists()
    with hold(tmp_path):
        (tmp_path / "LOCK").write_text("someone else's")
    assert (tmp_path / "LOCK").exists()


def test_a_killed_holder_lets_go_at_once(tmp_path: Path) -> None:
    process = holder(tmp_path)
    with pytest.raises(StageBusy, match=f"is being run by process {process.pid} on"), hold(tmp_path):
        pass
    end(process)
    assert (tmp_path / "LOCK").exists()
    assert not is_busy(tmp_path)


def test_a_living_lock_is_not_taken_over_from_another_namespace(tmp_path: Path) -> None:
    """Process 1 of a container is another one here: by its number alone it seemed dead."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and util-linux's unshare, for a PID namespace")
    process = holder(tmp_path, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    try:
        with pytest.raises(StageBusy, match="of another PID namespace"), hold(tmp_path):
            pass
        assert find_holder(tmp_path) is not None, "status shows it, too"
    finally:
        end(process)
    assert not is_busy(tmp_path)


def test_without_a_kernel_lock_the_heartbeat_decides_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of the same name, or a container: its process can't be seen from here."""

    def refuse(*_: object) -> None:
        raise OSError("no locks on this file system")

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    for elsewhere in ({"boot": "another"}, {"namespace": "pid:[1]"}, {"host": "other", "boot": "another"}):
        leave(tmp_path, age=20, **elsewhere)
        assert is_busy(tmp_path)
        leave(tmp_path, age=120, **elsewhere)
        assert not is_busy(tmp_path)
    leave(tmp_path, pid=os.getppid(), start=process_start(os.getppid()), age=1e6)
    assert is_busy(tmp_path), "of this namespace: the process itself decides"


def test_a_kernel_lock_of_another_machine_may_not_be_seen_here(tmp_path: Path) -> None:
    leave(tmp_path, boot="another", kernel=True, age=20)
    assert is_busy(tmp_path)
    leave(tmp_path, kernel=True, namespace="pid:[1]")
    assert not is_busy(tmp_path), "of this machine: the kernel has let go of it"


def test_a_lock_dated_ahead_does_not_block(tmp_path: Path) -> None:
    for owner in ({"boot": "another"}, {"namespace": "pid:[1]"}):
        leave(tmp_path, age=-30 * 86400, **owner)
        assert find_holder(tmp_path) is None
        assert not is_busy(tmp_path)


def test_a_guard_is_nobody_elses(tmp_path: Path) -> None:
    """Who may read a shared folder may not lock it, who may write may; and no link in its place is written through."""
    former = os.umask(0o022)
    try:
        for umask, mode in ((0o022, 0o600), (0o002, 0o620)):
            os.umask(umask)
            with hold(tmp_path):
                assert (tmp_path / "LOCK.guard").stat().st_mode & 0o777 == mode
            (tmp_path / "LOCK.guard").unlink()
    finally:
        os.umask(former)
    (tmp_path / "LOCK.guard").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match=r"LOCK\.guard"), hold(tmp_path):
        pass
    assert not (tmp_path / "precious").exists()


def test_process_start() -> None:
    assert process_start(os.getpid()) is not None
    assert process_start(2**22 - 3) is None
