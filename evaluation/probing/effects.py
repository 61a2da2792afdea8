"""What probing did to a candidate: accuracy before and after, corrected for chance, item by item, and by principle.

All on pairs: one item, its outcome as published (vanilla) and as rewritten (probed). Sources: MPA, arXiv 2402.14865,
sections 4 and 5 (relative effectiveness: Figure 5's measure); the correction for chance is the usual one for guessing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from evaluation.statistics import mean, paired_mean, wilson


class Outcome(NamedTuple):
    """Whether an answer was right, and how many options there were to guess from (0: an open question)."""

    correct: bool
    options: int = 0

    @property
    def chance(self) -> float:
        return 1 / self.options if self.options else 0.0


Outcomes = Mapping[str, Outcome]
"""By id of the vanilla item."""


def comparison(vanilla: Outcomes, probed: Outcomes, *, seed: int) -> dict[str, Any]:
    """One set against the same items as published: accuracies, ``delta`` = probed - vanilla with its paired bootstrap
    interval over items, the same corrected for chance, and the churn. Items without a partner are counted as
    ``unpaired`` and left out.
    """
    ids = [name for name in vanilla if name in probed]
    before, after = [vanilla[name] for name in ids], [probed[name] for name in ids]
    difference = paired_mean([o.correct for o in after], [o.correct for o in before], seed=seed)
    corrected = [corrected_accuracy(side) for side in (before, after)]
    return {
        "n": len(ids),
        "unpaired": len(set(vanilla) ^ set(probed)),
        "vanilla": accuracy(before),
        "probed": accuracy(after),
        **difference.to_json("delta", "delta_interval"),
        "chance": {"vanilla": mean([o.chance for o in before]), "probed": mean([o.chance for o in after])},
        "corrected": {
            "vanilla": corrected[0],
            "probed": corrected[1],
            "delta": None if corrected[0] is None or corrected[1] is None else corrected[1] - corrected[0],
        },
        "churn": churn(before, after),
    }


def accuracy(outcomes: Sequence[Outcome]) -> float | None:
    """The share of right answers; None of none."""
    return mean([float(outcome.correct) for outcome in outcomes])


def corrected_accuracy(outcomes: Sequence[Outcome]) -> float | None:
    """The mean over items of (correct - chance) / (1 - chance): 0 for a guesser, 1 for all right. None of none.

    Chance is 1 / options of the very item, so that a fifth option lowers it from 1/4 to 1/5. An item with a single
    option, on which nobody can be wrong, is left out.
    """
    return mean([(o.correct - o.chance) / (1 - o.chance) for o in outcomes if o.options != 1])


def churn(before: Sequence[Outcome], after: Sequence[Outcome]) -> dict[str, Any]:
    """The 2x2 table, as counts and shares: O original, P probing, T right, F wrong.

    ``changed`` = OT/PF + OF/PT, with Wilson's interval: what a small delta may hide.
    """
    pairs = list(zip(before, after, strict=True))
    n = len(pairs)
    counts = {
        f"O{'FT'[o]}/P{'FT'[p]}": sum(x.correct == bool(o) and y.correct == bool(p) for x, y in pairs)
        for o in (1, 0)
        for p in (1, 0)
    }
    changed = counts["OT/PF"] + counts["OF/PT"]
    interval = wilson(changed, n)
    return {
        "counts": counts,
        "shares": {name: count / n if n else None for name, count in counts.items()},
        "changed": changed / n if n else None,
        "changed_interval": list(interval) if interval else None,
    }


def over_sets(comparisons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation (n - 1; None for a single set) over sets made with different seeds."""
    figures = {
        "vanilla": [c["vanilla"] for c in comparisons],
        "probed": [c["probed"] for c in comparisons],
        "delta": [c["delta"] for c in comparisons],
        "probed_corrected": [c["corrected"]["probed"] for c in comparisons],
        "changed": [c["churn"]["changed"] for c in comparisons],
    }
    return {"sets": len(comparisons), **{name: spread(values) for name, values in figures.items()}}


def pooled(vanilla: Outcomes, sets: Sequence[Outcomes], *, seed: int) -> dict[str, Any]:
    """``delta`` over all sets: per item the mean over the sets it is in, with the interval over items."""
    ids = [name for name in vanilla if any(name in part for part in sets)]
    after = [_mean_correct(name, sets) for name in ids]
    difference = paired_mean(after, [float(vanilla[name].correct) for name in ids], seed=seed)
    return {
        "n": len(ids),
        **difference.to_json("delta", "delta_interval"),
    }


def relative_effectiveness(change: float | None, all_principles: Mapping[str, Any]) -> dict[str, Any]:
    """RE(p_i) = (Acc_pi - Acc) / (Acc_pall - Acc): the share of the full drop that one principle brings about.

    change: Acc_pi - Acc over the items of the denominator; an item that p_i can't be applied to counts as unchanged
    all_principles: ``delta`` and ``delta_interval`` with all of them (``pooled`` or ``comparison``)
    ``value`` is None, ``reason`` says why, where the denominator isn't told from 0: its interval holds 0.
    """
    denominator, interval = all_principles["delta"], all_principles["delta_interval"]
    if denominator is None or change is None:
        return {"value": None, "reason": "undefined: no items"}
    if denominator == 0 or interval[0] <= 0 <= interval[1]:
        bounds = f"{interval[0]:.3f} to {interval[1]:.3f}"
        return {
            "value": None,
            "reason": f"undefined: the change with all principles, {denominator:.3f} ({bounds}), is not told from 0",
        }
    return {"value": change / denominator}


def by_subject(vanilla: Outcomes, sets: Sequence[Outcomes], subjects: Mapping[str, str]) -> list[dict[str, Any]]:
    """Accuracy before and after (mean over the sets) per subject, the largest drop first; of equal drops by name."""
    groups: dict[str, list[str]] = {}
    for name in vanilla:
        if any(name in part for part in sets):
            groups.setdefault(subjects.get(name, ""), []).append(name)
    rows: list[dict[str, Any]] = []
    for subject, ids in groups.items():
        before = sum(vanilla[name].correct for name in ids) / len(ids)
        after = sum(_mean_correct(name, sets) for name in ids) / len(ids)
        rows.append({"subject": subject, "n": len(ids), "vanilla": before, "probed": after, "delta": after - before})
    return sorted(rows, key=lambda row: (row["delta"], row["subject"]))


def monotonicity(levels: Sequence[float | None]) -> dict[str, Any]:
    """Whether accuracy never rises from one level of complexity to the next (vanilla, level 1, 2, 3).

    Equal neighbours don't break it. A level without a value is left out, its neighbours are compared. ``holds`` is None
    for fewer than two levels.
    """
    known = [(number, value) for number, value in enumerate(levels) if value is not None]
    steps = [(a[0], b[0], b[1] - a[1]) for a, b in pairwise(known)]
    rising = [{"from": start, "to": end, "rise": rise} for start, end, rise in steps if rise > 0]
    return {"accuracies": list(levels), "holds": not rising if steps else None, "steps": len(steps), "rising": rising}


def _mean_correct(name: str, sets: Sequence[Outcomes]) -> float:
    values = [part[name].correct for part in sets if name in part]
    return sum(values) / len(values)


def spread(values: Sequence[float | None]) -> dict[str, Any]:
    """Mean and standard deviation (n - 1; None for fewer than two) of the values that there are."""
    known = [value for value in values if value is not None]
    deviation = float(np.std(known, ddof=1)) if len(known) > 1 else None
    return {"mean": mean(known), "sd": deviation, "n": len(known)}
