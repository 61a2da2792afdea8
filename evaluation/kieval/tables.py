"""KIEval's columns of the contamination table, and what its evaluator's verdicts say about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.protocol import Held
from evaluation.show.table import Column

COLUMNS = (
    Column("kieval", "KIEval", 100, 1, 1, "leaked", "KIEval x 100 is the variant released (floor 10)."),
    Column("kieval_untouched", "KIEval untouched", 100, 1, 1, "untouched"),
    Column("rounds", "rounds", 1, 2, 1),
)
GRADE = "grade "


def row(halves: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """kieval is the variant ``released`` on the leaked items; its scale is that of the published figures / 100."""
    keys = ("kieval", "kieval_untouched", "kieval_released", "kieval_paper", "rounds")
    found: dict[str, Any] = dict.fromkeys(keys)
    for half, suffix in (("leaked", ""), ("untouched", "_untouched")) if halves else ():
        for variant in ("released", "paper"):
            _mean(found, f"kieval_{variant}{suffix}", halves[half][variant])
        _mean(found, f"kieval{suffix}", halves[half]["released"])
    if halves:
        _mean(found, "rounds", halves["leaked"]["rounds"])
    return found


def _mean(row: dict[str, Any], key: str, figure: Mapping[str, Any]) -> None:
    """Mean, interval, and in its place the note of one whose values are all equal."""
    row[key], row[f"{key}_ci"] = figure["mean"], figure["interval"]
    if "interval_note" in figure:
        row[f"{key}_ci_note"] = figure["interval_note"]


def score(record: Mapping[str, Any]) -> float | None:
    """The variant ``released``."""
    return record["scores"]["released"]  # type: ignore[no-any-return]


def counts(record: Mapping[str, Any]) -> Counter[str]:
    """The evaluator's grades, its missing verdicts, and in how many rounds with several votes all agreed."""
    found = Counter({"missing": record.get("missing_verdicts") or 0})
    for one in record.get("rounds", []):
        if one.get("overall") is not None:
            found[f"{GRADE}{one['overall']}"] += 1
        given = [vote["overall"] for vote in one.get("votes") or [] if vote.get("overall") is not None]
        if len(given) > 1:
            found["votes"] += 1
            found["agreeing"] += len(set(given)) == 1
    return found


def notices(held: Mapping[str, Held]) -> Iterator[str]:
    """How often the evaluator gave which grade, and whether its votes agree."""
    for exam, one in held.items():
        grades = {int(key.removeprefix(GRADE)): n for key, n in sorted(one.counts.items()) if key.startswith(GRADE)}
        if not grades:
            continue
        total = sum(grades.values())
        spread = ", ".join(f"{grade}: {count}" for grade, count in grades.items())
        missing, votes = one.counts.get("missing", 0), one.counts.get("votes", 0)
        yield f"{exam}: {total} verdicts (overall grade and how often: {spread}); {missing} missing."
        if len(grades) == 1 and total > 1:
            yield (
                f"{exam}: every verdict has the same grade. This examiner tells nobody from anybody, and its scores "
                "and rounds say nothing about the candidates."
            )
        if votes:
            agreeing = one.counts.get("agreeing", 0)
            yield f"{exam}: all votes agreed in {agreeing} of {votes} rounds (self-consistency)."
        else:
            yield f"{exam}: one vote per verdict, so its self-consistency was not measured."
