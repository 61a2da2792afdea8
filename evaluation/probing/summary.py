"""How a probed benchmark came about: attempts, reasons and fallbacks, by stage and by set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.probing.compose import Part, set_name
from evaluation.statistics import wilson

EXAMPLES = 3


def summary(records: Sequence[Mapping[str, Any]], made: Mapping[tuple[str, int], Part]) -> dict[str, Any]:
    """``stages``: figures of each stage over all items and sets; ``sets``: of each set; ``fallbacks``: by set, the
    principles that failed by source id. Sets go by ``all``, ``all.set-2``, ... here."""
    names = {key: set_name(*key) for key in made}
    return {
        "seeds": len({record["item_id"] for record in records}),
        "stages": stage_figures(records),
        "sets": {
            names[key]: {
                "n": len(part.items),
                "left_out": len(part.left_out),
                "fallback": len(part.fallbacks),
                "fallback_rate": len(part.fallbacks) / len(part.items) if part.items else None,
                "untouched_principles": dict(
                    sorted(Counter(p for row in part.untouched.values() for p in row).items())
                ),
            }
            for key, part in made.items()
        },
        "fallbacks": {names[key]: part.fallbacks for key, part in made.items()},
    }


def stage_figures(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By stage: how often it ended how, attempts, and why attempts were turned down, with examples of reasons.

    ``fallback_rate`` and ``mean_attempts`` are over the items on which the agent was asked; ``turned_down`` counts
    attempts by who turned them down (``code: ...``, judge, unparsable).
    """
    stages: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for name, row in {**record["question"], **record["choices"]}.items():
            stages.setdefault(name, []).append(row)
    return {name: _stage(stages[name]) for name in sorted(stages)}


def _stage(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    asked = [row for row in rows if row["attempts"]]
    status = Counter(row["status"] for row in rows)
    turned_down = [a for row in asked for a in row["attempts"] if a["result"] not in ("accepted", "unchanged")]
    interval = wilson(status["fallback"], len(asked))
    reasons: dict[str, list[str]] = {}
    for attempt in turned_down:
        known = reasons.setdefault(attempt["result"], [])
        if len(known) < EXAMPLES and attempt["reason"] not in known:
            known.append(attempt["reason"])
    return {
        "n": len(rows),
        **{name: status[name] for name in ("accepted", "fallback", "unchanged", "not_applicable")},
        "fallback_rate": status["fallback"] / len(asked) if asked else None,
        "fallback_rate_interval": list(interval) if interval else None,
        "attempts": sum(len(row["attempts"]) for row in asked),
        "mean_attempts": sum(len(row["attempts"]) for row in asked) / len(asked) if asked else None,
        "accepted_at_attempt": _spread([len(row["attempts"]) for row in asked if row["status"] == "accepted"]),
        "turned_down": dict(Counter(attempt["result"] for attempt in turned_down).most_common()),
        "reasons": dict(sorted(reasons.items())),
    }


def _spread(numbers: Sequence[int]) -> dict[str, int]:
    return {str(number): count for number, count in sorted(Counter(numbers).items())}
