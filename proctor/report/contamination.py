"""The contamination table (KIEval's Table 3): its rows and columns, for the terminal, the page and the paper alike."""

from __future__ import annotations

from typing import Any, NamedTuple

from evaluation.show.table import Cell, Table, _with, figure, with_best

HEADLINE = "min_k@20"
HEADLINES = ("accuracy", "score", "win_rate", "full_marks_share")
"""The figure of a protocol's summary that stands for it, the first that it has; ``<name>_interval`` is its interval."""


class Column(NamedTuple):
    """key in a candidate's summary, heading, factor, digits; better: 1 the higher, -1 the lower, 0 neither.

    difference: the key in ``differences`` whose test marks the cell
    """

    key: str
    heading: str
    scale: float
    digits: int
    better: int
    difference: str = ""


HEADER = (
    "candidate",
    "acc. leaked %",
    "acc. untouched %",
    "KIEval",
    "KIEval untouched",
    "rounds",
    "loss gap",
    "Min-K% AUC",
    "verdict",
)
COLUMNS = (
    Column("accuracy_leaked", HEADER[1], 100, 1, 1, "{static}/leaked"),
    Column("accuracy_untouched", HEADER[2], 100, 1, 1, "{static}/untouched"),
    Column("kieval", HEADER[3], 100, 1, 1, "{kieval}/leaked"),
    Column("kieval_untouched", HEADER[4], 100, 1, 1, "{kieval}/untouched"),
    Column("rounds", HEADER[5], 1, 2, 1),
    Column("loss_gap", HEADER[6], 1, 2, 0, "loss_gap"),
    Column("auc", HEADER[7], 1, 2, 0, "auc"),
)


def rows(summary: dict[str, Any]) -> list[list[Cell]]:
    """One row per candidate; figures with their 95% intervals in brackets."""
    return [_row(name, candidate) for name, candidate in summary["candidates"].items()]


def _row(name: str, c: dict[str, Any]) -> list[Cell]:
    cells = [_cell(c, column) for column in COLUMNS]
    return [Cell(name), *cells, Cell((c.get("verdict") or {}).get("outcome", ""))]


def _cell(c: dict[str, Any], column: Column) -> Cell:
    if column.key == "auc":
        auc = c["detection"].get(HEADLINE) or {}
        return figure(auc.get("auc"), auc.get("auc_ci"), column.scale, column.digits)
    note = c.get(f"{column.key}_ci_note", "")
    return figure(c.get(column.key), c.get(f"{column.key}_ci"), column.scale, column.digits, note)


def contamination(summary: dict[str, Any], tabled: dict[str, str | None]) -> Table:
    """The table with everything: marks of significance, the best of a column, a column per other dynamic exam.

    tabled: the exam that stands for ``static`` and for ``kieval``, None where there is none
    """
    table = rows(summary)
    names = list(summary["candidates"])
    header, better = list(HEADER), [0, *(column.better for column in COLUMNS), 0]
    for place, column in enumerate(COLUMNS, start=1):
        key = column.difference.format(**tabled)
        for name, row in zip(names, table, strict=True):
            found = summary["candidates"][name].get("differences", {}).get(key)
            if found and found["significant"]:
                row[place] = _with(row[place], significant=True)
    position = 5
    for exam, half, key in further_exams(summary, tabled):
        header.insert(position, f"{exam} {'' if half == 'all' else half}".strip())
        better.insert(position, 1)
        for name, row in zip(names, table, strict=True):
            c = summary["candidates"][name]
            metrics = c["exams"].get(exam, {}).get(half, {})
            scale, digits = (100, 1) if key != "score" else (1, 2)
            cell = figure(
                metrics.get(key), metrics.get(f"{key}_interval"), scale, digits, metrics.get(f"{key}_interval_note", "")
            )
            found = c.get("differences", {}).get(f"{exam}/{half}")
            row.insert(position, _with(cell, significant=bool(found and found["significant"])))
        position += 1
    caption = "Arrows: which way is better; the best in bold."
    if summary.get("reference"):
        caption += f" *: differs from {summary['reference']} at 5%."
    return Table("contamination", caption, tuple(header), with_best(table, better), tuple(better))


def further_exams(summary: dict[str, Any], tabled: dict[str, str | None]) -> list[tuple[str, str, str]]:
    """Exam, half and headline figure of every exam that has no column of its own in the table."""
    found = {}
    for candidate in summary["candidates"].values():
        for exam, halves in candidate["exams"].items():
            if exam not in tabled.values():
                for half, metrics in halves.items():
                    key = headline(metrics)
                    if key is not None and metrics.get("n"):
                        found[exam, half] = key
    return [(exam, half, key) for (exam, half), key in found.items()]


def headline(metrics: dict[str, Any]) -> str | None:
    """The figure that stands for a protocol's summary."""
    return next((key for key in HEADLINES if key in metrics), None)
