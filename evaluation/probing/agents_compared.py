"""Two probing agents under one judge: who gets more through, in how many attempts (MPA, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.statistics import paired_mean

Records = Sequence[Mapping[str, Any]]


def compare_agents(a: Records, b: Records, *, seed: int) -> dict[str, Any]:
    """By stage, over the (item, set) pairs on which both agents were asked: fallback rate and mean attempts of each,
    and the differences a - b with their paired intervals.

    ``turned_down_by_code`` and ``turned_down_by_judge``: of the attempts at an item, the share with a defect that code
    or the judge found.
    ValueError if they share no pair.
    """
    first, second = _by_pair(a), _by_pair(b)
    shared = [key for key in first if key in second]
    if not shared:
        raise ValueError("the two builds have no (item, set) in common; probe the same items with both agents")
    stages = sorted({stage for key in shared for stage in first[key]})
    return {"pairs": len(shared), "stages": {name: _stage(first, second, shared, name, seed) for name in stages}}


def _by_pair(records: Records) -> dict[tuple[str, int], dict[str, Mapping[str, Any]]]:
    return {(r["item_id"], r["set"]): {**r["question"], **r["choices"]} for r in records}


def _stage(first: Any, second: Any, shared: Sequence[Any], name: str, seed: int) -> dict[str, Any]:
    rows = [(first[key].get(name), second[key].get(name)) for key in shared]
    both = [(x, y) for x, y in rows if x and y and x["attempts"] and y["attempts"]]

    def measured(value: Any) -> dict[str, Any]:
        xs, ys = [float(value(x)) for x, _ in both], [float(value(y)) for _, y in both]
        difference = paired_mean(xs, ys, seed=seed)
        return {
            "a": sum(xs) / len(xs) if xs else None,
            "b": sum(ys) / len(ys) if ys else None,
            **difference.to_json("difference"),
        }

    return {
        "n": len(both),
        "fallback_rate": measured(lambda row: row["status"] == "fallback"),
        "attempts": measured(lambda row: len(row["attempts"])),
        "turned_down_by_code": measured(lambda row: _share(row, "code")),
        "turned_down_by_judge": measured(lambda row: _share(row, "judge")),
    }


def _share(row: Mapping[str, Any], by: str) -> float:
    attempts: Sequence[Mapping[str, Any]] = row["attempts"]
    return sum(str(attempt["result"]).startswith(by) for attempt in attempts) / len(attempts)
