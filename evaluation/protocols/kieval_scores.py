"""A dialogue's score from its rounds' scores s_i in 1..4: two named variants and the paper's ablations.

``paper`` is the formula of KIEval (arXiv 2402.15043, section 3.4): s_i mapped to [0, 1] by (s - 1) / 3, weights
w_i = exp(-i / n) over the n rounds allowed, a round that an early stop made impossible scoring 0.
``released`` is what the authors' code computes: 1, 2, 3, 4 become 0.1, 0.3, 0.7, 1.0, weights exp(-0.2 i), over the
rounds that took place. The published figures (x 100) are on this scale.

A missing verdict (None) leaves numerator and denominator; later rounds keep their weights. No verdict: no score (None).
All functions are pure; i counts from 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

RELEASED_VALUES = {1: 0.1, 2: 0.3, 3: 0.7, 4: 1.0}
ARMS = ("decay+stop", "decay", "constant+stop", "constant")

Scores = Sequence[int | None]


def paper(scores: Scores, *, rounds: int, stopped_early: bool) -> float | None:
    """The paper's score, 0..1.

    scores: one per round that took place, None where the verdict is missing
    rounds: n, the rounds allowed
    stopped_early: whether the evaluator ended the dialogue; the rounds after it score 0 then. Rounds that are lacking
        for another reason (the context was full) say nothing about the candidate and are left out, as missing verdicts.
    """
    return _mean(scores, rounds=rounds, decay=True, stopped_early=stopped_early)


def released(scores: Scores) -> float | None:
    """The released code's score, 0.1..1."""
    return _weighted(
        (RELEASED_VALUES[score], math.exp(-0.2 * i)) for i, score in enumerate(scores) if score is not None
    )


def ablations(
    scores: Scores, *, rounds: int, stop_round: int | None, stopped_early: bool = False
) -> dict[str, float | None]:
    """The four arms of the paper's Table 8, on the scale of ``paper``.

    stop_round: index of the first round whose verdict asked to stop, None if none did
    stopped_early: whether the dialogue ended there; what the rounds after it would have scored is unknown then, and the
        arms without ``stop`` are None (unless that round was the last one anyway)
    Keys: ``ARMS``. With ``stop`` the rounds after ``stop_round`` score 0; without it every round counts as judged.
    """
    heard = scores if stop_round is None else scores[: stop_round + 1]
    unknown = stopped_early and len(scores) < rounds
    arms: dict[str, float | None] = {}
    for name, decay in (("decay", True), ("constant", False)):
        arms[f"{name}+stop"] = _mean(heard, rounds=rounds, decay=decay, stopped_early=stop_round is not None)
        arms[name] = None if unknown else _mean(scores, rounds=rounds, decay=decay, stopped_early=False)
    return arms


def _mean(scores: Scores, *, rounds: int, decay: bool, stopped_early: bool) -> float | None:
    if len(scores) > rounds:
        raise ValueError(f"there are {len(scores)} scores, but only {rounds} rounds were allowed")
    if all(score is None for score in scores):
        return None
    weights = [math.exp(-i / rounds) if decay else 1.0 for i in range(rounds)]
    judged = [((score - 1) / 3, w) for score, w in zip(scores, weights, strict=False) if score is not None]
    unreached = [(0.0, w) for w in weights[len(scores) :]] if stopped_early else []
    return _weighted([*judged, *unreached])


def _weighted(pairs: Iterable[tuple[float, float]]) -> float | None:
    pairs = list(pairs)
    if not pairs:
        return None
    return math.fsum(value * weight for value, weight in pairs) / math.fsum(weight for _, weight in pairs)
