"""Pairwise accuracy: how often a score orders two items as people do (Deutsch, Foster and Freitag, EMNLP 2023).

Which pairs count, and for how much, depends on ties, so the rule is part of the figure:

- ``human_ties`` "left_out" (default): pairs that people rate equal say nothing and leave the count; "must_tie": they
  count, and are right where the score ties too.
- ``score_ties``: a pair that people order and the score doesn't counts as "half" right (default: what a coin would
  get), as "wrong", or is "left_out".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from evaluation.agreement.figures import Figure

HumanTies = Literal["left_out", "must_tie"]
ScoreTies = Literal["half", "wrong", "left_out"]
HUMAN_TIES: Final = ("left_out", "must_tie")
SCORE_TIES: Final = ("half", "wrong", "left_out")


def pairwise_accuracy(
    human: Sequence[float],
    score: Sequence[float],
    *,
    human_ties: HumanTies = "left_out",
    score_ties: ScoreTies = "half",
) -> Figure:
    """Right pairs over counted pairs, 0..1; ``n`` is the number of counted pairs. No interval.

    None where no pair counts, or a value is NaN or infinite. ValueError for an unknown rule or unequal lengths.
    """
    if human_ties not in HUMAN_TIES:
        raise ValueError(f"human_ties is {human_ties!r}; it must be one of {', '.join(HUMAN_TIES)}")
    if score_ties not in SCORE_TIES:
        raise ValueError(f"score_ties is {score_ties!r}; it must be one of {', '.join(SCORE_TIES)}")
    if len(human) != len(score):
        raise ValueError(f"there are {len(human)} ratings and {len(score)} scores; pairs need as many of both")
    a, b = np.asarray(human, dtype=np.float64), np.asarray(score, dtype=np.float64)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return Figure(value=None, n=0, reason="a value is not a finite number")
    same_order = score_tied = both_tied = human_tied = pairs = 0
    for row in range(len(a) - 1):  # one row at a time: the pairs of 20,000 items would not fit into memory
        x, y = np.sign(a[row] - a[row + 1 :]), np.sign(b[row] - b[row + 1 :])
        pairs += len(x)
        human_tied += int((x == 0).sum())
        both_tied += int(((x == 0) & (y == 0)).sum())
        score_tied += int(((x != 0) & (y == 0)).sum())
        same_order += int(((x != 0) & (x == y)).sum())
    right = same_order + (score_tied / 2 if score_ties == "half" else 0)
    counted = pairs - human_tied - (score_tied if score_ties == "left_out" else 0)
    if human_ties == "must_tie":
        right, counted = right + both_tied, counted + human_tied
    if not counted:
        return Figure(value=None, n=0, reason=f"none of the {pairs} pairs counts: there are no items, or all are tied")
    return Figure(value=right / counted, n=counted)
