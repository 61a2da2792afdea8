"""Which pairs of candidates are compared on a question: all, or those that merge sort asks for.

A schedule is a dialogue over a comparing one: it asks for comparisons and ends with them and an order, the best first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from evaluation.asking.until_read import together
from evaluation.lm_examiner.comparing import Comparison, Pair
from serving.records import Yielded

Compare = Callable[[Pair], Generator[Yielded, Any, Comparison]]
SCHEDULES: Final = ("merge_sort", "all_pairs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The comparisons made, and the candidates from the best to the worst.

    The order of ``all_pairs`` is by points, then by the input order.
    """

    comparisons: tuple[Comparison, ...]
    order: tuple[str, ...]


def run_schedule(name: str, names: Sequence[str], compare: Compare) -> Generator[Yielded, Any, Ranked]:
    """``names`` in the seeded input order, which decides where a comparison doesn't."""
    assert name in SCHEDULES
    return (yield from (all_pairs if name == "all_pairs" else merge_sort)(names, compare))


def most_comparisons(name: str, n: int) -> int:
    """The most comparisons a schedule makes for ``n`` candidates on a question: merge sort 17 for 8, all pairs 28.

    Each is asked in both orders, so the calls are twice as many (and more where a verdict can't be read).
    """
    if name == "all_pairs" or n < 2:
        return n * (n - 1) // 2
    half = n // 2
    return most_comparisons(name, half) + most_comparisons(name, n - half) + n - 1


def all_pairs(names: Sequence[str], compare: Compare) -> Generator[Yielded, Any, Ranked]:
    """n (n - 1) / 2 comparisons, all asked together."""
    played: list[Comparison] = yield from together([compare(Pair(a, b)) for a, b in combinations(names, 2)])
    points = dict.fromkeys(names, 0.0)
    for comparison in played:
        share = 0.5 if comparison.points is None else comparison.points
        points[comparison.pair.first] += share
        points[comparison.pair.second] += 1 - share
    return Ranked(comparisons=tuple(played), order=tuple(sorted(names, key=lambda name: -points[name])))


def merge_sort(names: Sequence[str], compare: Compare) -> Generator[Yielded, Any, Ranked]:
    """At most n ceil(log2 n) comparisons; halves are sorted side by side.

    The sort is stable: where the two orders contradict each other, or have no choice, the input order stays.
    """
    if len(names) < 2:
        return Ranked(comparisons=(), order=tuple(names))
    half = len(names) // 2
    halves: list[Ranked] = yield from together([merge_sort(part, compare) for part in (names[:half], names[half:])])
    left, right = list(halves[0].order), list(halves[1].order)
    played = [*halves[0].comparisons, *halves[1].comparisons]
    merged: list[str] = []
    while left and right:
        # every name on the left precedes every one on the right in the input order
        comparison = yield from compare(Pair(left[0], right[0]))
        played.append(comparison)
        behind = comparison.points is not None and comparison.points < 0.5
        merged.append((right if behind else left).pop(0))
    return Ranked(comparisons=tuple(played), order=(*merged, *left, *right))
