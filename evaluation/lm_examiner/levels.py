"""What a question demands of whoever answers it: recall, understanding, or analysis (LMExamQA, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from evaluation.asking.form import one_word
from evaluation.items import Item

LEVELS: Final = ("memorization", "comprehension", "analysis")
"""Recall of an entity, place or time; what, why or how of a concept or instance; impact, comparison, pros and cons."""
UNCLASSIFIED: Final = "unclassified"

LEVEL_FORM: Final = one_word("level", LEVELS, max_tokens=32)


def source_id(domain_id: str, number: int, level: str | None) -> str:
    """What an item of ours carries of its making: ``memorization/101/3``."""
    return f"{level or UNCLASSIFIED}/{domain_id}/{number}"


def level_of(item: Item, given: Mapping[str, str] | None = None) -> str:
    """An item's level: that of the file of levels, else what its ``source_id`` says, else ``unclassified``."""
    if given and item.id in given:
        return given[item.id]
    level = item.source_id.partition("/")[0]
    return level if level in LEVELS else UNCLASSIFIED


def read_levels(path: Path) -> dict[str, str]:
    """Levels by item id, as the protocol ``question_levels`` writes them. ValueError names file and line."""
    from evaluation.benchmarks.reading import json_rows

    if not path.is_file():
        raise ValueError(f"there is no file of levels {path}")
    found: dict[str, str] = {}
    for row in json_rows(path):
        level = row.fields.get("level")
        if level is not None and level not in LEVELS:
            raise row.place.error(f"level is {level!r}; it must be one of {', '.join(LEVELS)}, or null", "level")
        if level is not None:
            found[row.text("item_id")] = level
    return found


def shares(levels: Iterable[str | None]) -> dict[str, Any]:
    """Counts and shares of the three levels; what has none is counted and in no share."""
    named = list(levels)
    counts = {level: named.count(level) for level in LEVELS}
    n = sum(counts.values())
    return {
        "n": n,
        "counts": counts,
        "shares": {level: count / n if n else None for level, count in counts.items()},
        UNCLASSIFIED: len(named) - n,
    }
