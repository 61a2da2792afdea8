"""The figures of a set of interviews: arithmetic on the records of ``kieval``, as they were written to JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluation.kieval.verdict import ASPECTS
from evaluation.statistics import mean, mean_of, wilson
from serving.records import derive_seed

VARIANTS = ("released", "paper")
SCALES = {"released": (0.1, 1.0), "paper": (0.0, 1.0)}
"""The least and the greatest score of a variant; the ablations are on the paper's."""
Records = Sequence[Mapping[str, Any]]


def summarise(records: Records, *, roles: Sequence[str], seed: int) -> dict[str, Any]:
    """Each mean has an interval over dialogues (``statistics.mean_of``).

    ``score`` and ``score_interval`` are the variant ``released`` (the published figures' scale), ``paper`` beside it.
    Dialogues without a score are counted in ``unscored`` and never count as 0. ``tokens``: means per dialogue and role.
    """
    variants = {name: figure([r["scores"][name] for r in records], name, seed, SCALES[name]) for name in VARIANTS}
    return {
        "n": len(records),
        "score": variants["released"]["mean"],
        "score_interval": variants["released"]["interval"],
        **({"score_interval_note": note} if (note := variants["released"].get("interval_note")) else {}),
        **variants,
        "ablations": _ablations(records, [r["ablations"] for r in records], seed),
        "aspects": {aspect: _aspect(records, aspect, seed) for aspect in ASPECTS},
        "rounds": figure([float(r["rounds_completed"]) for r in records], "rounds", seed),
        "stop_reasons": dict(sorted(Counter(r["stop_reason"] for r in records).items())),
        "missing_verdicts": sum(r["missing_verdicts"] for r in records),
        "verdicts": sum(r["rounds_completed"] - r["missing_verdicts"] for r in records),
        "unscored": sum(r["scores"]["released"] is None for r in records),
        "empty_questions": sum(not turn["question"] for r in records for turn in r["rounds"]),
        "empty_replies": sum(not turn["reply"] for r in records for turn in r["rounds"]),
        "overflow": {
            "dialogues_with_dropped_rounds": sum(r["dropped_rounds"] > 0 for r in records),
            "ended_by_context": sum(r["stop_reason"] == "context" for r in records),
        },
        "tokens": token_means(records, roles),
        "first_answer": _first_answers(records),
    }


def figure(
    values: Sequence[float | None], name: str, seed: int, scale: tuple[float, float] | None = None
) -> dict[str, Any]:
    """``{"mean", "interval", "n"}`` of the values there are. ``name``: of the figure, part of the bootstrap's seed."""
    known = [value for value in values if value is not None]
    found = mean_of(known, seed=derive_seed(seed, "kieval", name), scale=scale)
    return {**found.to_json(), "n": found.n}


def token_means(records: Records, roles: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Mean ``prompt`` and ``output`` tokens and ``calls`` per dialogue, by role (KIEval, Appendix E)."""
    kinds = ("prompt", "output", "calls")
    return {role: {kind: mean([float(r["tokens"][role][kind]) for r in records]) for kind in kinds} for role in roles}


def _aspect(records: Records, aspect: str, seed: int) -> dict[str, Any]:
    """The arms' means stand without intervals here: four per aspect would bury the rest."""
    rows = [r["aspects"][aspect] for r in records]
    variants = {name: figure([row[name] for row in rows], f"{aspect}/{name}", seed, SCALES[name]) for name in VARIANTS}
    return {**variants, "ablations": _ablations(records, [row["ablations"] for row in rows], None)}


def _ablations(records: Records, rows: Sequence[Mapping[str, Any]], seed: int | None) -> dict[str, Any]:
    """One figure per arm (seed None: without interval). An arm without early stop has none as long as some dialogue was
    ended early: the others are those that the evaluator found nothing wrong with, and their mean would flatter."""
    ended = sum(
        r["stop_reason"] not in ("rounds", "context") and r["rounds_completed"] < r["rounds_allowed"] for r in records
    )
    figures: dict[str, Any] = {}
    for arm in ARMS:
        values = [row[arm] for row in rows]
        if ended and not arm.endswith("+stop"):
            reason = f"{ended} of {len(records)} dialogues were ended early; run with early_stop: false"
            figures[arm] = {"mean": None, "interval": None, "n": 0, "reason": reason}
        elif seed is None:
            known = [value for value in values if value is not None]
            figures[arm] = {"mean": mean(known), "n": len(known)}
        else:
            figures[arm] = figure(values, arm, seed, SCALES["paper"])
    return figures


def _first_answers(records: Records) -> dict[str, Any]:
    answers = [r["first_answer"]["correct"] for r in records]
    right = answers.count(True)
    interval = wilson(right, len(records))
    return {
        "accuracy": right / len(records) if records else None,
        "interval": list(interval) if interval else None,
        "right": right,
        "wrong": answers.count(False),
        "unparsable": answers.count(None),
    }


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
