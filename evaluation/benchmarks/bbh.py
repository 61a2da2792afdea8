"""BIG-Bench Hard (Suzgun et al. 2022, arXiv 2210.09261), format ``bbh``: tasks with one exact answer.

One task is one file: its authors' ``<task>.json`` (``{"canary", "examples": [{"input", "target"}]}``), or Hugging
Face's table of ``input`` and ``target``, one configuration per task. A folder holds several tasks; the task is the
subject. Input and target stay as published; options stand in the input, so the questions are open, and their ``form``
says how an answer is compared: ``option`` where the target is a label like ``(A)``, ``number`` where all targets of the
task are numbers, else ``text``. There is one split, ``test``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from evaluation.benchmarks.reading import Located, Place, Row, decode, open_item, read_bytes, shown
from evaluation.benchmarks.tables import RowsFile, tables_of
from evaluation.extraction.spelling import plain_number
from evaluation.items import Form
from serving.strict_json import DECODER

SPLIT = "test"

_LABEL = re.compile(r"\([A-Z]\)")


def rows(path: Path, split: str | None) -> Iterator[Located]:
    """Every item, tasks in alphabetical order."""
    if split not in (None, SPLIT):
        raise ValueError(f"BIG-Bench Hard has one split, {SPLIT!r}, not {split!r}")
    for table in tables_of(path):
        found = list(_examples(table))
        numbers = all(plain_number(row.text("target")) is not None for row in found)
        for row in found:
            target = row.text("target")
            form: Form = "number" if numbers else "option" if _LABEL.fullmatch(target.strip()) else "text"
            yield open_item(
                row.place,
                benchmark="bbh",
                split=SPLIT,
                subject=table.name,
                question=row.text("input"),
                answer=target,
                form=form,
                columns=("input", "target"),
            )


def _examples(table: RowsFile) -> Iterator[Row]:
    if table.file.suffix.lower() != ".json":
        yield from table.rows()
        return
    file = str(table.file)
    text = decode(read_bytes(table.file), file)
    try:
        task = DECODER.decode(text) if text.strip() else {"examples": []}
    except json.JSONDecodeError as error:
        raise Place(file=file, line=error.lineno).error(f"not valid JSON ({error.msg})", error.colno) from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: not valid JSON ({error})") from error
    examples = task.get("examples") if isinstance(task, dict) else None
    if not isinstance(examples, list):
        raise ValueError(f'{file}: a task must be {{"canary": ..., "examples": [...]}}, not {shown(task)}')
    for number, fields in enumerate(examples, start=1):
        place = Place(file=file, line=number, unit="example")
        if not isinstance(fields, dict):
            raise place.error(f"an example must be an object with input and target, not {shown(fields)}")
        yield Row(place=place, fields=fields)
