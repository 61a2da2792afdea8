"""The contamination table on the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

from proctor.atomic import read_json
from proctor.report.columns import HEADER, rows


def print_table(path: Path) -> None:
    """Prints the table of a summary.json: a rich table on a terminal, aligned plain text elsewhere."""
    summary = read_json(path)
    lines = rows(summary)
    title = f"{summary['name']}: {summary['items']} items, {summary['leaked']} leaked; 95% intervals in brackets"
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(title=title)
        for name in HEADER:
            table.add_column(name, justify="left" if name in ("candidate", "verdict") else "right")
        for line in lines:
            table.add_row(*(cell.text.replace("[", "\\[") for cell in line))
        Console().print(table)
    else:
        widths = [max(len(name), *(len(line[i].text) for line in lines)) for i, name in enumerate(HEADER)]
        print(title)
        for line_texts in [list(HEADER), *([cell.text for cell in line] for line in lines)]:
            print("  ".join(text.ljust(width) for text, width in zip(line_texts, widths, strict=True)).rstrip())
    for name, candidate in summary["candidates"].items():
        if candidate.get("verdict"):
            print(f"{name}: {candidate['verdict']['outcome']}: {candidate['verdict']['reason']}")
