"""Does a probed benchmark see through contamination? A clean model and one that learned the items, item by item.

A good rewriting keeps what an item measures (fidelity: the clean model does on it as on the original) and undoes what
was learned by heart (resistance: the contaminated model does on it as the clean one). A drop alone is no evidence of
contamination: a clean model drops, too, where the rewritten item is harder or broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from evaluation.probing.effects import Outcomes
from evaluation.statistics import wilson

CAUTION: Final = (
    "A drop from vanilla to probed items is no evidence of contamination by itself: clean models drop as well. Compare "
    "it with the clean model's drop on the same items, and read fidelity first."
)


def fidelity(vanilla: Outcomes, probed: Outcomes) -> dict[str, Any]:
    """The share of items on which the clean model's correctness is the same before and after probing."""
    ids = [name for name in vanilla if name in probed]
    return _share([vanilla[name].correct == probed[name].correct for name in ids])


def resistance(clean: Outcomes, contaminated: Outcomes) -> dict[str, Any]:
    """The share of probed items on which clean and contaminated model are both right or both wrong."""
    ids = [name for name in clean if name in contaminated]
    return _share([clean[name].correct == contaminated[name].correct for name in ids])


def drops(clean: tuple[Outcomes, Outcomes], contaminated: tuple[Outcomes, Outcomes], *, seed: int) -> dict[str, Any]:
    """How much more the contaminated model loses than the clean one, on the items that all four results hold.

    clean, contaminated: (vanilla, probed). ``excess_drop`` > 0: the contaminated model falls further; its interval is a
    bootstrap over items.
    """
    from evaluation.statistics import paired_mean

    (clean_before, clean_after), (other_before, other_after) = clean, contaminated
    ids = [n for n in clean_before if n in clean_after and n in other_before and n in other_after]
    lost = [clean_before[n].correct - clean_after[n].correct for n in ids]
    lost_there = [other_before[n].correct - other_after[n].correct for n in ids]
    excess = paired_mean(lost_there, lost, seed=seed)
    return {
        "n": len(ids),
        "clean_drop": sum(lost) / len(ids) if ids else None,
        "contaminated_drop": sum(lost_there) / len(ids) if ids else None,
        **excess.to_json("excess_drop", "excess_drop_interval"),
        "advantage_vanilla": _gap(other_before, clean_before, ids),
        "advantage_probed": _gap(other_after, clean_after, ids),
    }


def _gap(a: Outcomes, b: Outcomes, ids: Sequence[str]) -> float | None:
    return sum(a[n].correct - b[n].correct for n in ids) / len(ids) if ids else None


def _share(values: Sequence[bool]) -> dict[str, Any]:
    interval = wilson(sum(values), len(values))
    return {
        "value": sum(values) / len(values) if values else None,
        "interval": list(interval) if interval else None,
        "n": len(values),
    }
