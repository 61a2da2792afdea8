"""A transcript as blocks: what somebody said, and a record as it stands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Block = dict[str, Any]


LONGEST = 2_000_000
"""Characters of one text on a page; the records hold it whole."""


def say(who: str, text: Any, note: str = "") -> Block:
    words = "" if text is None else str(text)
    if len(words) > LONGEST:
        note = f"{note}; {len(words) - LONGEST} more characters in the records".removeprefix("; ")
        words = words[:LONGEST]
    return {"t": "say", "who": who, "x": words, "n": note}


def _as_it_stands(record: Mapping[str, Any]) -> list[Block]:
    text = json.dumps(record, indent=1, ensure_ascii=False)
    return [{**say("record", text), "t": "data"}]
