"""Where each stage of a run stands: from its markers, its lock and progress, and from SLURM where it has a job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.cluster.jobs import SHARDS, Submitted, submitted
from proctor.cluster.serve_jobs import PREFIX
from proctor.run_folder.run import RunFolder
from proctor.run_folder.stage import StageFolder
from proctor.runner.plan import State, plan, states
from serving.endpoint import read_endpoint
from slurm import submitter
from slurm.submitter import Entry


def standing(run: RunFolder) -> list[str]:
    """One line per stage: name, state, job, node, elapsed, progress, and of what failed the last line of its log."""
    jobs = submitted(run.path)
    lines = []
    try:
        entries = submitter.entries([one.job for one in jobs.values()]) if jobs else {}
    except (ValueError, submitter.SlurmError) as error:
        entries = {}
        lines.append(f"SLURM can't be asked ({error}); what follows is from the run folder alone")
    for state in states(run, plan(run.experiment)):
        name = state.stage.name
        lines.append(_stage_line(run, state, jobs.get(name), entries))
        array = jobs.get(name + SHARDS)
        if array is not None and state.state != "done":
            lines += _array_lines(run.stage(name), name, array, entries.get(array.job, []))
    lines += [_server_line(run, name, jobs[name], entries) for name in jobs if name.startswith(PREFIX)]
    return lines


def _server_line(run: RunFolder, name: str, job: Submitted, entries: dict[str, list[Entry]]) -> str:
    """A served model's job: what SLURM says, and where it serves."""
    entry = next(iter(entries.get(job.job, [])), None)
    endpoint = read_endpoint(run.path / "serving" / f"{name.removeprefix(PREFIX)}.json")
    log = run.path / "serving" / f"{name}.txt"
    if entry is None:
        return f"{name:28} {'unknown':12} job {job.job} (unknown to SLURM)"
    if entry.state == "RUNNING":
        up = endpoint is not None and not endpoint.ended
        shown, note = ("serving", endpoint.url) if up and endpoint is not None else ("loading", "")
    elif entry.state == "COMPLETED":
        shown, note = "ended", "no stage needed it any more"
    else:
        shown, note = _of_job(entry, "failed", "")
        if not entry.active:
            note = f"{note} | {last_line(log)[:160]}".rstrip(" |")
    return f"{name:28} {shown:12} job {entry.job} {entry.node or '-'} {entry.elapsed or '-'}  {note}".rstrip()


def _stage_line(run: RunFolder, state: State, job: Submitted | None, entries: dict[str, list[Entry]]) -> str:
    name = state.stage.name
    folder = run.stage(name)
    holder = folder.holder()
    progress = folder.read_progress()
    entry = next(iter(entries.get(job.job, [])), None) if job is not None else None
    shown, note = state.state, ""
    if holder is not None:
        shown = "running"
        note = f"process {holder['pid']} on {holder['host']}"
    elif state.state in ("ready", "stale") and progress:
        shown = "interrupted"
    if entry is not None and state.state != "done":
        shown, note = _of_job(entry, shown, note)
    if progress and shown in ("running", "interrupted", "queued"):
        note = f"{progress.get('done')}/{progress.get('total')} {progress.get('note', '')} {note}".rstrip()
    if shown in ("interrupted", "failed", "timeout", "killed", "cancelled"):
        last = last_line(folder.path / "log.txt")
        note += f" | {last[:160]}" if last else ""
    where = "" if entry is None else f"job {entry.job} {entry.node or '-'} {entry.elapsed or '-'}  "
    return f"{name:28} {shown:12} {where}{note}".rstrip()


def _of_job(entry: Entry, shown: str, note: str) -> tuple[str, str]:
    """What the job says beside the markers: (state, note)."""
    if entry.state == "RUNNING":
        return ("running" if shown == "running" else "starting"), note
    if entry.state == "COMPLETING":
        return "ending", note
    if entry.active:
        return "queued", f"({entry.reason})" if entry.reason not in ("", "None") else ""
    if shown == "running":  # by another process: its former job has ended
        return shown, note
    ended = {"CANCELLED": "cancelled", "TIMEOUT": "timeout", "OUT_OF_MEMORY": "killed", "COMPLETED": shown}
    reason = f"({entry.state}{', ' + entry.reason if entry.reason not in ('', 'None') else ''})"
    return ended.get(entry.state, "failed"), "" if entry.state == "COMPLETED" else reason


def _array_lines(folder: StageFolder, name: str, array: Submitted, entries: Sequence[Entry]) -> list[str]:
    """A line of progress over all shards, and one for every task that did not end well."""
    counts: dict[str, int] = {}
    done = total = finished = 0
    for index in range(array.shards):
        part = folder.shard(index, array.shards)
        finished += part.done() is not None
        progress = part.read_progress()
        done += int(progress.get("done", 0))
        total += int(progress.get("total", 0))
    nodes: list[str] = []
    failed = []
    for entry in entries:
        count = len(_indices(entry.task))
        state = "queued" if entry.state == "PENDING" else entry.state.lower()
        counts[state] = counts.get(state, 0) + count
        if entry.node and entry.active and entry.node not in nodes:
            nodes.append(entry.node)
        if not entry.active and entry.state != "COMPLETED":
            last = last_line(folder.path / f"log.{entry.task}.txt") if entry.task.isdigit() else ""
            failed.append(f"  {name} shard {entry.task:<5} {entry.state.lower():12} {last[:160]}".rstrip())
    said = ", ".join(f"{count} {state}" for state, count in counts.items())
    line = f"  shards of {name}: {finished}/{array.shards} done; job {array.job}: {said or 'unknown to SLURM'}"
    if total:
        line += f"; {done} items done of {total} begun"
    if nodes:
        line += f"; on {', '.join(nodes)}"
    return [line, *failed]


def _indices(task: str) -> list[int]:
    """``2-4,7`` and ``0-7%4`` as indices."""
    found: list[int] = []
    for part in task.partition("%")[0].strip("[]").split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            found += range(int(first), int(last.partition(":")[0] or first) + 1)
    return found


def last_line(log: Path) -> str:
    """The last line of a log that says something: an error before what comes after it."""
    if not log.is_file():
        return ""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 20_000))
        lines = stream.read().decode("utf-8", "replace").replace("\r", "\n").split("\n")
    begin = max((i for i, line in enumerate(lines) if line.startswith("--- ")), default=0)
    said = [line.strip() for line in lines[begin:] if line.strip()]
    errors = [line for line in said if line.startswith("error: ")]
    return (errors or said or [""])[-1]
