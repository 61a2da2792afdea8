"""One protocol on a list of items: what an exam stage and ``proctor evaluate`` both do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation.items import Item
from evaluation.protocols.base import ExamProtocol, GroupProtocol
from proctor.atomic import write_json, write_jsonl
from serving.cast import Cast, Mode
from serving.ledger import Ledger
from serving.models import ModelSpec
from serving.scheduler import run_dialogues, wave_size

Report = Callable[[int, int, str], None]
"""(done, total, note): progress of a stage."""

SINGLE_STEP = {"static", "prefilter"}


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
) -> dict[str, Any]:
    """Runs the protocol and writes records.jsonl, metrics.json and usage.json into ``folder``; returns the metrics.

    extra: fields added to each record after the protocol's own (e.g. the half an item belongs to)
    max_failure_rate: share of items without a result above which this is a RuntimeError (the files are written all the
        same, for whoever looks into it)
    """
    ledger = Ledger(ledger_folder)
    done = 0

    def note(text: str) -> None:
        report(done, len(items), text)

    def finished(count: int) -> None:
        nonlocal done
        done += count
        report(done, len(items), "examining")

    dialogues = list(protocol.dialogues(items))
    with Cast(models, ledger=ledger, mode=mode, on_start=note) as cast:
        largest = min(spec.max_num_seqs for spec in models.values())
        size = wave or wave_size(len(items), largest, single_step=protocol.name in SINGLE_STEP)
        records = run_dialogues(dialogues, cast, wave=size, on_done=finished)
        usage = {role: asdict(value) for role, value in cast.usage.items()}
    ledger.close()
    rows = [{**record, **extra(item)} for record, item in zip(records, items, strict=True)]
    metrics = {"schedule": mode, **protocol.summarise(rows)}
    write_jsonl(folder / "records.jsonl", rows)
    write_json(folder / "metrics.json", metrics)
    write_json(folder / "usage.json", {"roles": usage, "ledger_bad_lines": ledger.bad_lines, "wave": size})
    failures = int(metrics.get("unscored", 0))
    if failures > max_failure_rate * len(rows):
        raise RuntimeError(
            f"{failures} of {len(rows)} items have no result, more than max_failure_rate {max_failure_rate:g} allows; "
            f"read {folder / 'records.jsonl'}, then mend the models or options, or raise max_failure_rate"
        )
    return metrics
