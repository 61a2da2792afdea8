"""The sheets that people fill in with any spreadsheet program, and reading them back.

A sheet (CSV) has a row per thing that is rated, known by an id, and blank columns for annotators; what belongs to an id
stands in a key file that is kept apart. All sheets are written and read here: conversations' ratings, an examiner's
annotation (``evaluation.lm_examiner.annotation``), checks of probed (``evaluation.probing.human``) and generated items
(``evaluation.idgen.human_check``).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from evaluation.benchmarks.reading import Place, csv_rows, decode, read_bytes
from evaluation.human_rating.conversations import Conversation
from evaluation.show.table import FORMULA, defused

FIXED = ("id", "context", "question", "reply")
SCALE = (1, 2, 3, 4)

Ratings = dict[str, dict[str, int]]
"""Annotator -> conversation id -> rating."""
ValueT = TypeVar("ValueT")

# What a spreadsheet program may take for the beginning of a formula (OWASP, CSV injection), full-width forms included.


class SheetRow(NamedTuple):
    """A row of a filled sheet. name: its id; cells: by column, without white space around them"""

    place: Place
    name: str
    cells: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale(Generic[ValueT]):
    """What a cell may hold (in lower case) and what that means; said: the same for people."""

    values: Mapping[str, ValueT]
    said: str
    noun: str = "rating"

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Scale[int]:
        return Scale(values={str(number): number for number in numbers}, said=", ".join(map(str, numbers)))

    def also(self, **values: ValueT) -> Scale[ValueT]:
        """The scale with further words."""
        return replace(self, values={**self.values, **values})

    def read(self, cell: Any, place: Place, column: str) -> ValueT | None:
        """The cell's value; None for a blank one. ValueError names file, line and column of anything else."""
        text = "" if cell is None else str(cell).strip().casefold()
        if text and (isinstance(cell, bool) or text not in self.values):
            raise place.error(f"{cell!r:.80} is no {self.noun}; it must be {self.said} or blank", column)
        return self.values[text] if text else None


_WORDS = {"yes": True, "y": True, "1": True, "true": True, "no": False, "n": False, "0": False, "false": False}
YES_NO: Final[Scale[bool]] = Scale(values=_WORDS, said="yes, no", noun="answer")


def write_sheet(chosen: Mapping[str, Conversation], annotators: Sequence[str]) -> str:
    """The sheet of conversations, one column per annotator."""
    texts = ([name, c.context, c.question, c.reply] for name, c in chosen.items())
    return sheet_text(FIXED, texts, annotators)


