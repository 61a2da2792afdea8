"""The tables of peer examination: who gets full marks from whom, and who beats whom by all examiners together.

LMExamQA, section 5. Rows are candidates, columns examiners; nobody is marked by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.statistics import mean

Table = Mapping[str, Mapping[str, float | None]]
"""Candidate -> examiner -> value; None (or no entry): no value, as on the diagonal."""


def averages(table: Table, examiners: Sequence[str]) -> dict[str, Any]:
    """``AVG`` and ``AVG_weight`` by candidate, and the ``columns`` that could not be scaled.

    AVG: the mean over the candidate's examiners. AVG_weight: the mean after each examiner's column is scaled so that
    its highest value is 100, which forgives a strict examiner. A column whose highest value is 0, or that is empty,
    can't be scaled and is left out of AVG_weight. None: no examiner gave a value.
    """
    highest = {
        examiner: max((row[examiner] for row in table.values() if row.get(examiner) is not None), default=0.0)  # type: ignore[type-var]
        for examiner in examiners
    }
    plain, weighted = {}, {}
    for candidate, row in table.items():
        given = {examiner: value for examiner in examiners if (value := row.get(examiner)) is not None}
        plain[candidate] = mean(list(given.values()))
        weighted[candidate] = mean([100 * v / h for e, v in given.items() if (h := highest[e])])
    return {"AVG": plain, "AVG_weight": weighted, "unscaled": [e for e in examiners if not highest[e]]}


def combine(
    by_examiner: Mapping[str, Mapping[str, Any]], names: Sequence[str], excluded: Sequence[str] = ()
) -> dict[str, Any]:
    """All examiners' win-rate matrices as one, in both ways.

    by_examiner: examiner -> ``ranking.win_rates``, whose names are those it compared
    ``by_mean``: of cell (i, j), the mean of the examiners' win rates
    ``by_vote``: each examiner other than i and j has one vote for the pair, from its win rate on its own questions
        (more than 0.5 for i, less for j, exactly 0.5 half for each); the cell is the share of votes
    excluded: examiners that have no vote and no part in the mean
    """
    rates: dict[tuple[str, str], list[float]] = {}
    for examiner, matrix in by_examiner.items():
        if examiner in excluded:
            continue
        for i, a in enumerate(matrix["names"]):
            for j, b in enumerate(matrix["names"]):
                value = matrix["rates"][i][j]
                if value is not None and examiner not in (a, b):
                    rates.setdefault((a, b), []).append(value)
    votes = {pair: [1.0 if v > 0.5 else 0.0 if v < 0.5 else 0.5 for v in values] for pair, values in rates.items()}
    return {
        "names": list(names),
        "by_mean": _matrix(rates, names),
        "by_vote": _matrix(votes, names),
        "examiners_of_pair": [[len(rates.get((a, b), ())) for b in names] for a in names],
        "excluded": list(excluded),
    }


def too_inconsistent(consistency: Mapping[str, Mapping[str, Any]], most: float) -> list[str]:
    """Examiners that contradict themselves in more than ``most`` of their pairs, or of whom none could be read."""
    return [
        examiner
        for examiner, row in consistency.items()
        if row["comparisons"] and (row["inconsistency"] is None or row["inconsistency"] > most)
    ]


def _matrix(values: Mapping[tuple[str, str], Sequence[float]], names: Sequence[str]) -> dict[str, Any]:
    rates = [[mean(values.get((a, b), ())) if a != b else None for b in names] for a in names]
    means: dict[str, float | None] = {}
    for place, name in enumerate(names):
        others = [value for other, value in enumerate(rates[place]) if other != place]
        known = [value for value in others if value is not None]
        means[name] = mean(known) if len(known) == len(others) and others else None
    return {"rates": rates, "mean": means}
