"""Names that a user gives: looked up, with the nearest right one where there is none."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any


def known(where: str, name: str, table: Mapping[str, Any], kind: str) -> None:
    """ValueError, with the nearest name, if the table has no such entry."""
    import difflib

    if name not in table:
        close = difflib.get_close_matches(name, list(table), n=1)
        mend = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(table)}"
        raise ValueError(f"{where}: {name!r} is not an entry of {kind}; {mend}")


def nearest(word: str, known: list[str]) -> str:
    """``; did you mean 'x'?`` for the known name closest to ``word``, or the list of all known names."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(sorted(known))}"


NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
