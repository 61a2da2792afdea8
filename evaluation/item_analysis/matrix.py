"""The matrix that is analysed: one score per candidate and item, from a CSV table or from exam records."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.benchmarks.reading import Place, csv_rows, json_rows, read_bytes

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Scores of candidates on items.

    scores: candidates x items, 0..max_score; NaN where a candidate has no score on an item
    max_score: the best score of an item, the same for all
    """

    candidates: tuple[str, ...]
    items: tuple[str, ...]
    scores: Scores
    max_score: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.max_score) and self.max_score > 0):
            raise ValueError(f"max_score is {self.max_score}; it must be a number above 0")
        if not self.candidates or not self.items:
            raise ValueError(f"there are {len(self.candidates)} candidates and {len(self.items)} items; both must be")
        for names, what in ((self.candidates, "candidate"), (self.items, "item")):
            if len(set(names)) < len(names):
                twice = next(name for index, name in enumerate(names) if name in names[:index])
                raise ValueError(f"the {what} {twice!r} stands twice; each needs a name of its own")
        assert self.scores.shape == (len(self.candidates), len(self.items))
        with np.errstate(invalid="ignore"):
            wrong = (self.scores < 0) | (self.scores > self.max_score) | np.isinf(self.scores)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise ValueError(
                f"candidate {self.candidates[row]!r} has {self.scores[row, column]:g} on item {self.items[column]!r}; "
                f"a score lies in 0..{self.max_score:g} (max_score)"
            )

    def means(self) -> Scores:
        """Each candidate's mean score over the items it has, rescaled to 0..100; NaN where it has none."""
        known = ~np.isnan(self.scores)
        count = known.sum(axis=1)
        total = np.where(known, self.scores, 0.0).sum(axis=1)
        return np.where(count > 0, 100.0 * total / np.maximum(count, 1) / self.max_score, np.nan)

    def part(self, items: Sequence[int]) -> Matrix:
        """The matrix of these items (indices) only."""
        chosen = list(items)
        return Matrix(
            candidates=self.candidates,
            items=tuple(self.items[index] for index in chosen),
            scores=self.scores[:, chosen],
            max_score=self.max_score,
        )


def read_csv(path: Path, max_score: float) -> Matrix:
    """A table with items as columns: the header names them, each row is a candidate's name and its scores.

    A blank cell, ``NaN`` or ``NA`` is no score; lines of blank cells are left out. ValueError names file, line and
    column of anything else that is no number, of a score outside 0..max_score, of a row of another length, and of a
    candidate or item without a name.
    """
    rows = [row for row in csv_rows(read_bytes(path), str(path), ",;\t") if any(cell.strip() for cell in row[1])]
    if len(rows) < 2 or len(rows[0][1]) < 2:
        raise ValueError(
            f"{path} holds no matrix: the first line must name the items (after one cell for the candidates' column), "
            "each further line a candidate and its scores"
        )
    (first, header), *body = rows
    items = [name.strip() for name in header[1:]]
    if "" in items:
        raise first.error("the item has no name; name it, or take the column out", items.index("") + 2)
    scores = np.full((len(body), len(items)), np.nan)
    candidates = []
    for index, (place, cells) in enumerate(body):
        if len(cells) != len(header):
            raise place.error(f"the row has {len(cells)} cells, but the header names {len(header)} columns")
        if not cells[0].strip():
            raise place.error("the candidate has no name; the first cell of a row must be one", 1)
        candidates.append(cells[0].strip())
        for column, cell in enumerate(cells[1:]):
            scores[index, column] = _number(cell, place, items[column], max_score)
    return Matrix(candidates=tuple(candidates), items=tuple(items), scores=scores, max_score=max_score)


