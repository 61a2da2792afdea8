"""The figures of one file: every score against the human ratings, overall and for each value of a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.agreement.correlation import correlations
from evaluation.agreement.figures import RESAMPLES
from evaluation.agreement.kappa import (
    Label,
    Labels,
    Weights,
    cohen_kappa,
    confusion,
    fleiss_kappa,
    krippendorff_alpha,
    label_order,
    pairwise_kappa,
    rated_by_both,
)
from evaluation.agreement.ordering import HumanTies, ScoreTies, pairwise_accuracy
from evaluation.statistics import wilson

TIED = "the annotators are tied"
_MOST_LABELS = 50

Section = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementSettings:
    """How agreement is measured; see ``ordering`` for the rules on ties and ``kappa`` for the weights."""

    seed: int = 0
    resamples: int = RESAMPLES
    weights: Weights = "none"
    human_ties: HumanTies = "left_out"
    score_ties: ScoreTies = "half"


@dataclass(frozen=True, slots=True)
class Column:
    """One score (or the human side): a value per row or None, and beside each None why there is none."""

    values: Sequence[Any]
    reasons: Sequence[str]

    def pick(self, rows: Sequence[int]) -> Column:
        return Column([self.values[row] for row in rows], [self.reasons[row] for row in rows])


def mean_rating(annotators: Sequence[Column]) -> Column:
    """The human score of each row: the mean over the annotators that rated it."""
    values: list[float | None] = []
    reasons: list[str] = []
    for row in range(len(annotators[0].values)):
        given = [column.values[row] for column in annotators if column.values[row] is not None]
        values.append(sum(given) / len(given) if given else None)
        reasons.append("" if given else annotators[0].reasons[row])
    return Column(values, reasons)


def majority_label(annotators: Sequence[Labels]) -> Column:
    """The human label of each row: the commonest one; None where two are equally common."""
    values: list[Label | None] = []
    reasons: list[str] = []
    for labels in zip(*annotators, strict=True):
        ranked = Counter(label for label in labels if label is not None).most_common()
        tied = len(ranked) > 1 and ranked[0][1] == ranked[1][1]
        values.append(ranked[0][0] if ranked and not tied else None)
        reasons.append(TIED if tied else "" if ranked else "no value")
    return Column(values, reasons)


def score_section(human: Column, scores: Mapping[str, Column], settings: AgreementSettings) -> Section:
    """Per score: ``n``, ``left_out`` by reason, the correlations and the pairwise accuracy."""
    section: Section = {}
    for name, score in scores.items():
        kept, left_out = usable(human, score)
        x, y = [human.values[row] for row in kept], [score.values[row] for row in kept]
        figures = correlations(x, y, seed=settings.seed, resamples=settings.resamples)
        pairs = pairwise_accuracy(x, y, human_ties=settings.human_ties, score_ties=settings.score_ties)
        accuracy = {key: value for key, value in pairs.to_json().items() if key != "interval"}
        section[name] = {
            "n": len(kept),
            "left_out": dict(sorted(Counter(left_out.values()).items())),
            **{key: figure.to_json() for key, figure in figures.items()},
            "pairwise_accuracy": {
                **accuracy,
                "human_ties": settings.human_ties,
                "score_ties": settings.score_ties,
            },
        }
    return section


def label_section(human: Column, scores: Mapping[str, Column], settings: AgreementSettings) -> Section:
    """Per score: ``n``, ``left_out``, ``cohen_kappa``, ``raw_agreement`` (with a Wilson interval), ``confusion``
    (human labels down, the score's across)."""
    section: Section = {}
    for name, score in scores.items():
        _, left_out = usable(human, score)
        pairs = rated_by_both(human.values, score.values)
        order = label_order([label for pair in pairs for label in pair])
        figure = cohen_kappa(
            human.values, score.values, weights=settings.weights, seed=settings.seed, resamples=settings.resamples
        )
        same = sum(x == y for x, y in pairs)
        interval = wilson(same, len(pairs))
        section[name] = {
            "n": len(pairs),
            "left_out": dict(sorted(Counter(left_out.values()).items())),
            "cohen_kappa": {**figure.to_json(), "weights": settings.weights},
            "raw_agreement": {
                "value": same / len(pairs) if pairs else None,
                "interval": None if interval is None else list(interval),
                "n": len(pairs),
            },
            "confusion": {"labels": order, "human_by_score": confusion(pairs, order).tolist()},
        }
    return section


def annotator_section(annotators: Mapping[str, Labels], weights: Weights) -> Section | None:
    """Agreement between annotators: Cohen's kappa averaged over pairs, and Fleiss'. None for a single annotator.

    Ratings of more than 50 different values are measurements, not labels: None with a reason.
    """
    if len(annotators) < 2:
        return None
    distinct = {label for labels in annotators.values() for label in labels if label is not None}
    if len(distinct) > _MOST_LABELS:
        reason = f"the ratings have {len(distinct)} different values; kappa is for labels"
        return {
            "cohen_kappa": {"mean": None, "reason": reason},
            "fleiss_kappa": {"value": None, "reason": reason},
            "krippendorff_alpha": {"value": None, "reason": reason},
        }
    return {
        "cohen_kappa": pairwise_kappa(annotators, weights=weights),
        "fleiss_kappa": fleiss_kappa(list(annotators.values())),
        "krippendorff_alpha": krippendorff_alpha(list(annotators.values()), weights=weights),
    }


def usable(human: Column, score: Column) -> tuple[list[int], dict[int, str]]:
    """The rows that have both values; and of the others, by row, which side has none and why."""
    kept, left_out = [], {}
    for row in range(len(human.values)):
        if human.values[row] is None:
            left_out[row] = f"human: {human.reasons[row]}"
        elif score.values[row] is None:
            left_out[row] = f"score: {score.reasons[row]}"
        else:
            kept.append(row)
    return kept, left_out


def grouped(
    values: Sequence[Label | None], section: Callable[[Sequence[int]], Section]
) -> tuple[dict[str, Section], int]:
    """``section`` of the rows of each value, values in order, and the number of rows without a value (in no group)."""
    order = label_order([value for value in values if value is not None])
    groups = {str(value): [row for row, other in enumerate(values) if other == value] for value in order}
    return {name: section(rows) for name, rows in groups.items()}, sum(value is None for value in values)
