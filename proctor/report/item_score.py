"""One number per record, whatever the protocol: what paired comparisons, win rates and transcripts go by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class Scored(NamedTuple):
    """score: what an item earned, None without a result; right_or_wrong: whether that is 1 or 0, but for ties"""

    item: str
    half: str
    score: float | None
    right_or_wrong: bool


def scored(protocol: Any, records: Iterable[Mapping[str, Any]]) -> list[Scored]:
    """The records' numbers by the protocol's own ``score``, where it has one."""
    score = getattr(protocol, "score", value)
    binary = bool(getattr(protocol, "right_or_wrong", False))
    return [Scored(str(r["item_id"]), str(r.get("half", "all")), _number(score(r)), binary) for r in records]


def value(record: Mapping[str, Any]) -> float | None:
    """A judge's score, else right (1) or wrong (0); None: no result."""
    return _number(record["score"] if "score" in record else record.get("correct"))


def earned_by_both(mine: Sequence[Scored], theirs: Sequence[Scored], half: str) -> list[tuple[float, float]]:
    """What each item of a half earned of two candidates, where both have a result for it."""
    pairs = [(a.score, b.score) for a, b in zip(mine, theirs, strict=True) if a.half == half]
    return [(a, b) for a, b in pairs if a is not None and b is not None]


def _number(found: Any) -> float | None:
    return float(found) if isinstance(found, int | float) else None
