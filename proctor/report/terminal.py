"""The headline of a run on the terminal."""

from __future__ import annotations

from pathlib import Path

from evaluation.show.terminal import print_rows
from proctor.report.contamination import header, rows
from serving.files import read_json


def print_table(path: Path) -> None:
    """Prints the contamination table of a summary.json, and the verdicts."""
    summary = read_json(path)
    title = f"{summary['name']}: {summary['items']} items, {summary['leaked']} leaked; 95% intervals in brackets"
    lines = [[cell.text for cell in line] for line in rows(summary)]
    print_rows(title, header(), lines, left=("candidate", "verdict"))
    for name, candidate in summary["candidates"].items():
        if candidate.get("verdict"):
            print(f"{name}: {candidate['verdict']['outcome']}: {candidate['verdict']['reason']}")
