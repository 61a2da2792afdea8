"""How many drafts each step left, why the others went, and what an item cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.idgen.duplicates import Duplicate

STEPS = {
    "general": ("instruction", "response", "usability", "reference", "duplicates"),
    "math": ("instruction", "checks", "reference", "duplicates"),
}
PUBLISHED_COST = {"calls": "2-5", "seconds": 20, "tokens": 9000}
"""Per item (IDGen, authors' answers to reviewers)."""


def funnel(records: Sequence[Mapping[str, Any]], dropped: Mapping[tuple[str, int], Duplicate]) -> dict[str, Any]:
    """By class: [{step, came, kept, reasons {reason: count}}] in the order of the steps; steps nobody came to are left
    out. dropped: near-duplicates by (seed's id, number of the draft)."""
    found: dict[str, Any] = {}
    for kind, steps in STEPS.items():
        drafts = [
            (draft, (record["item_id"], number) in dropped)
            for record in records
            if record["class"] == kind
            for number, draft in enumerate(record["drafts"])
        ]
        rows = []
        for step in steps:
            if step == "duplicates":
                came = [(draft, twin) for draft, twin in drafts if not draft["step"]]
                reasons = Counter("near-duplicate" for _, twin in came if twin)
            else:
                came = [(d, twin) for d, twin in drafts if step in d["passed"] or d["step"] == step]
                reasons = Counter(draft["reason"] for draft, _ in came if draft["step"] == step)
            if came:
                kept = len(came) - sum(reasons.values())
                rows.append({"step": step, "came": len(came), "kept": kept, "reasons": dict(reasons.most_common())})
        if rows:
            found[kind] = rows
    return found


def cost(records: Sequence[Mapping[str, Any]], items: int) -> dict[str, Any]:
    """Calls and tokens, in all and per kept item (None for no item), by role; seconds stand in usage.json, for records
    hold no wall-clock time."""
    total: Counter[str] = Counter()
    roles: dict[str, Counter[str]] = {}
    for record in records:
        for role, part in record["cost"].items():
            roles.setdefault(role, Counter()).update(part)
            total.update(part)
    tokens = total["prompt"] + total["output"]
    return {
        "calls": total["calls"],
        "tokens": tokens,
        "calls_per_item": total["calls"] / items if items else None,
        "tokens_per_item": tokens / items if items else None,
        "roles": {role: dict(part) for role, part in sorted(roles.items())},
        "published_per_item": PUBLISHED_COST,
    }


def added(summaries: Sequence[Mapping[str, Any]], seconds: float) -> dict[str, Any]:
    """Several builds' summaries as one: funnels step by step, and the cost, with the engines' seconds."""
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for summary in summaries:
        for kind, part in summary["funnel"].items():
            for row in part:
                blank = {"step": row["step"], "came": 0, "kept": 0, "reasons": Counter()}
                whole = rows.setdefault(kind, {}).setdefault(row["step"], blank)
                whole["came"] += row["came"]
                whole["kept"] += row["kept"]
                whole["reasons"].update(row["reasons"])
    kept = sum(summary["kept"] for summary in summaries)
    calls, tokens = (sum(summary["cost"][name] for summary in summaries) for name in ("calls", "tokens"))
    cost: dict[str, Any] = {"calls": calls, "tokens": tokens, "seconds": seconds, "per_item": None}
    if kept:
        cost["per_item"] = {"calls": calls / kept, "tokens": tokens / kept, "seconds": seconds / kept}
    return {
        "seeds": sum(summary["seeds"] for summary in summaries),
        "kept": kept,
        "funnel": {
            kind: [
                {**steps[name], "reasons": dict(steps[name]["reasons"].most_common())}
                for name in STEPS[kind]
                if name in steps
            ]
            for kind, steps in rows.items()
        },
        "cost": {**cost, "published_per_item": PUBLISHED_COST},
    }
