"""Tables on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

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


def print_rows(title: str, heading: Sequence[str], lines: Sequence[Sequence[str]], *, left: Sequence[str]) -> None:
    """A rich table on a terminal, aligned plain text elsewhere. left: columns of words."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(title))  # a path with brackets is no markup
        for name in heading:
            table.add_column(name, justify="left" if name in left else "right")
        for line in lines:
            table.add_row(*map(Text, line))
        Console().print(table)
        return
    widths = [max(len(name), *(len(line[i]) for line in lines)) for i, name in enumerate(heading)]
    print(title)
    for texts in [list(heading), *lines]:
        print("  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True)).rstrip())
