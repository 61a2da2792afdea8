"""How far two evaluators agree on the same rounds: the one that held the interview and the one that judged it again.

Pairs are rounds to which both gave a score. Cohen's kappa (1960) over the scores 1..4, unweighted and with quadratic
weights (1968), from scikit-learn; correlations from scipy. A figure that the data can't give is None with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.kieval.scores import figure

SCORES = (1, 2, 3, 4)
Records = Sequence[Mapping[str, Any]]
Figure = dict[str, Any]


def agreement(records: Records, originals: Records, *, seed: int) -> dict[str, Any]:
    """records: of ``rejudge``; originals: of ``kieval``, the same interviews in the same order.

    ``n`` pairs, ``missing`` {new, original} rounds without a verdict of the one or the other, ``exact`` (share of equal
    scores), ``kappa``, ``kappa_quadratic``, ``pearson`` and ``spearman``; ``mean_difference``, new minus original, the
    mean over interviews of each one's mean, with an interval over interviews, for the rounds of one interview
    depend on each other. ``stop``: the same of the wish to stop. ``interviews``: the same of the interviews' scores
    (released, over all stored rounds). ValueError where an interview has more or fewer rounds than were judged.
    """
    by_interview = [_rounds(new, old) for new, old in zip(records, originals, strict=True)]
    every = [pair for rounds in by_interview for pair in rounds]
    both = [(new, old) for new, old in every if new is not None and old is not None]
    scores = [(new["overall"]["score"], old["overall"]["score"]) for new, old in both]
    return {
        "n": len(scores),
        "missing": {"new": sum(new is None for new, _ in every), "original": sum(old is None for _, old in every)},
        "exact": _share(scores),
        "kappa": _kappa(scores, SCORES),
        "kappa_quadratic": _kappa(scores, SCORES, weights="quadratic"),
        **_correlations(scores),
        "mean_difference": figure([_mean_difference(rounds) for rounds in by_interview], "rejudge/difference", seed),
        "stop": _stop([(new["stop"], old["stop"]) for new, old in both]),
        "interviews": _interviews(records, originals, seed),
    }


def _rounds(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """The two verdicts on each round."""
    if len(new["rounds"]) != len(old["rounds"]):
        raise ValueError(
            f"item {new['item_id']}: {len(new['rounds'])} rounds were judged again, but its interview has "
            f"{len(old['rounds'])}; give the records that were judged"
        )
    return [(a["verdict"], b["verdict"]) for a, b in zip(new["rounds"], old["rounds"], strict=True)]


def _mean_difference(rounds: Sequence[tuple[Any, Any]]) -> float | None:
    both = [new["overall"]["score"] - old["overall"]["score"] for new, old in rounds if new and old]
    return sum(both) / len(both) if both else None


def _stop(pairs: Sequence[tuple[bool, bool]]) -> dict[str, Any]:
    return {
        "n": len(pairs),
        "exact": _share(pairs),
        "kappa": _kappa([(int(new), int(old)) for new, old in pairs], (0, 1)),
        "both": sum(new and old for new, old in pairs),
        "only_new": sum(new and not old for new, old in pairs),
        "only_original": sum(old and not new for new, old in pairs),
        "neither": sum(not new and not old for new, old in pairs),
    }


def _interviews(records: Records, originals: Records, seed: int) -> dict[str, Any]:
    pairs = [
        (new["scores_all_rounds"]["released"], old["scores"]["released"])
        for new, old in zip(records, originals, strict=True)
    ]
    both = [(new, old) for new, old in pairs if new is not None and old is not None]
    differences = figure([new - old for new, old in both], "rejudge/interviews", seed)
    return {"n": len(both), **_correlations(both), "mean_difference": differences}


def _share(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    return sum(new == old for new, old in pairs) / len(pairs) if pairs else None


def _kappa(pairs: Sequence[tuple[int, int]], labels: Sequence[int], weights: str | None = None) -> Figure:
    if not pairs:
        return _none("no pairs")
    if len({value for pair in pairs for value in pair}) == 1:
        return _none("both gave one and the same value throughout, so chance agreement is 1")
    from sklearn.metrics import cohen_kappa_score

    new, old = zip(*pairs, strict=True)
    return {"value": float(cohen_kappa_score(new, old, labels=list(labels), weights=weights))}


def _correlations(pairs: Sequence[tuple[float, float]]) -> dict[str, Figure]:
    if len(pairs) < 3:
        return dict.fromkeys(("pearson", "spearman"), _none("fewer than 3 pairs"))
    new, old = zip(*pairs, strict=True)
    # Weighted means of equal scores may differ in their last digits.
    constant = [who for who, values in (("new", new), ("original", old)) if max(values) - min(values) < 1e-9]
    if constant:
        return dict.fromkeys(("pearson", "spearman"), _none(f"constant scores ({' and '.join(constant)})"))
    from scipy.stats import pearsonr, spearmanr

    return {
        "pearson": {"value": float(pearsonr(new, old).statistic)},
        "spearman": {"value": float(spearmanr(new, old).statistic)},
    }


def _none(reason: str) -> Figure:
    return {"value": None, "reason": reason}
