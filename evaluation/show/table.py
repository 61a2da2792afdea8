"""A table as terminal, page and paper show it: cells with their values and intervals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

FORMULA = tuple("=+-@\t\r\n＝＋－＠")
# In a locale whose separator is another than ours, a program that ignores the quotes cuts a cell at these.
_INNER = re.compile(r"(?:(?<=[,;\t|])|(?<=[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]))(?=[\"' ]*[=+\-@＝＋－＠])")
"""What a spreadsheet program may take for a formula's beginning (OWASP, CSV injection), full-width forms included."""


@dataclass(frozen=True)
class Cell:
    """text as shown; value for sorting, None where there is no figure; low, high: its interval, on the text's scale.

    digits: after the point; best: of its column; significant: differs from the clean candidate
    """

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    digits: int = 2
    best: bool = False
    significant: bool = False


@dataclass(frozen=True)
class Table:
    """name of its files, caption; header, and per column which way is better; rows of cells, the first a name.

    title: its heading on a page
    """

    name: str
    caption: str
    header: tuple[str, ...]
    rows: list[list[Cell]]
    better: tuple[int, ...] = ()
    title: str = ""


class Column(NamedTuple):
    """A column of the contamination table: key in a candidate's summary, heading, factor, digits.

    better: 1 the higher, -1 the lower, 0 neither
    half: of the items that it is about, whose paired difference marks the cell; "" for none
    said: a sentence that explains it
    """

    key: str
    heading: str
    scale: float
    digits: int
    better: int
    half: str = ""
    said: str = ""


def count(number: int) -> Cell:
    """A number of things."""
    return Cell(str(number), number)


def with_best(table: list[list[Cell]], better: Sequence[int]) -> list[list[Cell]]:
    """Marks the best of each column that has a direction; nothing where all are equal or only one has a figure."""
    marked = [list(row) for row in table]
    for place, direction in enumerate(better):
        shown = [row[place].text.partition(" ")[0] for row in marked if row[place].value is not None]
        if direction == 0 or len(shown) < 2 or len(set(shown)) < 2:
            continue
        best = max(shown, key=lambda text: direction * float(text))
        for row in marked:
            if row[place].value is not None and row[place].text.partition(" ")[0] == best:
                row[place] = replace(row[place], best=True)
    return marked


def figure(value: float | None, interval: Sequence[float] | None, scale: float, digits: int, note: str = "") -> Cell:
    """``68.8 [51.4, 82.0]``; ``-`` where there is no value; in the place of an interval that can't be, its note:
    ``0.0 (8 of 8 at the floor)``; how much may lie elsewhere all the same, metrics.json says."""
    if value is None:
        return Cell("-")
    text = f"{value * scale:.{digits}f}"
    if not interval:
        return Cell(f"{text} ({note.partition(':')[0]})" if note else text, value, digits=digits)
    low, high = interval[0] * scale, interval[1] * scale
    return Cell(f"{text} [{low:.{digits}f}, {high:.{digits}f}]", value, low, high, digits)


def defused(text: str) -> str:
    """The text as a cell that no spreadsheet program computes, whatever it takes for the separator. NUL, which some
    can't read, becomes U+FFFD."""
    text = _INNER.sub("'", text.replace("\0", "\ufffd"))
    return f"'{text}" if text.startswith(FORMULA) else text
