"""Whether people agree with an examiner: the sheet they fill in, and the figures (LMExamQA, section 4).

A sheet (CSV) has a row per answer, with a rating from 1 to 5 (or NULL) per annotator; a second one has a row per
question, with a ranking of its answers such as ``2>3=1``. Rows are in an order drawn with the seed, without the
candidates' names; the key holds those, the examiner's marks and the text metrics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evaluation.agreement.correlation import correlations
from evaluation.agreement.figures import Figure
from evaluation.agreement.ordering import pairwise_accuracy
from evaluation.human_rating.sheet import Scale, read_columns, read_sheet, sheet_text
from serving.records import derive_seed

FIXED: Final = ("id", "question", "answer")
RANKING: Final = "ranking"
NULL: Final = ("null", "n/a", "na", "-")
_NO_RATING: Final = 0
_RATINGS: Final = Scale(
    values={**{str(n): n for n in range(1, 6)}, **dict.fromkeys(NULL, _NO_RATING)}, said="1 to 5, NULL"
)
_RANKING: Final = re.compile(r"\d{1,4}(?:\s*[>=]\s*\d{1,4})*")


def key_rows(exams: Mapping[str, Sequence[Mapping[str, Any]]], references: Mapping[str, str], seed: int) -> list[Any]:
    """A row per answer {id, item_id, candidate, question, answer, reference, examiner, place}, in the sheet's order.

    exams: candidate -> records of the protocol ``lm_examiner``; references: item id -> reference answer
    place: the answer's number among those to its question. Only questions that every candidate answered.
    """
    asked = [{record["item_id"] for record in records} for records in exams.values()]
    common = set.intersection(*asked) if asked else set()
    firsts = {
        (record["item_id"], name): record["rounds"][0]
        for name, records in exams.items()
        for record in records
        if record["item_id"] in common
    }
    rows = []
    for item in sorted(common, key=lambda identity: derive_seed(seed, "sheet", identity)):
        names = sorted(exams, key=lambda name: derive_seed(seed, "sheet", item, name))
        for place, name in enumerate(names, start=1):
            first = firsts[item, name]
            rows.append(
                {
                    "id": f"{item}/{place}",
                    "item_id": item,
                    "candidate": name,
                    "question": first["question"],
                    "answer": first["reply"],
                    "reference": references.get(item, ""),
                    "examiner": first["overall"],
                    "place": place,
                }
            )
    return rows


def rating_sheet(rows: Sequence[Mapping[str, Any]], annotators: Sequence[str]) -> str:
    """The sheet of ratings as CSV text: id, question, answer, and a column to fill in per annotator."""
    return sheet_text(FIXED, ([row[name] for name in FIXED] for row in rows), annotators)


def ranking_sheet(rows: Sequence[Mapping[str, Any]]) -> str:
    """The sheet of rankings: item_id, question, answer 1..k, and the column ``ranking``, best first: ``2>3=1``."""
    most = max((row["place"] for row in rows), default=0)
    table = []
    for item in dict.fromkeys(row["item_id"] for row in rows):
        own = [row for row in rows if row["item_id"] == item]
        answers = [row["answer"] for row in own]
        table.append([item, own[0]["question"], *answers, *[""] * (most - len(answers))])
    return sheet_text(["item_id", "question", *(f"answer {n}" for n in range(1, most + 1))], table, [RANKING])


def read_ratings(path: Path, ids: Sequence[str]) -> tuple[dict[str, list[int]], int]:
    """Ratings by row id, one per annotator who gave one, and how many cells are NULL. Blank cells are not rated.

    ValueError names file, line and column of anything but 1..5, NULL or blank, and of an id that the key lacks.
    """
    given = read_columns([path], ids, _RATINGS, lambda column: column not in FIXED).values()
    ratings = {name: [table[name] for table in given if table.get(name, _NO_RATING) != _NO_RATING] for name in ids}
    return ratings, sum(value == _NO_RATING for table in given for value in table.values())


def read_rankings(path: Path, sizes: Mapping[str, int]) -> tuple[dict[str, dict[int, int]], int]:
    """Per item the rank of each answer's number (1: best; ``=`` shares a rank), and how many cells are NULL."""
    found: dict[str, dict[int, int]] = {}
    nulls = 0
    for place, item, cells in read_sheet(path, sizes, RANKING, column="item_id")[1]:
        if cells[RANKING].casefold() in NULL:
            nulls += 1
        elif cells[RANKING]:
            try:
                found[item] = parse_ranking(cells[RANKING], sizes[item])
            except ValueError as error:
                raise place.error(str(error), RANKING) from error
    return found, nulls


def parse_ranking(text: str, n: int) -> dict[int, int]:
    """``2>3=1`` as {2: 1, 3: 2, 1: 2}: each number's rank. ValueError unless it names 1..n, each once."""
    if not _RANKING.fullmatch(text.strip()):
        raise ValueError(f"{text!r:.40} is no ranking; it must be like 2>3=1")
    ranks: dict[int, int] = {}
    groups = [[int(number) for number in group.split("=")] for group in text.split(">")]
    for rank, group in enumerate(groups, start=1):
        for number in group:
            if number in ranks:
                raise ValueError(f"{text!r:.40} names {number} twice")
            ranks[number] = rank
    if sorted(ranks) != list(range(1, n + 1)):
        raise ValueError(f"{text!r:.40} must name each of the answers 1 to {n} once")
    return ranks


def agreement(
    rows: Sequence[Mapping[str, Any]],
    scores: Mapping[str, Sequence[float | None]],
    ratings: Mapping[str, Sequence[int]],
    rankings: Mapping[str, Mapping[int, int]],
    *,
    seed: int,
) -> dict[str, Any]:
    """Per score: Spearman and Kendall with the mean human rating, and the pairwise accuracy against the rankings.

    scores: name -> value per row of the key. Rows without rating or score are left out and counted. A pair that people
    rank equal (``=``) does not count; one that the score doesn't order counts half.
    """
    human = [sum(given) / len(given) if (given := ratings.get(row["id"], ())) else None for row in rows]
    found: dict[str, Any] = {}
    for name, values in scores.items():
        pairs = [(h, v) for h, v in zip(human, values, strict=True) if h is not None and v is not None]
        figures = correlations([h for h, _ in pairs], [v for _, v in pairs], seed=derive_seed(seed, "agreement", name))
        found[name] = {
            "spearman": figures["spearman"].to_json(),
            "kendall": figures["kendall"].to_json(),
            "pairwise": _pairwise(rows, values, rankings).to_json(),
            "n": len(pairs),
            "without_rating": sum(h is None for h in human),
            "without_score": sum(v is None and h is not None for h, v in zip(human, values, strict=True)),
        }
    return found


def _pairwise(
    rows: Sequence[Mapping[str, Any]], values: Sequence[float | None], rankings: Mapping[str, Mapping[int, int]]
) -> Figure:
    right, counted = 0.0, 0
    for item, ranks in rankings.items():
        own = [
            (-ranks[row["place"]], value)
            for row, value in zip(rows, values, strict=True)
            if row["item_id"] == item and value is not None
        ]
        figure = pairwise_accuracy([float(rank) for rank, _ in own], [float(value) for _, value in own])
        if figure.value is not None:
            right += figure.value * figure.n
            counted += figure.n
    if not counted:
        return Figure(value=None, n=0, reason="no pair is ranked")
    return Figure(value=right / counted, n=counted)
