"""One thing without an experiment file: an output folder that behaves like a stage's.

The same call again does nothing; an interrupted one goes on; an ``--out`` that holds something else is refused.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proctor.atomic import write_text
from proctor.examining import Report
from proctor.stagefolder import StageFolder


def once(out: Path, inputs: dict[str, Any], body: Callable[[Path, Report], list[str]]) -> bool:
    """Does ``body`` unless ``out`` holds its finished result (then False). ValueError if it holds another's."""
    text = json.dumps(inputs, sort_keys=True, indent=1)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    folder = StageFolder(out)
    marker = out / "inputs.json"
    if out.is_file():
        raise ValueError(f"--out {out} is a file; give a folder")
    if marker.is_file():
        if marker.read_text(encoding="utf-8") != text:
            raise ValueError(f"--out {out} holds the results of other inputs (see {marker}); choose another folder")
    elif out.is_dir() and any(out.iterdir()):
        raise ValueError(f"--out {out} is not empty and holds no results of this command; choose another folder")
    done = folder.done()
    if done is not None and done.inputs == digest:
        return False
    with folder.lock():
        write_text(marker, text)
        folder.finish(digest, body(out, _printer()))
        (out / "progress.json").unlink(missing_ok=True)
    return True


def _printer() -> Report:
    """Progress on standard error: one line that is rewritten on a terminal, a line every 10 seconds elsewhere."""
    last = 0.0

    def report(done: int, total: int, note: str) -> None:
        nonlocal last
        now = time.monotonic()
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{note} {done}/{total}" + ("\n" if done == total else ""))
            sys.stderr.flush()
        elif now - last > 10 or done == total:
            last = now
            print(f"{note} {done}/{total}", file=sys.stderr, flush=True)

    return report
