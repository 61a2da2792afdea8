"""The jobs of a run that were submitted, as the run folder remembers them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from serving.files import read_json
from slurm import submitter

FOLDER = "slurm"


SHARDS = ".shards"


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """A job as it was submitted. intent: digest of all that decides what it computes, upstream stages included"""

    job: str
    intent: str
    shards: int
    time: str


def submitted(run: Path) -> dict[str, Submitted]:
    """The last job of each name."""
    found = {}
    for file in sorted((run / FOLDER).glob("*.json")):
        row = read_json(file)
        try:
            found[file.stem] = Submitted(**row)
        except TypeError:
            raise ValueError(f"{file} is damaged; remove it and submit again") from None
    return found


def active_jobs(run: Path) -> dict[str, Submitted]:
    """Those that SLURM has not ended."""
    jobs = submitted(run)
    found = submitter.entries([one.job for one in jobs.values()])
    return {name: one for name, one in jobs.items() if any(entry.active for entry in found.get(one.job, []))}
