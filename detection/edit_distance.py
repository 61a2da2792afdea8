"""Levenshtein distance of two token sequences, bit-parallel: a column of the table is one integer.

Myers 1999, "A fast bit-vector algorithm for approximate string matching based on dynamic programming" (J. ACM 46), in
the form that Hyyrö 2003 gave it. One step handles all rows of a column, so two answers of 100 tokens take 100 steps.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """The least number of insertions, deletions and replacements of single tokens that turn one into the other."""
    if not first:
        return len(second)
    rows: dict[Hashable, int] = {}
    for i, token in enumerate(first):
        rows[token] = rows.get(token, 0) | 1 << i
    everywhere = (1 << len(first)) - 1
    last = 1 << (len(first) - 1)
    # Bit i: the table's value in row i+1 exceeds (up), or falls below (down), that of row i.
    up, down, distance = everywhere, 0, len(first)
    for token in second:
        equal = rows.get(token, 0)
        vertical = equal | down
        diagonal = (((equal & up) + up) ^ up) | equal
        right = down | ~(diagonal | up)
        left = up & diagonal
        if right & last:
            distance += 1
        elif left & last:
            distance -= 1
        right = right << 1 | 1
        up = (left << 1 | ~(vertical | right)) & everywhere
        down = right & vertical & everywhere
    return distance
