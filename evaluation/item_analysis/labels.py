"""Discrimination in four levels (IDGen, arXiv 2409.18892): the outer cuts are the paper's, the middle one is ours."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

LABELS = ("Low", "Relatively low", "Relatively high", "High")
CUTS = (0.1, 0.175, 0.25)


def check_cuts(cuts: Sequence[float]) -> None:
    """ValueError unless there are three finite cuts that rise."""
    rising = len(cuts) == len(LABELS) - 1 and all(a < b for a, b in pairwise(cuts))
    if not rising or not all(map(math.isfinite, cuts)):
        raise ValueError(f"cuts are {', '.join(map(str, cuts))}; give three that rise, as {', '.join(map(str, CUTS))}")


def label(discrimination: float, cuts: Sequence[float] = CUTS) -> int | None:
    """0 (Low) to 3 (High); a value at a cut has the lower label. None for NaN.

    Rounded to 9 digits first: a difference of means that is 0.1 in decimals is no more than that in binary.
    """
    if math.isnan(discrimination):
        return None
    return sum(round(discrimination, 9) > cut for cut in cuts)


def distribution(labels: Iterable[int | None]) -> dict[str, int]:
    """How many items have each label; ``none`` counts those without."""
    counts = Counter(labels)
    named = {name: counts[index] for index, name in enumerate(LABELS)}
    return {**named, "none": counts[None]} if counts[None] else named
