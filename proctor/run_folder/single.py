"""One thing without an experiment file: an output folder that behaves like a stage's.

The same call again does nothing; an interrupted one goes on; an ``--out`` that holds something else is refused. What
a call leaves that was killed or failed before its first result (its lock, its inputs) is no result.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.items import Item
from evaluation.protocol import ExamProtocol, GroupProtocol
from evaluation.run_exam import Report, examine
from evaluation.show.terminal_text import harmless
from proctor.run_folder.stage import StageFolder
from serving.files import output_folder, read_json, write_jsonl, write_text
from serving.model.spec import ModelSpec
from serving.role_engines import Mode

LEFTOVERS = ("LOCK", ".LOCK.", ".inputs.json.")
RESULTS = ("records.jsonl", "scores.jsonl", "metrics.json", "DONE")


def once(out: Path, inputs: dict[str, Any], body: Callable[[Path, Report], list[str]]) -> bool:
    """Does ``body`` unless ``out`` holds its finished result (then False, and says so). ValueError if it holds
    another's."""
    text = json.dumps(inputs, sort_keys=True, indent=1)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    folder = StageFolder(out)
    check_folder(out)

    def finished() -> bool:
        _check_contents(out, text)
        done = folder.done()
        return done is not None and done.inputs == digest

    if finished():
        print("nothing to do: done already")
        return False
    output_folder(out)
    with folder.lock():
        if finished():  # by another process, meanwhile
            print("nothing to do: done already")
            return False
        for draft in out.glob(".inputs.json.*"):
            draft.unlink(missing_ok=True)
        write_text(out / "inputs.json", text)
        folder.finish(digest, body(out, _printer()))
        (out / "progress.json").unlink(missing_ok=True)
    return True


def examine_once(
    out: Path,
    exam: ExamProtocol | GroupProtocol,
    items: Sequence[Item],
    *,
    models: Mapping[str, ModelSpec],
    mode: Mode,
    inputs: dict[str, Any],
    further: Callable[[Path, dict[str, Any]], list[str]] = lambda folder, metrics: [],
) -> dict[str, Any]:
    """An exam in ``out``, once: records.jsonl, metrics.json, items.jsonl; the metrics, also of an earlier call.

    further: writes more files of the folder from the metrics, and names them
    ValueError (before anything is written) for items that the protocol can't examine
    """
    for dialogue in exam.dialogues(items):
        dialogue.close()

    def body(folder: Path, report: Report) -> list[str]:
        ledger = folder / "ledger"
        settings: dict[str, Any] = {"folder": folder, "ledger_folder": ledger, "wave": None, "report": report}
        metrics = examine(exam, items, models=models, mode=mode, **settings)
        write_jsonl(folder / "items.jsonl", [item.to_json() for item in items])
        return ["records.jsonl", "metrics.json", "items.jsonl", *further(folder, metrics)]

    once(out, inputs, body)
    return read_json(out / "metrics.json")


def check_folder(out: Path) -> None:
    """ValueError if ``out`` is a file, or lies below one."""
    nearest = next((path for path in (out, *out.parents) if path.exists()), None)
    if nearest is not None and not nearest.is_dir():
        raise ValueError(f"--out {out}: {nearest} is a file; give a folder")


def _check_contents(out: Path, inputs: str) -> None:
    """ValueError if ``out`` holds the results of other inputs, or anything that is not this command's."""
    marker = out / "inputs.json"
    if marker.is_file():
        if marker.read_text(encoding="utf-8") != inputs and _has_results(out):
            raise ValueError(f"--out {out} holds the results of other inputs (see {marker}); choose another folder")
    elif out.is_dir() and any(not entry.name.startswith(LEFTOVERS) for entry in out.iterdir()):
        raise ValueError(f"--out {out} is not empty and holds no results of this command; choose another folder")


def _has_results(out: Path) -> bool:
    """Whether a call has come as far as a result: a model's answer in the ledger, or a file of results."""
    answers = any(file.stat().st_size for file in (out / "ledger").glob("*.jsonl"))
    return answers or any((out / name).exists() for name in RESULTS)


def _printer() -> Report:
    """Progress on standard error: one line that is rewritten on a terminal, a line every 10 seconds elsewhere."""
    last = 0.0

    def report(done: int, total: int, note: str) -> None:
        nonlocal last
        note = harmless(note)
        now = time.monotonic()
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{note} {done}/{total}" + ("\n" if done == total else ""))
            sys.stderr.flush()
        elif now - last > 10 or done == total:
            last = now
            print(f"{note} {done}/{total}", file=sys.stderr, flush=True)

    return report
