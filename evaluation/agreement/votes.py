"""Pairwise judgments in FastChat's form, as the MT-Bench human votes have it (Zheng et al. 2023, arXiv 2306.05685).

A row: ``{"judge", "model_a", "model_b", "question_id", "turn", "winner"}``; the winner is ``model_a``, ``model_b``,
``tie`` or ``tie (inconsistent)`` (a judge that changed its mind when the answers changed places): a tie, too.

Files list a pair of models in either order, so each vote is turned to alphabetical order of the models' names:
``first``, ``second`` or ``tie``. Several votes on one (question, pair, turn) are put together by majority; where two
outcomes share the most votes, the outcome is a tie.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.agreement.columns import label_column
from evaluation.agreement.report import AgreementSettings, Section, grouped, label_section
from evaluation.agreement.rows import ColumnTable, read_table

COLUMNS = ("question_id", "turn", "model_first", "model_second")
_WINNERS = {"model_a": "first", "model_b": "second", "tie": "tie", "tie (inconsistent)": "tie"}
_TURNED = {"first": "second", "second": "first", "tie": "tie"}


class Contest(NamedTuple):
    """What is voted on: two models' answers to one turn of one question, the models in alphabetical order."""

    question_id: str
    turn: str
    model_first: str
    model_second: str


def read_votes(path: Path) -> dict[Contest, list[str]]:
    """All votes of a file by comparison. ValueError names file, line and field of a row that is none."""
    table = read_table(path)
    table.check(["question_id", "turn", "model_a", "model_b", "winner"])
    votes: dict[Contest, list[str]] = defaultdict(list)
    for index in range(len(table.rows)):
        comparison, winner = _vote(table, index)
        votes[comparison].append(winner)
    return dict(votes)


def majority(votes: list[str]) -> str:
    """The outcome with the most votes; ``tie`` where two share the most."""
    (best, count), *others = Counter(votes).most_common()
    return "tie" if others and others[0][1] == count else best


def labelled(human: dict[Contest, list[str]], judge: dict[Contest, list[str]]) -> list[dict[str, Any]]:
    """One row per comparison that both voted on, in order of the keys: its columns, ``human``, ``judge`` and the votes.

    Question and turn are texts; rows sort by their numbers where they are numbers.
    """
    shared = sorted(set(human) & set(judge), key=_sorting)
    return [
        {
            **comparison._asdict(),
            "human": majority(human[comparison]),
            "judge": majority(judge[comparison]),
            "human_votes": dict(sorted(Counter(human[comparison]).items())),
        }
        for comparison in shared
    ]


def measure(rows: Sequence[Mapping[str, Any]], by: str | None, settings: AgreementSettings) -> Section:
    """Kappa of judge and human majority over ``labelled`` rows, with ties and without, overall and by a column.

    ``ties_dropped`` leaves out the rows in which either side says tie.
    """

    def section(indices: Sequence[int]) -> Section:
        chosen = [rows[index] for index in indices]
        decided = [row for row in chosen if "tie" not in (row["human"], row["judge"])]
        parts = {"with_ties": chosen, "ties_dropped": decided}
        return {"n_rows": len(chosen), "scores": {name: _figures(part, settings) for name, part in parts.items()}}

    figures = section(range(len(rows)))
    if by is not None:
        values, without = grouped([row[by] for row in rows], section)
        figures["by"] = {"column": by, "values": values, "rows_without_value": without}
    return figures


def _figures(rows: Sequence[Mapping[str, Any]], settings: AgreementSettings) -> Section:
    human, judge = (label_column([row[side] for row in rows]) for side in ("human", "judge"))
    figures: Section = label_section(human, {"judge": judge}, settings)["judge"]
    return figures


def _vote(table: ColumnTable, index: int) -> tuple[Contest, str]:
    row, place = table.rows[index], table.places[index]
    names = []
    for field in ("question_id", "turn", "model_a", "model_b"):
        value = row.get(field)
        if value is None or isinstance(value, dict | list) or not str(value).strip():
            raise place.error(f"{field} is {value!r:.80}; it must be a text or a number", field)
        names.append(str(value).strip())
    question, turn, a, b = names
    if a == b:
        raise place.error(f"model_a and model_b are both {a!r}; a comparison needs two models", "model_b")
    winner = row.get("winner")
    if not isinstance(winner, str) or winner not in _WINNERS:
        raise place.error(f"winner is {winner!r:.80}; it must be one of {', '.join(_WINNERS)}", "winner")
    outcome = _WINNERS[winner]
    if a > b:
        a, b, outcome = b, a, _TURNED[outcome]
    return Contest(question, turn, a, b), outcome


def _sorting(comparison: Contest) -> tuple[tuple[int, str], ...]:
    return tuple((len(part) if part.isdigit() else 0, part) for part in comparison)