def sheet_text(header: Sequence[str], rows: Iterable[Sequence[Any]], blank: Sequence[str] = ()) -> str:
    """A sheet as CSV text, with a byte order mark, since spreadsheet programs take UTF-8 for Latin-1 without it.

    A cell that would be a formula gets an apostrophe in front: that is how the sheet differs from the texts. ``blank``:
    the columns to be filled in.
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([*header, *blank])
    writer.writerows([*(defused(str(cell)) for cell in row), *[""] * len(blank)] for row in rows)
    return "\ufeff" + stream.getvalue()


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
        if not name.strip() or name in taken or name in names[:index] or name.startswith((*FORMULA, "'")):
            raise ValueError(
                f"annotator {name!r}: the name must be a text of its own that is none of {', '.join(taken)} and does "
                "not begin with = + - @ or an apostrophe"
            )


def read_sheets(paths: Sequence[Path], ids: Collection[str], scale: Sequence[int] = SCALE) -> Ratings:
    """All ratings in filled sheets (CSV), or in the page's downloads (CSV or JSON); blank cells are not rated.

    ids: those of the key; scale: the ratings that are allowed. ValueError as of ``read_columns``.
    """
    return read_columns(paths, ids, Scale.of(scale), lambda column: column not in FIXED)


def read_columns(
    paths: Sequence[Path], ids: Collection[str], scale: Scale[ValueT], filled: Callable[[str], bool]
) -> dict[str, dict[str, ValueT]]:
    """By filled column (an annotator's, as ``filled`` says of its name) and id: the value; blank cells are left out.

    Two sheets may hold the same annotator's values of different ids, or the same again. ValueError names file, line and
    column of what isn't on the scale, of an id that the key lacks or the sheet repeats, and of a value that contradicts
    another sheet's.
    """
    found: dict[str, dict[str, ValueT]] = {}
    given: dict[tuple[str, str], str] = {}
    for path in paths:
        if path.suffix.lower() == ".json":
            cells = _json_cells(path)
        else:
            header, rows = read_sheet(path, ids)
            columns = [column for column in header if filled(column)]
            if not columns:
                raise ValueError(
                    f"{path}:1: there is no column with {scale.noun}s; the columns are {', '.join(header)}"
                )
            cells = [(row.place, column, row.name, row.cells[column]) for row in rows for column in columns]
        for place, column, name, cell in cells:
            if name not in ids:
                raise _unknown(place, "id", name, "the key")
            table = found.setdefault(column, {})
            value = scale.read(cell, place, column)
            if value is None:
                continue
            if table.setdefault(name, value) != value:
                raise place.error(
                    f"{column!r} rates {name} {cell} here and {given[column, name]}; if they are two annotators, give "
                    "each column a name of its own",
                    column,
                )
            given.setdefault((column, name), f"{cell} at {place}")
    return {column: table for column, table in found.items() if table}


def read_sheet(
    path: Path, ids: Collection[str], *needed: str, column: str = "id", of: str = "the key"
) -> tuple[list[str], list[SheetRow]]:
    """Header and rows of a filled sheet, each with another id out of ``ids``, which stands in ``column``.

    ValueError as of ``read_table``, and for an id that is unknown (to ``of``) or stands twice.
    """
    header, table = read_table(path, column, *needed)
    seen: dict[str, Place] = {}
    rows = []
    for place, cells in table:
        name = cells[column]
        if name not in ids:
            raise _unknown(place, column, name, of)
        if name in seen:
            raise place.error(f"the {_noun(column)} {name!r} is repeated; it stands at {seen[name]} already", column)
        seen[name] = place
        rows.append(SheetRow(place, name, cells))
    return header, rows


def read_table(path: Path, *needed: str) -> tuple[list[str], list[tuple[Place, dict[str, str]]]]:
    """Header and rows of a CSV file as spreadsheet programs save them: ``,``, ``;`` or tab between cells, blank rows.

    ValueError for no header, a repeated or blank column name, a column that is ``needed`` and isn't there, or a row of
    another length.
    """
    if not path.is_file():
        raise ValueError(f"there is no sheet {path}")
    records = [row for row in csv_rows(read_bytes(path), str(path), ",;\t") if any(cell.strip() for cell in row[1])]
    if not records:
        raise ValueError(f"{path} is empty; its first line must name the columns")
    (place, header), *rest = records
    header = [name.strip() for name in header]
    for index, name in enumerate(header):
        if not name or name in header[:index]:
            raise place.error(f"the column name {name!r} is {'repeated' if name else 'blank'}", index + 1)
    if lacking := next((name for name in needed if name not in header), None):
        raise ValueError(f"{path}:1: there is no column {lacking!r}; the columns are {', '.join(header)}")
    for where, cells in rest:
        if len(cells) != len(header):
            raise where.error(f"the row has {len(cells)} cells, but the header names {len(header)} columns")
    return header, [(where, {n: cell.strip() for n, cell in zip(header, cells, strict=True)}) for where, cells in rest]


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


def _noun(column: str) -> str:
    return column.removesuffix("_id")


def _unknown(place: Place, column: str, name: str, of: str) -> ValueError:
    return place.error(f"{of} has no {_noun(column)} {name!r}; is it the key of another export?", column)
