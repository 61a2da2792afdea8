"""What every form that a judge fills in has in common: bounds of its comments, the decoder that takes its JSON, and
what its values are taken for (``8`` for ``"8"`` and ``8.0``)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

T = TypeVar("T")

COMMENT_CHARACTERS: Final = r"[ !#-\[\]-~]"
"""Printable ASCII without ``"`` and backslash: every token of a comment spells at least one character of it."""


SAMPLED_TEMPERATURE: Final = 0.7
"""Of retries and votes: a seed means nothing at temperature 0."""


FREE_VERDICT_TOKENS: Final = 400


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no key stands twice: the last one would win silently."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key stands twice")
    return value


DECODER: Final = json.JSONDecoder(strict=False, object_pairs_hook=_once)


_OBJECT = re.compile(r"\{\s*[\"}]")
_MOST_OBJECTS = 200


def json_objects(text: str, read: Callable[[Any], T | None]) -> Iterator[tuple[T, int, int]]:
    """What ``read`` makes of the JSON objects that stand in a text, with the place of the outermost object.

    read: gives None for an object that isn't wanted; those inside of it are tried then
    ValueError where more than ``_MOST_OBJECTS`` places look like an object, or one is nested too deep for the decoder:
    no judge writes that, and trying them all takes time that grows with the square of the text.
    """
    tried, end = 0, 0
    for match in _OBJECT.finditer(text):
        if match.start() < end:
            continue
        tried += 1
        if tried > _MOST_OBJECTS:
            raise ValueError(f"more than {_MOST_OBJECTS} places look like JSON objects")
        try:
            value, end = DECODER.raw_decode(text, match.start())
        except RecursionError as error:
            raise ValueError("JSON is nested deeper than any verdict") from error
        except ValueError:
            continue
        waiting = [value]
        while waiting:
            inner = waiting.pop()
            found = read(inner) if isinstance(inner, dict) else None
            if found is not None:
                yield found, match.start(), end
            else:
                parts = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
                waiting += reversed(list(parts))


_WHOLE = re.compile(r"([0-9]{1,4})(?:\.0{1,4})?(?:\s?(?:/|out of)\s?([0-9]{1,4})(?:\.0{1,4})?)?")


def whole(value: Any, scale: int | None = None) -> int | None:
    """The whole number that a judge means: ``8``, ``8.0``, ``"8"``, ``"8.0"``, and ``"8/10"`` on a scale of 10.

    None for anything else; ``True`` is no 1, and 7.5 is no rating of a form that has whole ones.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    match = _WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or (match[2] is not None and (scale is None or int(match[2]) != scale)):
        return None
    return int(match[1])
