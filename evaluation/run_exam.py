"""One protocol on a list of items: what an exam stage and ``proctor evaluate`` both do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation.items import Item
from evaluation.protocol import ExamProtocol, GroupProtocol, Held, Record
from evaluation.show.plate import draw
from serving.files import read_json, read_jsonl, write_json, write_jsonl
from serving.ledger import Ledger
from serving.model.spec import ModelSpec
from serving.records import Dialogue
from serving.role_engines import Cast, Mode
from serving.scheduler import run_dialogues, wave_size
from serving.scheduler import shard as waves_of

Report = Callable[[int, int, str], None]
"""(done, total, note): progress of a stage."""

SINGLE_STEP = {"static", "prefilter"}
FULL_WAVE = 64
"""Dialogues in a wave from which on two waves at once are faster than one twice as large (design: the cost model)."""


def examine(
    protocol: ExamProtocol | GroupProtocol,
    items: Sequence[Item],
    *,
    models: Mapping[str, ModelSpec],
    mode: Mode,
    folder: Path,
    ledger_folder: Path,
    wave: int | None,
    report: Report,
    extra: Callable[[Item], Mapping[str, Any]] = lambda item: {},
    max_failure_rate: float = 1.0,
    shard: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Runs the protocol and writes records.jsonl, metrics.json and usage.json into ``folder``; returns the metrics.

    extra: fields added to each record after the protocol's own (e.g. the half an item belongs to)
    max_failure_rate: share of items without a result above which this is a RuntimeError (the files are written all the
        same, for whoever looks into it)
    shard: (index, count): only that part's whole waves, so that every batch is one of the whole exam's; no metrics
    """
    largest = min(spec.max_num_seqs for spec in models.values())
    size = wave or wave_size(len(items), largest, single_step=protocol.name in SINGLE_STEP)
    chosen = list(range(len(items))) if shard is None else _positions(len(items), size, *shard)
    everything = list(protocol.dialogues(items))
    records = converse(
        [everything[position] for position in chosen],
        models=models,
        mode=mode,
        folder=folder,
        ledger_folder=ledger_folder,
        wave=size,
        report=report,
        doing="examining",
    )
    rows = [{**record, **extra(items[position])} for record, position in zip(records, chosen, strict=True)]
    if shard is not None:
        write_jsonl(folder / "records.jsonl", rows)
        return {}
    return _conclude(protocol, rows, mode, folder, max_failure_rate)


def converse(
    dialogues: Sequence[Dialogue[Record]],
    *,
    models: Mapping[str, ModelSpec],
    mode: Mode,
    folder: Path,
    ledger_folder: Path,
    wave: int,
    report: Report,
    doing: str,
) -> list[Record]:
    """Runs dialogues to their ends, tells the progress, and writes what it cost into ``folder``/usage.json."""
    ledger = Ledger(ledger_folder)
    done = 0

    def note(text: str) -> None:
        report(done, len(dialogues), text)

    def finished(count: int) -> None:
        nonlocal done
        done += count
        report(done, len(dialogues), doing)

    with Cast(models, ledger=ledger, mode=mode, on_start=note) as cast:
        flight = 2 if cast.side_by_side and wave >= FULL_WAVE else 1
        records = run_dialogues(dialogues, cast, wave=wave, waves_in_flight=flight, on_done=finished)
        usage = {role: asdict(value) for role, value in cast.usage.items()}
    ledger.close()
    write_json(folder / "usage.json", {"roles": usage, "ledger_bad_lines": ledger.bad_lines, "wave": wave})
    return records


def merge(
    protocol: ExamProtocol | GroupProtocol,
    items: Sequence[Item],
    parts: Sequence[Path],
    *,
    mode: Mode,
    folder: Path,
    max_failure_rate: float = 1.0,
) -> dict[str, Any]:
    """The files of an exam from the folders of all its shards, as ``examine`` would have written them."""
    accounts = [read_json(part / "usage.json") for part in parts]
    size = int(accounts[0]["wave"])
    rows: list[dict[str, Any]] = [{}] * len(items)
    for index, part in enumerate(parts):
        positions = _positions(len(items), size, index, len(parts))
        for position, row in zip(positions, read_jsonl(part / "records.jsonl"), strict=True):
            rows[position] = row
    roles: dict[str, dict[str, float]] = {}
    for account in accounts:
        for role, usage in account["roles"].items():
            total = roles.setdefault(role, dict.fromkeys(usage, 0))
            for key, value in usage.items():
                total[key] += value
    bad = sum(account["ledger_bad_lines"] for account in accounts)
    write_json(folder / "usage.json", {"roles": roles, "ledger_bad_lines": bad, "wave": size, "shards": len(parts)})
    return _conclude(protocol, rows, mode, folder, max_failure_rate)


def _positions(items: int, size: int, index: int, count: int) -> list[int]:
    """Where in the exam the items of a shard stand."""
    everything = range(items)
    return list(waves_of([everything[start : start + size] for start in range(0, items, size)], index, count))


def _conclude(
    protocol: ExamProtocol | GroupProtocol,
    rows: list[dict[str, Any]],
    mode: Mode,
    folder: Path,
    max_failure_rate: float,
) -> dict[str, Any]:
    metrics = {"protocol": protocol.name, "schedule": mode, **protocol.summarise(rows)}
    write_jsonl(folder / "records.jsonl", rows)
    write_json(folder / "metrics.json", metrics)
    failures = int(metrics.get("unscored", 0))
    if failures > max_failure_rate * len(rows):
        raise RuntimeError(
            f"{failures} of {len(rows)} items have no result, more than max_failure_rate {max_failure_rate:g} allows; "
            f"read {folder / 'records.jsonl'}, then mend the models or options, or raise max_failure_rate"
        )
    return metrics


def draw_group(protocol: GroupProtocol, metrics: Mapping[str, Any], folder: Path) -> list[str]:
    """The figures that a group's protocol draws of itself, written into ``folder``; their files' names."""
    plots = getattr(protocol, "plots", None)
    if plots is None:
        return []
    drawings = draw(lambda: plots({"": Held(options={}, metrics=metrics)}, {}), folder)
    return [Path(file).name for drawing in drawings for file in drawing.files]
