"""A job's sbatch script: readable, editable, and runnable by hand with ``sbatch``."""

from __future__ import annotations

import shlex
from pathlib import Path

from slurm.job import Job
from slurm.profile import Profile

TEMPLATES = Path(__file__).parent / "templates"


def render(job: Job, profile: Profile, *, run: Path, prefix: str, array: str | None = None) -> str:
    """The text of the script.

    run: folder the job works in; prefix: put before its name in the queue
    array: which tasks (``0-7``, ``2,5``); all of the job's shards where None
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - makes bash, not HTML; every value is quoted by a filter
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["quote"] = shlex.quote
    environment.filters["words"] = shlex.join
    environment.filters["expandable"] = expandable
    environment.filters["directive"] = directive
    own = profile.resources(job.name, job.kind)
    gpus = job.gpus if profile.gpus_per_node else 0
    text = environment.get_template("stage.sbatch.jinja").render(
        job=job,
        profile=profile,
        run=run,
        queue_name=f"{prefix}.{job.name}",
        partition=own.partition or profile.partition,
        qos=own.qos or profile.qos,
        constraint=own.constraint or profile.constraint,
        time=own.time or profile.time,
        gpus=gpus,
        cpus=own.cpus or (gpus * profile.cpus_per_gpu if gpus else profile.cpus),
        memory=own.memory or (_times(profile.memory_per_gpu, gpus) if gpus else profile.memory),
        array=None if not job.shards else array or f"0-{job.shards - 1}",
    )
    return text.rstrip("\n") + "\n"


def directive(value: object) -> str:
    """A value of an #SBATCH line, in quotes where it holds blanks. ValueError for what sbatch can't read."""
    text = str(value)
    if any(character in text for character in '"\\\n'):
        raise ValueError(f"{text!r} can't stand in an sbatch script; use a folder without quotes and backslashes")
    return f'"{text}"' if any(character in text for character in " #'") else text


def expandable(value: str) -> str:
    """Quoted for bash, with the node's variables still expanded. ValueError for anything else that bash would run."""
    if any(character in value for character in '`"\\\n') or "$(" in value:
        raise ValueError(f"{value!r} may hold variables ($NAME), but no quotes, backslashes or commands")
    return f'"{value}"'


def _times(memory: str | None, count: int) -> str | None:
    if memory is None:
        return None
    unit = memory[-1] if memory[-1].isalpha() else ""
    return f"{int(memory.removesuffix(unit)) * count}{unit}"
