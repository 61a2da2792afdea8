"""The sheet annotators fill in with any spreadsheet program, and reading it back."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.benchmarks.reading import Place, decode, read_bytes
from evaluation.human_rating.conversations import Conversation

FIXED = ("id", "context", "question", "reply")
SCALE = (1, 2, 3, 4)

Ratings = dict[str, dict[str, int]]
"""Annotator -> conversation id -> rating."""

# What a spreadsheet program may take for the beginning of a formula (OWASP, CSV injection), full-width forms included.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")
# In a locale whose separator is another than ours, a program that ignores the quotes cuts a cell at these.
_INNER = re.compile(r"(?:(?<=[,;\t|])|(?<=[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]))(?=[\"' ]*[=+\-@＝＋－＠])")


def write_sheet(chosen: Mapping[str, Conversation], annotators: Sequence[str]) -> str:
    """The sheet as CSV text, with a byte order mark, since spreadsheet programs take UTF-8 for Latin-1 without it.

    What would be a formula gets an apostrophe in front, after a line break or another country's separator too: that is
    how the sheet differs from the replies.
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([*FIXED, *annotators])
    for name, conversation in chosen.items():
        texts = [name, conversation.context, conversation.question, conversation.reply]
        writer.writerow([*map(defused, texts), *[""] * len(annotators)])
    return "\ufeff" + stream.getvalue()


def defused(text: str) -> str:
    """The text as a cell that no spreadsheet program computes, whatever it takes for the separator. NUL, which some
    can't read, becomes U+FFFD."""
    text = _INNER.sub("'", text.replace("\0", "\ufffd"))
    return f"'{text}" if text.startswith(_FORMULA) else text


def key_rows(chosen: Mapping[str, Conversation]) -> list[dict[str, Any]]:
    """The key: per id everything that is known of the conversation, its scores as columns of their own."""
    return [
        {
            "id": name,
            "benchmark": c.benchmark,
            "candidate": c.candidate,
            "part": c.part,
            "item_id": c.item_id,
            "source": c.source,
            "context": c.context,
            "question": c.question,
            "reply": c.reply,
            "reference": c.reference,
            **c.scores,
        }
        for name, c in chosen.items()
    ]


def check_annotators(names: Sequence[str], taken: Sequence[str] = FIXED) -> None:
    """ValueError for a name that is blank, repeated, a column's already, or would be a formula."""
    for index, name in enumerate(names):
        if not name.strip() or name in taken or name in names[:index] or name.startswith((*_FORMULA, "'")):
            raise ValueError(
                f"annotator {name!r}: the name must be a text of its own that is none of {', '.join(taken)} and does "
                "not begin with = + - @ or an apostrophe"
            )


def read_sheets(paths: Sequence[Path], ids: Sequence[str], scale: Sequence[int] = SCALE) -> Ratings:
    """All ratings in filled sheets (CSV), or in the page's downloads (CSV or JSON); blank cells are not rated.

    ids: those of the key; scale: the ratings that are allowed
    Two sheets may hold the same annotator's ratings of different conversations, or the same
    ratings again.

    ValueError names file, line and column of anything but those or blank, of an id that the key lacks or the sheet
    repeats, and of a rating that contradicts another sheet's.
    """
    ratings: Ratings = {}
    known = frozenset(ids)
    given: dict[tuple[str, str], Place] = {}
    for path in paths:
        rows = _json_cells(path) if path.suffix.lower() == ".json" else _csv_cells(path)
        for place, annotator, name, cell in rows:
            if name not in known:
                raise place.error(f"the key has no id {name!r}; is it the key of another export?", "id")
            table = ratings.setdefault(annotator, {})
            rating = _rating(cell, place, annotator, scale)
            if rating is None:
                continue
            if table.setdefault(name, rating) != rating:
                raise place.error(
                    f"{annotator!r} rates {name} {rating} here and {table[name]} at {given[annotator, name]}; if they "
                    "are two annotators, give each column a name of its own",
                    annotator,
                )
            given.setdefault((annotator, name), place)
    return {annotator: table for annotator, table in ratings.items() if table}


def _rating(cell: Any, place: Place, column: str, scale: Sequence[int]) -> int | None:
    text = str(cell).strip() if cell is not None else ""
    if not text:
        return None
    if isinstance(cell, bool) or text not in map(str, scale):
        allowed = ", ".join(map(str, scale))
        raise place.error(f"{cell!r:.80} is no rating; it must be {allowed} or blank (not rated)", column)
    return int(text)


def _csv_cells(path: Path) -> list[tuple[Place, str, str, str]]:
    """(place, annotator, id, cell) of a filled sheet."""
    header, records = _read_csv(path)
    if "id" not in header:
        raise ValueError(f"{path}:1: there is no column 'id'; the columns are {', '.join(header)}")
    annotators = [(index, name) for index, name in enumerate(header) if name not in FIXED]
    if not annotators:
        raise ValueError(f"{path}:1: there is no column with ratings; the columns are {', '.join(header)}")
    cells = []
    seen: dict[str, Place] = {}
    for place, record in records:
        name = record[header.index("id")].strip()
        if name in seen:
            raise place.error(f"the id {name!r} is repeated; it stands at {seen[name]} already", "id")
        seen[name] = place
        cells += [(place, annotator, name, record[index]) for index, annotator in annotators]
    return cells


def _json_cells(path: Path) -> list[tuple[Place, str, str, Any]]:
    """The same of the page's JSON download: ``{"annotator": name, "ratings": {id: rating}}``."""
    place = Place(file=str(path), line=1)
    try:
        value = json.loads(decode(read_bytes(path), str(path)))
    except (json.JSONDecodeError, RecursionError) as error:
        raise place.error(f"not valid JSON ({error}); download it from the page again") from error
    annotator = value.get("annotator") if isinstance(value, dict) else None
    table = value.get("ratings") if isinstance(value, dict) else None
    if not isinstance(annotator, str) or not annotator.strip() or not isinstance(table, dict):
        raise place.error('it must be an object {"annotator": name, "ratings": {id: 1..4}}')
    return [(place, annotator.strip(), name, cell) for name, cell in table.items()]


def _read_csv(path: Path) -> tuple[list[str], list[tuple[Place, list[str]]]]:
    """Header and records as spreadsheet programs save them: ``,``, ``;`` or tab between cells, blank rows at the end.

    ValueError for no header, a repeated or blank column name, or a record of another length.
    """
    text = decode(read_bytes(path), str(path))
    csv.field_size_limit(2**31 - 1)
    first = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = next((mark for mark in ",;\t" if mark in first), ",")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    records: list[tuple[Place, list[str]]] = []
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                records.append((Place(file=str(path), line=line), cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise Place(file=str(path), line=line).error(f"not valid CSV: {error}") from error
    if not records:
        raise ValueError(f"{path} is empty; its first line must name the columns")
    (place, header), *rest = records
    header = [name.strip() for name in header]
    for index, name in enumerate(header):
        if not name or name in header[:index]:
            raise place.error(f"the column name {name!r} is {'repeated' if name else 'blank'}", index + 1)
    for where, cells in rest:
        if len(cells) != len(header):
            raise where.error(f"the row has {len(cells)} cells, but the header names {len(header)} columns")
    return header, rest
