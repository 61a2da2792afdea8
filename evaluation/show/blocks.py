"""A transcript as blocks: what somebody said, what a judge found, and a record as it stands.

A block is a dict: ``{"t": "say", "who", "x", "n"}`` something said, with a note; ``{"t": "verdict", "who", "rows":
[[aspect, score, comment]], "n"}``; ``{"t": "bars", "who", "rows": [[label, value, mark]]}`` log-likelihoods of options;
``{"t": "tokens", "who", "rows": [[token, log-probability, rank]]}``; ``{"t": "data", "who", "x"}`` JSON as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.items import LETTERS, Item

Block = dict[str, Any]
LONGEST = 2_000_000
"""Characters of one text on a page; the records hold it whole."""


def say(who: str, text: Any, note: str = "") -> Block:
    """Something said. A text longer than ``LONGEST`` is cut, and the note says so."""
    words = "" if text is None else str(text)
    if len(words) > LONGEST:
        note = f"{note}; {len(words) - LONGEST} more characters in the records".removeprefix("; ")
        words = words[:LONGEST]
    return {"t": "say", "who": who, "x": words, "n": note}


def verdict(who: str, rows: Sequence[Sequence[Any]], note: str = "") -> Block:
    """What a judge found: rows [aspect, score, comment]."""
    return {"t": "verdict", "who": who, "rows": [list(row) for row in rows], "n": note}


def as_it_stands(record: Mapping[str, Any]) -> list[Block]:
    """The record as JSON."""
    return [{**say("record", json.dumps(record, indent=1, ensure_ascii=False)), "t": "data"}]


def item_block(item: Item) -> Block:
    """An item as it was asked, with its key."""
    lines = [item.context, item.question] if item.context else [item.question]
    lines += [f"{LETTERS[i]}. {choice}" for i, choice in enumerate(item.choices)]
    return say("item", "\n".join(lines), f"{item.subject}; key: {item.answer}".removeprefix("; "))
