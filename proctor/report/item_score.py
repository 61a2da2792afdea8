"""One number per record, whatever the protocol: what paired comparisons, win rates and transcripts go by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Records = Sequence[Mapping[str, Any]]


def value(record: Mapping[str, Any]) -> float | None:
    """What an item earned: KIEval's released score, a judge's score, else right (1), wrong (0) or, where the best
    options are equally probable, its share; None: no result."""
    scores = record.get("scores")
    if isinstance(scores, Mapping) and "released" in scores:
        return _number(scores["released"])
    if "score" in record:
        return _number(record["score"])
    if "credit" in record:
        return _number(record["credit"])
    if "correct" in record:
        return None if record["correct"] is None else float(bool(record["correct"]))
    return None


def is_right_or_wrong(record: Mapping[str, Any]) -> bool:
    """Whether ``value`` is only ever 0 or 1."""
    return "correct" in record and "score" not in record and "scores" not in record


def earned_by_both(mine: Records, theirs: Records, half: str) -> list[tuple[float, float]]:
    """What each item of a half earned of two candidates, where both have a result for it."""
    pairs = [(value(a), value(b)) for a, b in zip(mine, theirs, strict=True) if a["half"] == half]
    return [(a, b) for a, b in pairs if a is not None and b is not None]


def _number(found: Any) -> float | None:
    return float(found) if isinstance(found, int | float) else None
