"""The user's file of human and automatic scores: JSON lines, CSV or Parquet, one row per rated text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.agreement.kappa import Label
from evaluation.benchmarks.reading import Place
from evaluation.benchmarks.tables import ARROW, CSV, JSON, tables_of

NO_VALUE = "no value"
NOT_FINITE = "not a finite number"


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """Rows with their places, and the columns that any of them has, in order of appearance."""

    file: str
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    places: tuple[Place, ...]

    def check(self, columns: Sequence[str]) -> None:
        """ValueError that names the columns there are, if one of ``columns`` isn't among them."""
        for name in columns:
            if name not in self.columns:
                raise ValueError(f"{self.file} has no column {name!r}; it has: {', '.join(self.columns) or 'none'}")

    def numbers(self, column: str) -> tuple[list[float | None], list[str]]:
        """The column's numbers, and beside each why there is none ("": there is one).

        true and false are 1 and 0. Missing, null, blank, NaN and infinite values are None. ValueError for a text that
        isn't a number.
        """
        values: list[float | None] = []
        reasons: list[str] = []
        for row, place in zip(self.rows, self.places, strict=True):
            value, reason = _number(row.get(column), place, column)
            values.append(value)
            reasons.append(reason)
        return values, reasons

    def labels(self, column: str) -> list[Label | None]:
        """The column's labels as texts (2, 2.0 and "2" are one label); None where there is none."""
        return [_label(row.get(column), place, column) for row, place in zip(self.rows, self.places, strict=True)]

    def texts(self, column: str) -> list[str]:
        """The column's texts; "" where there is none. ValueError for a value of another kind."""
        found = []
        for row, place in zip(self.rows, self.places, strict=True):
            value = row.get(column)
            if value is not None and not isinstance(value, str):
                raise place.error(f"{column!r} is {value!r:.80}; it must be text", column)
            found.append(value or "")
        return found


def read_table(path: Path) -> ColumnTable:
    """The file's rows. ValueError for an unknown kind of file, a malformed row, or no rows at all."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    (source,) = tables_of(path, (JSON, CSV, ARROW))
    rows = list(source.rows())
    if not rows:
        raise ValueError(f"{path} holds no rows")
    columns = dict.fromkeys(name for row in rows for name in row.fields)
    return ColumnTable(str(path), tuple(columns), tuple(row.fields for row in rows), tuple(row.place for row in rows))


def _number(value: Any, place: Place, column: str) -> tuple[float | None, str]:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None, NO_VALUE
    try:
        number = float(value) if isinstance(value, str | int | float) else float(str(value))  # a Parquet decimal
    except (ValueError, OverflowError):
        raise place.error(f"{value!r:.80} is not a number", column) from None
    return (number, "") if math.isfinite(number) else (None, NOT_FINITE)


def _label(value: Any, place: Place, column: str) -> Label | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, dict | list):
        raise place.error(f"a label must be a text or a number, not {value!r:.80}", column)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip()
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if math.isfinite(number) and number.is_integer() else text
