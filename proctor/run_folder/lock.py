"""Who has a stage: a lock of the kernel for as long as it lives, and beside it a file that says whose it is.

``LOCK.guard`` is locked (flock) by the holder, and the kernel lets go of it however the holder ends. That is seen in
other containers of a machine, and on other machines where the file system carries locks (NFS; Lustre with -o flock).
``LOCK`` names the holder: host, boot, PID namespace, process and SLURM job; it is touched every 10 s. It decides where
the kernel's word does not reach: by the process itself in its own namespace, elsewhere by its job, or its heartbeat.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from serving.files import write_text

HEARTBEAT_S = 10.0
STALE_S = 90.0
"""Seconds without a heartbeat after which a holder that can't be asked is taken for dead."""


class StageBusy(RuntimeError):
    """Another live process holds the stage."""


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Holds the folder for this process. StageBusy if a live process has it; a dead one's lock is taken over."""
    folder.mkdir(parents=True, exist_ok=True)
    # readable by its owner only: who may read a shared folder, and not write, could otherwise lock it, too
    guard = os.open(folder / "LOCK.guard", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o622)
    try:
        try:
            fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
            kernel = True
        except BlockingIOError:
            raise _busy(folder, _owner(folder)) from None
        except OSError:  # a file system without locks: two that begin within milliseconds may both begin
            kernel = False
        os.utime(guard)
        holder = find_holder(folder, now=os.fstat(guard).st_mtime, freed=kernel)
        if holder is not None:
            raise _busy(folder, holder)
        with _named(folder / "LOCK", kernel):
            yield
    finally:
        os.close(guard)


@contextlib.contextmanager
def _named(file: Path, kernel: bool) -> Iterator[None]:
    """While open, ``file`` says who this process is, and shows that it is alive."""
    owner = {
        "host": socket.gethostname(),
        "boot": boot(),
        "namespace": namespace(),
        "pid": os.getpid(),
        "start": process_start(os.getpid()),
        "job": os.environ.get("SLURM_JOB_ID"),
        "kernel": kernel,
    }
    text = json.dumps(owner)
    write_text(file, text)
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(HEARTBEAT_S):
            with contextlib.suppress(OSError):
                os.utime(file)

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
        with contextlib.suppress(OSError):
            if file.read_text(encoding="utf-8") == text:
                file.unlink()


def find_holder(folder: Path, *, now: float | None = None, freed: bool = False) -> dict[str, Any] | None:
    """Who holds the folder and is alive, as far as its LOCK can tell; None if nobody.

    now: the time by the file system's clock, which the heartbeat is of (None: this machine's)
    freed: this process has the kernel's lock, so nobody of this boot has it who had it
    """
    owner = _owner(folder)
    if owner is None:
        return None
    try:
        age = (time.time() if now is None else now) - (folder / "LOCK").stat().st_mtime
    except OSError:
        return None
    if owner.get("boot") and owner["boot"] == boot():
        if freed and owner.get("kernel"):
            return None
        if owner.get("namespace") == namespace():
            return owner if owner["start"] is not None and owner["start"] == process_start(owner["pid"]) else None
    job = owner.get("job")
    if job and job != os.environ.get("SLURM_JOB_ID"):  # this very job, restarted on another node, seems alive
        from slurm.submitter import alive

        known = alive(str(job))
        if known is not None:
            return owner if known else None
    return owner if abs(age) < STALE_S else None  # dated ahead: no heartbeat either


def _owner(folder: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((folder / "LOCK").read_text(encoding="utf-8"))
        return {**found, "host": str(found["host"]), "pid": int(found["pid"]), "start": found["start"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _busy(folder: Path, owner: dict[str, Any] | None) -> StageBusy:
    who = f"process {owner['pid']} on {owner['host']}" if owner else "another process"
    inside = " (of another PID namespace)" if owner and owner.get("namespace") not in (None, namespace()) else ""
    return StageBusy(f"{folder.name} is being run by {who}{inside}; wait for it, or end it and run again")


def boot() -> str:
    """Which start of which machine this is; "" where the kernel doesn't say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def namespace() -> str:
    """The namespace that process numbers are of; "" where the kernel doesn't say."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def process_start(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot (None: no such process, or a zombie): tells a pid from its
    re-use."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else int(fields[19])
