"""GSM8K (Cobbe et al. 2021, arXiv 2110.14168), format ``gsm8k``: word problems whose answer is a number.

Its authors' JSON Lines and Hugging Face's tables (configuration ``main``; ``socratic`` has the same questions and is
left out beside it) have the same fields: ``question`` and ``answer``, a worked solution that ends in ``#### 18``. The
number is the item's answer, without thousands separators; the solution without its ``<<16-3-4=9>>`` calculator marks
is its ``reason``. GSM8K has no subjects: all items get ``math``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from evaluation.benchmarks.reading import Located, Row, open_item, shown
from evaluation.benchmarks.tables import of_split, tables_of
from evaluation.extraction.spelling import plain_number

SUBJECT = "math"

_CALCULATOR = re.compile(r"<<[^<>\n]*>>")


def rows(path: Path, split: str | None) -> Iterator[Located]:
    """Every item of the split: ``test`` if the path has several and none is asked for."""
    tables = of_split(tables_of(path), split, default="test", where=path)
    for table in [table for table in tables if table.config != "socratic"] or tables:
        for row in table.rows():
            yield _item(row, table.split)


def _item(row: Row, split: str) -> Located:
    solution, mark, said = row.text("answer").rpartition("####")
    if not mark:
        raise row.place.error("the answer doesn't end in #### and a number", "answer")
    number = plain_number(said)
    if number is None:
        raise row.place.error(f"what follows #### is {shown(said.strip())}; it must be a number", "answer")
    return open_item(
        row.place,
        benchmark="gsm8k",
        split=split,
        subject=SUBJECT,
        question=row.text("question"),
        answer=number,
        form="number",
        reason=_CALCULATOR.sub("", solution).strip(),
        columns=("question", "answer"),
    )
