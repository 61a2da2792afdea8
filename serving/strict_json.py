"""JSON of other people's: an object in which a key stands twice is refused, for the last one would win silently."""

from __future__ import annotations

import json
from typing import Any


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs, as a decoder's ``object_pairs_hook``. ValueError names a key that stands twice."""
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r:.80} stands twice in one object; remove one of them")
    return value


DECODER = json.JSONDecoder(object_pairs_hook=unrepeated)
