"""SLURM's own commands, called with argument lists: submit, look into the queue and the accounts, cancel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ACTIVE = frozenset(
    {"PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED"}
    | {"RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
)
"""States of a job that has not ended."""
TIMEOUT_S = 60


class SlurmError(RuntimeError):
    """SLURM refused, or does not answer."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A job, or one task of an array, as SLURM sees it.

    task: an array's index; of tasks still pending together their range (``2-7``); "" of a plain job
    elapsed: as SLURM writes it, [days-]hours:minutes:seconds; reason: why it waits
    """

    job: str
    task: str
    state: str
    elapsed: str = ""
    node: str = ""
    reason: str = ""

    @property
    def active(self) -> bool:
        return self.state in ACTIVE


def available() -> bool:
    return shutil.which("sbatch") is not None


def submit(script: Path, after: Sequence[str] = (), started: Sequence[str] = ()) -> str:
    """Submits a script and returns its job id. It starts once all jobs in ``after`` have ended well, and all in
    ``started`` have started (or were cancelled); if one of ``after`` ends badly, SLURM removes it. SlurmError with
    SLURM's own words if it is refused."""
    wanted = [f"{kind}:{':'.join(jobs)}" for kind, jobs in (("afterok", after), ("after", started)) if jobs]
    options = [f"--dependency={','.join(wanted)}", "--kill-on-invalid-dep=yes"] if wanted else []
    answer = _call("sbatch", "--parsable", *options, str(script))
    job = answer.strip().splitlines()[-1].partition(";")[0] if answer.strip() else ""
    if not job.isdigit():
        raise SlurmError(f"sbatch {script} gave no job id but: {answer.strip()!r}")
    return job


def queue(jobs: Sequence[str]) -> list[Entry]:
    """What squeue knows of these jobs: all that have not ended, and for some minutes those that have."""
    if not jobs:
        return []
    user = str(os.getuid())
    text = _call("squeue", "--noheader", "--states=all", "--user", user, "--format=%F|%K|%T|%M|%N|%r")
    wanted = set(jobs)
    return [entry for entry in _parse_queue(text) if entry.job in wanted]


def accounts(jobs: Sequence[str]) -> list[Entry]:
    """What sacct knows of these jobs; nothing where the cluster keeps no accounts."""
    if not jobs:
        return []
    try:
        text = _call(
            "sacct", "--noheader", "--parsable2", "--allocations", "--format=JobID,State,Elapsed,NodeList,ExitCode",
            f"--jobs={','.join(jobs)}",
        )  # fmt: skip
    except SlurmError:
        return []
    return _parse_accounts(text)


def entries(jobs: Sequence[str]) -> dict[str, list[Entry]]:
    """Every job's entries: the queue's, or the accounts' where the queue has forgotten it."""
    found: dict[str, list[Entry]] = {}
    for entry in queue(jobs):
        found.setdefault(entry.job, []).append(entry)
    for entry in accounts([job for job in jobs if job not in found]):
        found.setdefault(entry.job, []).append(entry)
    return found


def alive(job: str) -> bool | None:
    """Whether a job, anyone's, has not ended; None where SLURM can't be asked."""
    if not available():
        return None
    try:
        text = _call("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%F|%K|%T|%M|%N|%r")
    except SlurmError as error:
        return False if "Invalid job id" in str(error) else None
    return any(entry.active for entry in _parse_queue(text))


def cancel(jobs: Sequence[str]) -> None:
    if jobs:
        _call("scancel", *jobs)


def _parse_queue(text: str) -> list[Entry]:
    found = []
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) < 6:
            continue
        job, task, state, elapsed, node, reason = (field.strip() for field in fields[:6])
        task = "" if task == "N/A" else task
        found.append(Entry(job=job, task=task, state=state, elapsed=elapsed, node=node, reason=reason))
    return found


def _parse_accounts(text: str) -> list[Entry]:
    found = []
    for line in text.splitlines():
        fields = line.split("|")
        match = re.fullmatch(r"(\d+)(?:_(\d+|\[.*\]))?", fields[0])
        if match is None or len(fields) < 5:
            continue
        state = fields[1].split()[0] if fields[1] else ""  # "CANCELLED by 1000"
        node = "" if fields[3] == "None assigned" else fields[3]
        reason = "" if fields[4] == "0:0" else f"exit code {fields[4].partition(':')[0]}"
        task = (match[2] or "").strip("[]")
        found.append(Entry(job=match[1], task=task, state=state, elapsed=fields[2], node=node, reason=reason))
    return found


def _call(program: str, *arguments: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise ValueError(
            f"{program} is not on this machine; run this on a login node (submit --dry-run works anywhere)"
        )
    try:
        done = subprocess.run(  # noqa: S603 - SLURM's own command, no shell
            [path, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise SlurmError(f"{program} did not answer within {TIMEOUT_S} s; is the cluster's controller up?") from error
    if done.returncode:
        raise SlurmError(f"{program} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
