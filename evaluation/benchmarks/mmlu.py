"""MMLU (Hendrycks et al. 2021, arXiv 2009.03300), format ``mmlu``, in two layouts:

- its authors': a folder or zip file of ``<split>/<subject>_<split>.csv`` without header (the question, four options,
  the key A to D), or one such CSV file;
- Hugging Face: rows ``{"question", "subject", "choices", "answer"}``, the answer an index from 0, by configuration
  ``all`` (read alone where it is there) or one per subject.

The split is ``test`` unless another is asked for (``dev`` has five exemplars per subject).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evaluation.benchmarks.reading import Located, Row, choice_item, csv_rows, key_index, shown
from evaluation.benchmarks.sheets import SPLITS, Sheet, has_sheets, sheets
from evaluation.benchmarks.tables import RowsFile, of_split, tables_of

KEYS = ("A", "B", "C", "D")
WHOLE = "all"

DEV_SPLIT = "dev"
"""Made for exemplars."""


def rows(path: Path, split: str | None) -> Iterator[Located]:
    """Every item of the split, subjects in alphabetical order."""
    if split and split not in SPLITS:
        raise ValueError(f"MMLU has no split {split!r}; it has {', '.join(SPLITS)}")
    if has_sheets(path):
        for sheet in sheets(path, split, "test"):
            yield from _records(sheet)
    else:
        or_else = f"{split or 'test'}/<subject>_{split or 'test'}.csv and none "
        tables = of_split(tables_of(path, or_else=or_else), split, default="test", where=path)
        for table in [table for table in tables if table.config == WHOLE] or tables:
            for row in table.rows():
                yield _item(row, table)


def _records(sheet: Sheet) -> Iterator[Located]:
    for place, record in csv_rows(sheet.data, sheet.label):
        if len(record) != 6:
            raise place.error(
                f"there are {len(record)} columns; there must be 6: question, four options and the key",
                min(len(record), 6) + (len(record) > 6),
            )
        question, *choices, key = record
        yield choice_item(
            place,
            benchmark="mmlu",
            split=sheet.split,
            subject=sheet.subject,
            question=question,
            choices=choices,
            answer=key_index(place, key.strip(), KEYS, column=6),
            columns=(1, 2, 3, 4, 5),
        )


def _item(row: Row, table: RowsFile) -> Located:
    choices, answer = row.texts("choices"), row.fields.get("answer")
    if len(choices) != len(KEYS):
        raise row.place.error(f"there are {len(choices)} choices; MMLU has {len(KEYS)}", "choices")
    if isinstance(answer, bool) or not isinstance(answer, int) or not 0 <= answer < len(KEYS):
        raise row.place.error(f"the key is {shown(answer)}; it must be an index from 0 to {len(KEYS) - 1}", "answer")
    return choice_item(
        row.place,
        benchmark="mmlu",
        split=table.split,
        subject=row.text("subject", "") or table.name,
        question=row.text("question"),
        choices=choices,
        answer=answer,
        columns=("question", *["choices"] * len(choices)),
    )
