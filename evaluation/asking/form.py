"""What every form that a judge fills in has in common: bounds of its comments, the decoder that takes its JSON."""

from __future__ import annotations

import json
from typing import Any, Final

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
