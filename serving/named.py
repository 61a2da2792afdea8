"""Names that a user gives: looked up, with the nearest right one where there is none; ``NAME=VALUE``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the known name closest to ``word``, "" where none is close."""
    names = list(known)
    close = difflib.get_close_matches(word.lower().replace("-", "_"), names, n=1, cutoff=0.5)
    close = close or difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else ""


def nearest(word: str, known: Iterable[str], *, all_known: str = "known") -> str:
    """``did_you_mean``, else all known names after ``all_known``."""
    names = list(known)
    return did_you_mean(word, names) or f"{all_known}: {', '.join(names) or 'none'}"


def known(where: str, name: str, table: Iterable[str], kind: str) -> None:
    """ValueError, with the nearest name, if the table has no such entry."""
    names = list(table)
    if name not in names:
        raise ValueError(f"{where}: {name!r} is not an entry of {kind}; {nearest(name, names, all_known='there are')}")


def lookup(table: Mapping[str, str], name: str, what: str, *, mend: str = "") -> Any:
    """What a registry's line names: ``module:attribute``, imported now.

    ValueError for an unknown name, with the nearest one and all there are; ``mend`` says something better where the
    caller knows it.
    """
    if name not in table:
        hint = f"{did_you_mean(name, table)} ".lstrip()
        raise ValueError(f"there is no {what} {name!r}; {mend or f'{hint}there are: ' + ', '.join(table)}")
    module, _, attribute = table[name].partition(":")
    return getattr(import_module(module), attribute)


def named_values(given: Sequence[str], flag: str, *, form: str = "NAME=FOLDER", strict: bool = False) -> dict[str, str]:
    """``NAME=VALUE`` pairs in their order. ValueError for another form or a name that stands twice.

    strict: the name will be a folder's or a role's, so it has only the signs of ``NAME``
    """
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not value or not name or (strict and not re.fullmatch(NAME, name)):
            signs = "; a name has letters, digits, '_', '-' and '.' only" if strict else ""
            raise ValueError(f"{flag} {text}: give {form}{signs}")
        if name in found:
            raise ValueError(f"{flag} {text}: the name {name!r} is taken by {found[name]}")
        found[name] = value
    return found
