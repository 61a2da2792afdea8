"""What every form that a judge fills in has in common: bounds of its comments, the decoder that takes its JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from serving.strict_json import unrepeated

COMMENT_CHARACTERS: Final = r"[ !#-\[\]-~]"
"""Printable ASCII without ``"`` and backslash: every token of a comment spells at least one character of it."""


SAMPLED_TEMPERATURE: Final = 0.7
"""Of retries and votes: a seed means nothing at temperature 0."""


FREE_VERDICT_TOKENS: Final = 400


DECODER: Final = json.JSONDecoder(strict=False, object_pairs_hook=unrepeated)

MOST_BRACES: Final = 256
"""Of a free text in which a form is looked for: each may be read to the text's end. What has more is no verdict."""


T = TypeVar("T")


def objects_in(text: str, read: Callable[[Any], T]) -> Iterator[tuple[int, int, T]]:
    """What ``read`` makes of the JSON objects that stand in a free text: (begin, end, value), none inside another.

    Where it raises ValueError, objects inside are looked at."""
    position = -1 if text.count("{") > MOST_BRACES else text.find("{")
    while position >= 0:
        try:
            found, end = DECODER.raw_decode(text, position)
            value = read(found)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            yield position, end, value
        position = text.find("{", end)
