"""The figures of a peer examination, from its records alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.lm_examiner.comparing import consistency
from evaluation.lm_examiner.marking import FULL
from evaluation.lm_examiner.ranking import bradley_terry, win_rates
from evaluation.statistics import mean, welch
from serving.records import derive_seed

Records = Sequence[Mapping[str, Any]]


def summarise(
    records: Records, models: Sequence[str], *, max_inconsistency: float, seed: int, own_answers: bool, asked: int
) -> dict[str, Any]:
    """``full_marks`` (rows candidates, columns examiners, in percent, with counts), ``AVG`` and ``AVG_weight``;
    ``pairwise`` per examiner and combined by mean and by vote; ``consistency`` and who is ``excluded`` from combining;
    ``bradley_terry`` over all comparisons of those that are not; ``self_preference``; the ``shortfall`` of questions.

    asked: questions that were to be written per record
    """
    questions = [(record["examiner"], row) for record in records for row in record["questions"]]
    table, counts = _full_marks(questions, models)
    judged = {judge: _judged(questions, judge) for judge in models}
    steady = {judge: consistency([c for row in rows for c in row["comparisons"]]) for judge, rows in judged.items()}
    excluded = too_inconsistent(steady, max_inconsistency)
    matrices = {judge: win_rates(rows, [n for n in models if n != judge]) for judge, rows in judged.items()}
    kept = [row for judge, rows in judged.items() if judge not in excluded for row in rows]
    marks = [rows for _, row in questions for rows in row["marks"].values()]
    combined = combine(matrices, models, excluded)
    return {
        "n": len(questions),
        "asked": len(records) * asked,
        "shortfall": sum(record["shortfall"] for record in records),
        "shortfall_by_examiner": {
            name: sum(record["shortfall"] for record in records if record["examiner"] == name) for name in models
        },
        "full_marks": table,
        "full_marks_counts": counts,
        **averages(table, models),
        "inconsistency": {judge: row["inconsistency"] for judge, row in steady.items()},
        "consistency": steady,
        "notices": [_notice(judge, steady[judge], max_inconsistency) for judge in excluded],
        "pairwise": {"by_examiner": matrices, "combined": combined},
        "bradley_terry": bradley_terry(kept, models, seed=derive_seed(seed, "bradley_terry")),
        "self_preference": self_preference(records, models) if own_answers else None,
        "unmarked": sum(mark["marks"] is None for rows in marks for mark in rows.values()),
        "cut_answers": sum(
            answer["finish_reason"] == "length" for _, row in questions for answer in row["answers"].values()
        ),
        "unscored": sum(not record["questions"] for record in records),
    }


def self_preference(records: Records, models: Sequence[str]) -> dict[str, Any]:
    """Per model: how much more it gives its own answers than the others give them, less its leniency.

    own, others: mean overall mark of its own answers, by itself and by the others; n: answers that both marked
    leniency: how much more it gives the others' answers to their own questions than those who did not write them do
        (n_leniency answers); a judge that is merely lenient prefers nobody
    difference: own - others - leniency, with Welch's interval over answers; None where a part is missing
    """
    found = {}
    for name in models:
        own, others, leniency = [], [], []
        for record in records:
            author = record["examiner"]
            for row in record["questions"]:
                marks = {judge: m["overall"] for judge, m in row["marks"].get(author, {}).items()}
                mine = marks.get(name)
                rest = mean([mark for j, mark in marks.items() if j not in (name, author) and mark is not None])
                if mine is None or rest is None:
                    continue
                if author == name:
                    own.append(float(mine))
                    others.append(rest)
                else:
                    leniency.append(mine - rest)
        preferred = [a - b for a, b in zip(own, others, strict=True)]
        test = welch(preferred, leniency)
        found[name] = {
            "n": len(own),
            "own": mean(own),
            "others": mean(others),
            "n_leniency": len(leniency),
            "leniency": mean(leniency),
            "difference": math.fsum(preferred) / len(preferred) - math.fsum(leniency) / len(leniency)
            if preferred and leniency
            else None,
            "interval": None if test is None or test.interval is None else list(test.interval),
        }
    return found


def _full_marks(questions: Sequence[tuple[str, Mapping[str, Any]]], models: Sequence[str]) -> tuple[Any, Any]:
    """Per candidate and examiner the percentage of full marks, on the examiner's own questions."""
    table: dict[str, dict[str, float | None]] = {}
    counts: dict[str, dict[str, list[int]]] = {}
    for candidate in models:
        table[candidate], counts[candidate] = {}, {}
        for examiner in models:
            given = [
                row["marks"][candidate][examiner]["overall"]
                for author, row in questions
                if author == examiner != candidate and candidate in row["marks"]
            ]
            known = [overall for overall in given if overall is not None]
            full = sum(overall == FULL for overall in known)
            table[candidate][examiner] = 100 * full / len(known) if known else None
            counts[candidate][examiner] = [full, len(known)]
    return table, counts


def _judged(questions: Sequence[tuple[str, Mapping[str, Any]]], judge: str) -> list[dict[str, Any]]:
    """One row {comparisons, order} per question that the model compared answers to."""
    return [
        {"comparisons": row["comparisons"][judge], "order": row["orders"][judge]}
        for _, row in questions
        if judge in row["comparisons"]
    ]


def _notice(judge: str, row: Mapping[str, Any], most: float) -> str:
    if row["inconsistency"] is None:
        return f"{judge} is left out of the combined comparison: none of its {row['comparisons']} pairs could be read"
    return (
        f"{judge} is left out of the combined comparison: it contradicts itself in {row['contradictory']} of "
        f"{row['known']} pairs ({row['inconsistency']:.0%}; max_inconsistency is {most:.0%})"
    )


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
