"""The contamination table (KIEval's Table 3): its rows and columns, for the terminal, the page and the paper alike.

Its columns are declared by the protocols that have any (``registry.HEADLINED``) and by detection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from detection.tables import COLUMNS as DETECTION
from detection.verdict import HEADLINE
from evaluation import registry
from evaluation.show.table import Cell, Column, Table, figure, with_best

HEADLINES = ("accuracy", "score", "win_rate", "full_marks_share")
"""The figure of a protocol's summary that stands for it, the first that it has; ``<name>_interval`` is its interval."""


@cache
def columns() -> tuple[tuple[str, Column], ...]:
    """Each column with its protocol; "" for those of detection."""
    declared: list[tuple[str, Column]] = []
    for name in registry.HEADLINED:
        declared += [(name, column) for column in registry.protocol(name).columns]  # type: ignore[attr-defined]
    return (*declared, *(("", column) for column in DETECTION))


def header() -> tuple[str, ...]:
    return ("candidate", *(column.heading for _, column in columns()), "verdict")


def rows(summary: dict[str, Any]) -> list[list[Cell]]:
    """One row per candidate; figures with their 95% intervals in brackets."""
    return [_row(name, candidate) for name, candidate in summary["candidates"].items()]


def _row(name: str, c: dict[str, Any]) -> list[Cell]:
    cells = [_cell(c, column) for _, column in columns()]
    return [Cell(name), *cells, Cell((c.get("verdict") or {}).get("outcome", ""))]


def _cell(c: dict[str, Any], column: Column) -> Cell:
    source = (c["detection"].get(HEADLINE[0]) or {}) if column.key == "auc" else c
    note = source.get(f"{column.key}_ci_note", "")
    return figure(source.get(column.key), source.get(f"{column.key}_ci"), column.scale, column.digits, note)


def contamination(summary: dict[str, Any], tabled: Mapping[str, str | None]) -> Table:
    """The table with everything: marks of significance, the best of a column, a column per other dynamic exam.

    tabled: by protocol the exam that stands in its columns, None where there is none
    """
    table, declared = rows(summary), columns()
    names = list(summary["candidates"])
    head, better = list(header()), [0, *(column.better for _, column in declared), 0]
    for place, (protocol, column) in enumerate(declared, start=1):
        key = f"{tabled.get(protocol)}/{column.half}" if protocol else column.key
        for name, row in zip(names, table, strict=True):
            found = summary["candidates"][name].get("differences", {}).get(key)
            if found and found["significant"] and (column.half or not protocol):
                row[place] = replace(row[place], significant=True)
    position = 1 + max(place for place, (_, column) in enumerate(declared, start=1) if column.half)
    for exam, half, key in further_exams(summary, tabled):
        head.insert(position, f"{exam} {'' if half == 'all' else half}".strip())
        better.insert(position, 1)
        for name, row in zip(names, table, strict=True):
            c = summary["candidates"][name]
            metrics = c["exams"].get(exam, {}).get(half, {})
            scale, digits = (100, 1) if key != "score" else (1, 2)
            cell = figure(
                metrics.get(key), metrics.get(f"{key}_interval"), scale, digits, metrics.get(f"{key}_interval_note", "")
            )
            found = c.get("differences", {}).get(f"{exam}/{half}")
            row.insert(position, replace(cell, significant=bool(found and found["significant"])))
        position += 1
    caption = "Arrows: which way is better; the best in bold."
    if summary.get("reference"):
        caption += f" *: differs from {summary['reference']} at 5%."
    return Table("contamination", caption, tuple(head), with_best(table, better), tuple(better), "Contamination table")


def further_exams(summary: dict[str, Any], tabled: Mapping[str, str | None]) -> list[tuple[str, str, str]]:
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