def from_records(files: Mapping[str, Path], score: str | None = None, max_score: float | None = None) -> Matrix:
    """The matrix of several candidates' ``records.jsonl`` of the same exam.

    files: by candidate
    score: the field that is the score; None: the one that the protocol's records are known by (``score_field``)
    max_score: None: the protocol's own

    An item that some candidates have no record of, or whose score is null, is NaN there. ValueError for records of
    different protocols, and for a field that isn't there.
    """
    tables: dict[str, dict[str, float]] = {}
    kinds: dict[str, tuple[str, float]] = {}
    for candidate, path in files.items():
        table: dict[str, float] = {}
        for row in json_rows(path):
            fields = row.fields
            if not isinstance(fields.get("item_id"), str):
                raise row.place.error("the record has no 'item_id'; is it a records.jsonl of an exam?")
            if score is None:
                kinds.setdefault(candidate, _known(fields, row.place))
            name = score or kinds[candidate][0]
            item = fields["item_id"]
            if item in table:
                raise row.place.error(f"item {item} has two records")
            table[item] = _value(_inside(fields, name, row.place), name, row.place)
        if not table:
            raise ValueError(f"{path} is empty: there are no records of {candidate!r}")
        tables[candidate] = table
    found = set(kinds.values())
    if len(found) > 1:
        raise ValueError(
            "the records are of different exams: "
            + "; ".join(f"{candidate} is scored by {kind[0]!r}" for candidate, kind in kinds.items())
            + "; analyse one exam at a time, or name the field with --score"
        )
    best = max_score if max_score is not None else next(iter(found))[1] if found else 1.0
    items = list(dict.fromkeys(item for table in tables.values() for item in table))
    scores = np.array([[table.get(item, math.nan) for item in items] for table in tables.values()])
    return Matrix(candidates=tuple(tables), items=tuple(items), scores=scores, max_score=best)


def score_field(record: Mapping[str, Any]) -> tuple[str, float] | None:
    """The field that holds a record's score, and its maximum; None for records of no known exam.

    idgen: ``score`` of 0..``max_score``; mt_bench: ``score`` of 1..10; kieval: ``scores.paper``, 0..1; static:
    ``correct``.
    """
    best = record.get("max_score")
    if "score" in record and isinstance(best, int | float) and not isinstance(best, bool):
        return "score", float(best)
    if "score" in record and "turns" in record:
        return "score", 10.0
    if "rounds" in record and "scores" in record:
        return "scores.paper", 1.0
    if "correct" in record and isinstance(record["correct"], bool | None):  # None: this item has no result
        return "correct", 1.0
    return None


def to_csv(matrix: Matrix) -> str:
    """The matrix as ``read_csv`` reads it."""
    import csv
    import io

    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["candidate", *matrix.items])
    for name, row in zip(matrix.candidates, matrix.scores.tolist(), strict=True):
        writer.writerow([name, *["" if math.isnan(value) else f"{value:.12g}" for value in row]])
    return stream.getvalue()


def _known(record: Mapping[str, Any], place: Place) -> tuple[str, float]:
    found = score_field(record)
    if found is None:
        raise place.error(
            f"what is the score here? the record has {', '.join(record)}; name the field with --score and its maximum "
            "with --max-score"
        )
    return found


def _inside(record: Mapping[str, Any], name: str, place: Place) -> Any:
    value: Any = record
    for key in name.split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise place.error(f"the record has no field {name!r}; it has {', '.join(record)}")
        value = value[key]
    return value


def _value(value: Any, name: str, place: Place) -> float:
    if value is None:
        return math.nan
    if not isinstance(value, bool | int | float):
        raise place.error(f"{name!r} is {json.dumps(value)[:80]}; a score must be a number, true, false or null")
    return float(value)


def _number(cell: str, place: Place, column: str, max_score: float) -> float:
    text = cell.strip()
    if text.lower() in ("", "nan", "na"):
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if not 0 <= value <= max_score:
        raise place.error(f"{cell!r:.80} is no score; it must be a number in 0..{max_score:g}, or blank", column)
    return value
