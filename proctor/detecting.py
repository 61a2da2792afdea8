"""The chosen detectors on a list of texts: what the detect stage and ``proctor detect`` both do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from detection.audit import Record, audit_dialogue, score_lines, summarise
from detection.detectors import build
from detection.detectors.base import Text
from proctor.atomic import write_json, write_jsonl, write_text
from proctor.examining import Report
from serving.cast import Cast, Mode
from serving.ledger import Ledger
from serving.models import ModelSpec
from serving.scheduler import run_dialogues, wave_size


def detect(
    texts: Sequence[Text],
    methods: Sequence[str],
    *,
    model: ModelSpec,
    mode: Mode,
    folder: Path,
    ledger_folder: Path,
    seed: int,
    report: Report,
) -> list[Record]:
    """Scores the texts and writes scores.jsonl, metrics.json, records.jsonl and usage.json into ``folder``."""
    detectors = build(methods)
    ledger = Ledger(ledger_folder)
    done = 0

    def finished(count: int) -> None:
        nonlocal done
        done += count
        report(done, len(texts), "scoring")

    with Cast(
        {"candidate": model}, ledger=ledger, mode=mode, on_start=lambda note: report(done, len(texts), note)
    ) as cast:
        size = wave_size(len(texts), model.max_num_seqs, single_step=True)
        records = run_dialogues([audit_dialogue(text, detectors) for text in texts], cast, wave=size, on_done=finished)
        usage = {role: asdict(value) for role, value in cast.usage.items()}
    ledger.close()
    write_jsonl(folder / "records.jsonl", records)
    write_text(folder / "scores.jsonl", "".join(line.rstrip("\n") + "\n" for line in score_lines(records)))
    write_json(folder / "metrics.json", clean(summarise(records, seed)))
    write_json(folder / "usage.json", {"roles": usage, "ledger_bad_lines": ledger.bad_lines, "wave": size})
    return records


def clean(value: Any) -> Any:
    """JSON-ready: NaN and infinities become null."""
    return json.loads(json.dumps(value), parse_constant=lambda name: None)
