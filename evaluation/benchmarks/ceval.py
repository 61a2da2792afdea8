"""C-Eval (Huang et al. 2023, arXiv 2305.08322), format ``ceval``, in two layouts:

- its authors': a folder or zip file of ``<split>/<subject>_<split>.csv`` with the header
  ``id,question,A,B,C,D,answer`` (``dev`` has ``explanation`` too), or one such CSV file;
- Hugging Face: the same columns, one configuration per subject.

The split is ``val`` unless ``dev``, five exemplars per subject, is asked for. The keys of ``test`` are not published.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evaluation.benchmarks.reading import Located, Row, choice_item, key_index
from evaluation.benchmarks.sheets import has_sheets, sheets
from evaluation.benchmarks.tables import headed_csv, of_split, tables_of

KEYS = ("A", "B", "C", "D")
COLUMNS = ("question", *KEYS, "answer")

DEV_SPLIT = "dev"
"""Made for exemplars."""


def rows(path: Path, split: str | None) -> Iterator[Located]:
    """Every item of the split, subjects in alphabetical order. ValueError for ``test``, whose keys nobody has."""
    if split not in (None, "dev", "val", "test"):
        raise ValueError(f"C-Eval has no split {split!r}; it has dev, val (and test, without keys)")
    if split == "test":
        raise _no_keys(path)
    if has_sheets(path):
        for sheet in sheets(path, split, "val"):
            if sheet.split == "test":
                raise _no_keys(path)
            for row in headed_csv(sheet.data, sheet.label):
                yield _item(row, sheet.subject, sheet.split)
        return
    or_else = f"{split or 'val'}/<subject>_{split or 'val'}.csv and none "
    for table in of_split(tables_of(path, or_else=or_else), split, default="val", where=path):
        if table.split == "test":
            raise _no_keys(path)
        for row in table.rows():
            yield _item(row, table.name, table.split)


def _no_keys(path: Path) -> ValueError:
    return ValueError(f"{path}: the keys of C-Eval's split test are not published; use split: val")


def _item(row: Row, subject: str, split: str) -> Located:
    missing = [name for name in COLUMNS if name not in row.fields]
    if missing:
        raise row.place.error(
            f"the columns are {', '.join(row.fields)}; they must be id, {', '.join(COLUMNS)} and may have explanation",
            missing[0],
        )
    return choice_item(
        row.place,
        benchmark="ceval",
        split=split,
        subject=subject,
        question=row.text("question"),
        choices=[row.text(key) for key in KEYS],
        answer=key_index(row.place, row.text("answer").strip(), KEYS, column="answer"),
        reason=row.text("explanation", "").strip(),
        source_id=row.own_id("id"),
        columns=("question", *KEYS),
    )
