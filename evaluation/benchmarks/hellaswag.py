"""HellaSwag (Zellers et al. 2019, arXiv 1905.07830), format ``hellaswag``: which of four endings continues a text.

Its authors' JSON Lines and Hugging Face's tables have the same fields: ``ind``, ``activity_label``, ``ctx``,
``endings``, ``label`` (an index, as number or as text) and ``split``. The texts stay as published, with their marks
``[header]``, ``[title]`` and ``[step]``. The subject is the activity, "" where the rows have none.

The split is ``val`` (which some call ``dev``) unless ``train`` is asked for. The labels of ``test`` are not published.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evaluation.benchmarks.reading import Located, Row, choice_item, shown, split_of
from evaluation.benchmarks.tables import of_split, tables_of

ENDINGS = 4
TWINS = frozenset({"dev", "val"})


def rows(path: Path, split: str | None) -> Iterator[Located]:
    """Every item of the split. A row's own ``split`` goes before what the file's name tells."""
    tables = of_split(tables_of(path), split, default="val", where=path, twins=TWINS)
    found = [(row, _split(row) or table.split) for table in tables for row in table.rows()]
    told = {name for _, name in found}
    wanted = split or ("val" if "val" in told and len(told) > 1 else None)
    chosen = [(row, name) for row, name in found if wanted in (None, name) or {wanted, name} <= TWINS]
    if found and not chosen:
        raise ValueError(f"{path} has no split {split!r}; its rows are of: {', '.join(sorted(told))}")
    for row, name in chosen:
        yield _item(row, split or name)


def _split(row: Row) -> str:
    told = split_of(row.text("split", ""))
    return "val" if told in TWINS else told


def _item(row: Row, split: str) -> Located:
    endings, label = row.texts("endings"), row.fields.get("label")
    if len(endings) != ENDINGS:
        raise row.place.error(f"there are {len(endings)} endings; there must be {ENDINGS}", "endings")
    if label in (None, ""):
        where = "HellaSwag's labels of the split test are not published; use split: val"
        raise row.place.error(f"the row has no label. {where}" if split in ("", "test") else "the row has no label")
    if isinstance(label, str) and label in map(str, range(ENDINGS)):
        label = int(label)
    if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < ENDINGS:
        raise row.place.error(f"the label is {shown(label)}; it must be an index from 0 to {ENDINGS - 1}", "label")
    return choice_item(
        row.place,
        benchmark="hellaswag",
        split=split,
        subject=row.text("activity_label", ""),
        question=row.text("ctx"),
        choices=endings,
        answer=label,
        source_id=row.own_id("ind"),
        columns=("ctx", *["endings"] * ENDINGS),
    )
