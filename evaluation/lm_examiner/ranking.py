"""What follows from comparisons: the win-rate matrix and Bradley-Terry strengths (Bradley and Terry 1952)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.statistics import mean

RESAMPLES = 1_000
Records = Sequence[Mapping[str, Any]]
Points = Mapping[tuple[str, str], float]


class Cells(NamedTuple):
    """One question's cells: points of i against j where both orders chose, and those that the final order filled in."""

    played: dict[tuple[str, str], float]
    inferred: dict[tuple[str, str], float]


def cells(record: Mapping[str, Any]) -> Cells:
    """A record's {comparisons, order}: a pair that was never compared goes to the one that stands first in the order.

    A pair whose comparison could not be read is in neither: nothing is known of it.
    """
    played: dict[tuple[str, str], float] = {}
    tried = set()
    for row in record["comparisons"]:
        a, b = row["pair"]
        tried |= {(a, b), (b, a)}
        if row["points"] is not None:
            played[a, b], played[b, a] = row["points"], 1 - row["points"]
    order = record["order"]
    inferred = {}
    for place, better in enumerate(order):
        for worse in order[place + 1 :]:
            if (better, worse) not in tried:
                inferred[better, worse], inferred[worse, better] = 1.0, 0.0
    return Cells(played, inferred)


def win_rates(records: Records, names: Sequence[str]) -> dict[str, Any]:
    """Row i, column j: the share of questions on which i beats j (a contradiction is half), None without any.

    ``inferred``: how many of a cell's questions come from the final order alone. ``mean``: of each row, against all
    others; None where a cell is missing.
    """
    found = [cells(record) for record in records]
    rates: list[list[float | None]] = []
    counts: list[list[int]] = []
    inferred: list[list[int]] = []
    for a in names:
        values = [[c.played.get((a, b), c.inferred.get((a, b))) for c in found] for b in names]
        known = [[value for value in cell if value is not None] for cell in values]
        rates.append([None if a == b else mean(cell) for b, cell in zip(names, known, strict=True)])
        counts.append([len(cell) for cell in known])
        inferred.append([sum((a, b) in c.inferred for c in found) for b in names])
    return {
        "names": list(names),
        "rates": rates,
        "questions": counts,
        "inferred": inferred,
        "mean": {name: _row_mean(row, place) for place, (name, row) in enumerate(zip(names, rates, strict=True))},
    }


def bradley_terry(
    records: Records, names: Sequence[str], *, seed: int, resamples: int = RESAMPLES, confidence: float = 0.95
) -> dict[str, Any]:
    """Strengths as natural logarithms with mean 0: i beats j with probability 1 / (1 + exp(b_j - b_i)).

    From comparisons that were made and read (a contradiction is a draw, half a win for each), by evalica. Intervals are
    percentile bootstrap over questions. There is no strength where a group of candidates never lost a point to the
    rest: it would be infinite; ``reason`` says so. Such resamples are dropped and counted.
    """
    tables = [_wins(cells(record).played, names) for record in records]
    whole = np.sum(tables, axis=0) if tables else np.zeros((len(names), len(names)))
    found = _strengths(whole, names)
    if found is None:
        reason = "no comparisons" if not whole.sum() else "some candidates never lost a point to the others"
        return {"strengths": dict.fromkeys(names), "intervals": dict.fromkeys(names), "reason": reason, "dropped": 0}
    generator = np.random.default_rng(seed)
    stacked = np.stack(tables)
    spread = []
    for _ in range(resamples):
        drawn = _strengths(stacked[generator.integers(len(tables), size=len(tables))].sum(axis=0), names)
        if drawn is not None:
            spread.append(drawn)
    tail = (1 - confidence) / 2
    bounds = np.quantile(np.array(spread), [tail, 1 - tail], axis=0) if spread else None
    return {
        "strengths": dict(zip(names, found.tolist(), strict=True)),
        "intervals": {
            name: None if bounds is None else [float(bounds[0, place]), float(bounds[1, place])]
            for place, name in enumerate(names)
        },
        "reason": "",
        "dropped": resamples - len(spread),
    }


def _wins(points: Points, names: Sequence[str]) -> NDArray[np.float64]:
    return np.array([[points.get((a, b), 0.0) for b in names] for a in names])


def _strengths(wins: NDArray[np.float64], names: Sequence[str]) -> NDArray[np.float64] | None:
    """None unless everybody lost a point to somebody, along a chain, to everybody else (Ford 1957)."""
    from evalica import Winner
    from evalica import bradley_terry as fit
    from scipy.sparse.csgraph import connected_components

    if len(names) < 2 or connected_components(wins > 0, directed=True, connection="strong")[0] > 1:
        return None
    a, b = np.nonzero(wins)
    result = fit(
        [names[i] for i in a],
        [names[j] for j in b],
        [Winner.X] * len(a),
        weights=wins[a, b].tolist(),
        tolerance=1e-10,
        limit=100_000,
    )
    logs = np.log(np.array([float(result.scores[name]) for name in names]))
    centred: NDArray[np.float64] = logs - logs.mean()
    return centred


def _row_mean(row: Sequence[float | None], own: int) -> float | None:
    others = [value for place, value in enumerate(row) if place != own]
    known = [value for value in others if value is not None]
    return mean(known) if len(known) == len(others) else None
