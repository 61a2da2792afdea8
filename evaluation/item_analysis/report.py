"""Everything that is known of a matrix: a table of its items, the figures of the whole, and the data of its plots."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evaluation.item_analysis import classical, irt
from evaluation.item_analysis.classical import CUTS, LABELS, check_cuts, distribution, label, sure_label
from evaluation.item_analysis.matrix import Matrix, Scores
from evaluation.item_analysis.set_level import PUBLISHED, compare, set_level
from evaluation.item_analysis.short_form import short_form
from evaluation.statistics import percentile_interval

THETA = np.linspace(-4.0, 4.0, 81)
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAnalysisSettings:
    """fraction: of candidates in the high group, and in the low one; cuts: between the four labels
    short: items of the short form (None: none is sought); fit: whether the two-parameter model is fitted
    """

    fraction: float = classical.FRACTION
    cuts: tuple[float, ...] = CUTS
    short: int | None = None
    fit: bool = True
    resamples: int = classical.RESAMPLES
    seed: int = 0

    def __post_init__(self) -> None:
        check_cuts(self.cuts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """rows: one per item; metrics: the figures of the whole; curves: theta, and by name what is plotted over it."""

    rows: list[dict[str, Any]]
    metrics: dict[str, Any]
    curves: dict[str, Any]


def analyse(
    matrix: Matrix,
    settings: ItemAnalysisSettings,
    *,
    groups: Mapping[str, str] | None = None,
    marked: Mapping[str, str] | None = None,
    against: Matrix | None = None,
) -> Analysis:
    """The analysis of a matrix.

    groups: what an item belongs to (the generator that wrote it, its category): labels are counted by it, too
    marked: candidates whose row needs a word beside it, e.g. for it sat an exam of its own making
    against: another exam of the same candidates, with which it is compared as a whole
    """
    figures = classical.analyse(
        matrix, fraction=settings.fraction, resamples=settings.resamples, seed=settings.seed, permute=True
    )
    enough = int((~np.isnan(matrix.scores)).any(axis=1).sum()) >= 2
    fitted = irt.fit(matrix) if settings.fit and enough else None
    form = short_form(matrix, settings.short, seed=settings.seed) if settings.short is not None else None
    points = [label(value, settings.cuts) for value in figures.discrimination.tolist()]
    bounds = zip(figures.interval_low.tolist(), figures.interval_high.tolist(), strict=True)
    labels = [sure_label(low, high, settings.cuts) for low, high in bounds]
    rows = []
    for j, item in enumerate(matrix.items):
        index = labels[j]
        rows.append(
            {
                "item": item,
                **({} if groups is None else {"group_name": groups.get(item, "")}),
                "n": int(figures.n[j]),
                "group": int(figures.group[j]),
                **{name: _plain(getattr(figures, name)[j]) for name in _FLOATS},
                "label": index,
                "label_name": None if index is None else LABELS[index],
                "label_of_the_index": points[j],
                "negative": bool(figures.discrimination[j] < 0),
                "slope": None if fitted is None else _plain(fitted.slopes[j]),
                "location": None if fitted is None else _plain(fitted.difficulties[j]),
                "short_form": form.items.index(j) + 1 if form is not None and j in form.items else None,
            }
        )
    known = figures.discrimination[~np.isnan(figures.discrimination)]
    sizes = sorted(set(figures.group.tolist()))
    metrics: dict[str, Any] = {
        "candidates": len(matrix.candidates),
        "items": len(matrix.items),
        "max_score": matrix.max_score,
        "missing_scores": int(np.isnan(matrix.scores).sum()),
        "warnings": _warnings(matrix, sizes, fitted is not None),
        "groups": {"fraction": settings.fraction, "high": sizes, "low": sizes},
        "difficulty_mean": _plain(_mean(figures.difficulty)),
        "discrimination_mean": _plain(_mean(figures.discrimination)),
        "negative": int((known < 0).sum()),
        "cuts": list(settings.cuts),
        "labels": distribution(labels),
        "labels_of_the_index": distribution(points),
        "by_chance": _chance(figures),
        "set": set_level(matrix, seed=settings.seed).to_json(),
        "published": PUBLISHED,
        "short_form": None
        if form is None
        else {**asdict(form), "items": [matrix.items[index] for index in form.items]},
        "irt": None
        if fitted is None
        else {
            "iterations": fitted.iterations,
            "converged": fitted.converged,
            "abilities": {
                name: {"theta": _plain(theta), "sd": _plain(sd)}
                for name, theta, sd in zip(matrix.candidates, fitted.abilities, fitted.ability_sds, strict=True)
            },
        },
    }
    if marked:
        metrics["marked"] = dict(marked)
    if groups is not None:
        metrics["by"] = by_group(rows)
    if against is not None:
        metrics["against"] = beside(matrix, against, fraction=settings.fraction, seed=settings.seed)
    return Analysis(rows=rows, metrics=metrics, curves={} if fitted is None else _curves(matrix, fitted))


def beside(matrix: Matrix, other: Matrix, *, fraction: float, seed: int) -> dict[str, Any]:
    """The other set's figures, and the set minus the other (``evaluation.item_analysis.set_level.compare``)."""
    compared = compare(matrix, other, fraction=fraction, seed=seed)
    return {"set": set_level(other, seed=seed).to_json(), **compared.to_json()}


