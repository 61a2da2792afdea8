"""The chosen detectors on sets of texts: what the detect stage and ``proctor detect`` both do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from detection.audit import audit_dialogue, score_lines, summarise
from detection.detectors import build
from detection.detectors.base import Text
from proctor.atomic import write_json, write_jsonl, write_text
from proctor.examining import Report
from serving.cast import Cast, Mode
from serving.ledger import Ledger
from serving.models import ModelSpec
from serving.scheduler import run_dialogues, wave_size

FILES = ("records.jsonl", "scores.jsonl", "metrics.json")


def detect(
    sets: Mapping[Path, Sequence[Text]],
    methods: Sequence[str],
    *,
    model: ModelSpec,
    mode: Mode,
    ledger_folder: Path,
    seed: int,
    report: Report,
) -> dict[str, Any]:
    """Scores every set of texts, loading the model once, and writes ``FILES`` into the set's folder.

    Returns the usage by role, as measured.
    """
    detectors = build(methods)
    ledger = Ledger(ledger_folder)
    total = sum(len(texts) for texts in sets.values())
    done = 0

    def finished(count: int) -> None:
        nonlocal done
        done += count
        report(done, total, "scoring")

    with Cast({"candidate": model}, ledger=ledger, mode=mode, on_start=lambda note: report(done, total, note)) as cast:
        for folder, texts in sets.items():
            size = wave_size(len(texts), model.max_num_seqs, single_step=True)
            dialogues = [audit_dialogue(text, detectors) for text in texts]
            records = run_dialogues(dialogues, cast, wave=size, on_done=finished)
            write_jsonl(folder / "records.jsonl", records)
            write_text(folder / "scores.jsonl", "".join(score_lines(records)))
            write_json(folder / "metrics.json", clean(summarise(records, seed)))
        usage = {role: asdict(value) for role, value in cast.usage.items()}
    ledger.close()
    return {"roles": usage, "ledger_bad_lines": ledger.bad_lines}


def clean(value: Any) -> Any:
    """JSON-ready: NaN and infinities become null."""
    return json.loads(json.dumps(value), parse_constant=lambda name: None)
