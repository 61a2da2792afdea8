"""The report's tables on a terminal: a rich table there, aligned plain text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

from evaluation.show.table import Table
from evaluation.show.terminal_text import harmless


def print_tables(kind: Any, name: str, held: Any) -> None:
    """What a protocol, group, builder or analysis shows of itself (``evaluation.protocol.Shows``), for one of its kind:
    its tables, then its notices."""
    for table in getattr(kind, "tables", lambda held: [])({name: held}):
        print_table(table)
    for line in getattr(kind, "notices", lambda held: [])({name: held}):
        print(harmless(f"notice: {line}"))


def print_table(table: Table) -> None:
    """The caption, then the rows; columns with a figure are set right."""
    words = {
        heading
        for place, heading in enumerate(table.header)
        if all(row[place].value is None and row[place].text != "-" for row in table.rows)
    }
    print_rows(table.caption, table.header, [[cell.text for cell in row] for row in table.rows], left=words)


def print_rows(
    title: str,
    heading: Sequence[str],
    lines: Sequence[Sequence[str]],
    *,
    left: Collection[str],
    say: Callable[[str], None] = print,
) -> None:
    """left: columns of words; say: who takes the lines where they are plain. Whatever a cell holds, it is harmless."""
    title, heading = harmless(title), [harmless(name) for name in heading]
    left, lines = {harmless(name) for name in left}, [[harmless(text) for text in line] for line in lines]
    if say is print and sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(title=Text(title))  # a path with brackets is no markup
        for name in heading:
            table.add_column(name, justify="left" if name in left else "right")
        for line in lines:
            table.add_row(*map(Text, line))
        Console().print(table)
        return
    widths = [max(len(name), *(len(line[i]) for line in lines), 0) for i, name in enumerate(heading)]
    if title:
        say(title)
    for texts in [list(heading), *lines]:
        say("  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True)).rstrip())