def by_group(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The labels of what each group (generator) made, counted. ``shares`` are of the index's own labels, whatever its
    interval: how IDGen compares generators."""
    found: dict[str, Any] = {}
    for name in sorted({row["group_name"] for row in rows}):
        part = [row for row in rows if row["group_name"] == name]
        values = [row["discrimination"] for row in part if row["discrimination"] is not None]
        counts = distribution([row["label_of_the_index"] for row in part])
        found[name] = {
            "items": len(part),
            "discrimination_mean": float(np.mean(values)) if values else None,
            "labels": distribution([row["label"] for row in part]),
            "labels_of_the_index": counts,
            "shares": {key: count / len(part) for key, count in counts.items()},
        }
    return found


_FLOATS = (
    "difficulty",
    "discrimination",
    "interval_low",
    "interval_high",
    "high",
    "low",
    "point_biserial",
    "item_total",
    "item_rest",
)


def _curves(matrix: Matrix, fitted: irt.Fit) -> dict[str, Any]:
    """Characteristic curves P(theta) and information by item, the set's information, and the candidates' places."""
    information = fitted.information(THETA)
    return {
        "theta": THETA.round(_DIGITS).tolist(),
        "characteristic": dict(zip(matrix.items, fitted.probability(THETA).T.round(_DIGITS).tolist(), strict=True)),
        "information": dict(zip(matrix.items, information.T.round(_DIGITS).tolist(), strict=True)),
        "set_information": np.nansum(information, axis=1).round(_DIGITS).tolist(),
        "abilities": dict(zip(matrix.candidates, fitted.abilities.round(_DIGITS).tolist(), strict=True)),
    }


def _warnings(matrix: Matrix, sizes: list[int], fitted: bool) -> list[str]:
    n = len(matrix.candidates)
    found = []
    if n < classical.FEW_CANDIDATES:
        size = max(sizes)
        step = f"1/{size * matrix.max_score:g}"
        found.append(
            f"{n} candidates: the discrimination index is coarse (groups of {size}: with whole scores 0.."
            f"{matrix.max_score:g} only multiples of {step} occur) and its intervals mean little"
            if size
            else f"{n} candidate: discrimination needs two"
            if n < 2
            else "no item has scores of two candidates, so there is no discrimination: give records of the same items"
        )
    if fitted and n < irt.FEW_CANDIDATES:
        found.append(f"{n} candidates: the priors of the two-parameter fit say much of its parameters")
    empty = np.isnan(matrix.scores).all(axis=1)
    if empty.any():
        found.append(f"without any score: {', '.join(np.array(matrix.candidates)[empty].tolist())}")
    return found


def _chance(figures: classical.Classical) -> dict[str, Any] | None:
    """The mean discrimination that noise gives: mean and 95% of the permutations, and the share of them that reach the
    set's own, which is its p-value."""
    known = figures.by_chance[~np.isnan(figures.by_chance)]
    own = _mean(figures.discrimination)
    if not len(known) or math.isnan(own):
        return None
    low, high = percentile_interval(known) or (math.nan, math.nan)
    return {
        "mean": _plain(known.mean()),
        "interval": [_plain(low), _plain(high)],
        "p_value": float((1 + (known >= own - 1e-12).sum()) / (1 + len(known))),
        "permutations": len(known),
    }


def _mean(values: Scores) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _plain(value: Any) -> float | None:
    number = float(value)
    return None if math.isnan(number) else round(number, _DIGITS)
