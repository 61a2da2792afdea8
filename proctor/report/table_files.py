"""Tables as files: CSV for programs, Markdown for issues, LaTeX with booktabs for papers."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from evaluation.show.table import Cell, Table
from serving.files import write_text

ARROWS = {1: "\N{UPWARDS ARROW}", -1: "\N{DOWNWARDS ARROW}"}
ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
}


def write_tables(tables: list[Table], folder: Path) -> list[str]:
    """``<name>.csv``, ``.md`` and ``.tex`` of every table; their names below ``tables/``."""
    names = []
    for table in tables:
        for kind, text in (("csv", as_csv(table)), ("md", as_markdown(table)), ("tex", as_latex(table))):
            write_text(folder / f"{table.name}.{kind}", text)
            names.append(f"tables/{table.name}.{kind}")
    return names


def as_csv(table: Table) -> str:
    """A column per figure and two for the bounds of its interval, if the column has intervals; empty: no figure."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    bounded = [any(row[i].low is not None for row in table.rows) for i in range(len(table.header))]
    header = []
    for name, wide in zip(table.header, bounded, strict=True):
        header += [name, f"{name} low", f"{name} high"] if wide else [name]
    writer.writerow(header)
    for row in table.rows:
        line: list[str] = []
        for cell, wide in zip(row, bounded, strict=True):
            line.append("" if cell.text == "-" else _plain(cell))
            if wide:
                line += ["" if bound is None else f"{bound:.{cell.digits + 2}f}" for bound in (cell.low, cell.high)]
        writer.writerow([_harmless(entry) for entry in line])
    return out.getvalue()


def as_markdown(table: Table) -> str:
    """Value and half interval; the best of a column in bold; * where it differs from the clean candidate."""

    def line(cells: list[str]) -> str:
        return f"| {' | '.join(cells)} |"

    head = [_pipes(f"{name} {arrow}".strip()) for name, arrow in _headings(table)]
    body = []
    for row in table.rows:
        cells = [_pipes(half_interval(cell, "\N{PLUS-MINUS SIGN}")) for cell in row]
        body.append(line([f"**{text}**" if cell.best else text for text, cell in zip(cells, row, strict=True)]))
    rule = line(["---", *["---:"] * (len(head) - 1)])
    return "\n".join([line(head), rule, *body, "", _caption(table, "\N{PLUS-MINUS SIGN}"), ""])


def as_latex(table: Table) -> str:
    """A table environment; needs the package booktabs."""
    arrows = {"\N{UPWARDS ARROW}": r" $\uparrow$", "\N{DOWNWARDS ARROW}": r" $\downarrow$", "": ""}
    head = " & ".join(escape(name) + arrows[arrow] for name, arrow in _headings(table))
    body = []
    for row in table.rows:
        cells = []
        for cell in row:
            text = escape(half_interval(cell, "\0")).replace("\0", r"$\pm$")
            cells.append(rf"\textbf{{{text}}}" if cell.best else text)
        body.append(" & ".join(cells) + r" \\")
    caption = escape(_caption(table, "\0")).replace("\0", r"$\pm$")
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            r"\toprule",
            head + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _caption(table: Table, sign: str) -> str:
    """With what stands after the sign, where any cell has an interval."""
    bounded = any(cell.low is not None and cell.high is not None for row in table.rows for cell in row)
    return f"{table.caption} Values {sign} half of their 95% interval." if bounded else table.caption


def half_interval(cell: Cell, sign: str) -> str:
    """``68.8 +- 15.3``: half the length of the interval, which need not lie evenly about the value."""
    text = _plain(cell)
    if cell.low is not None and cell.high is not None:
        text += f" {sign} {(cell.high - cell.low) / 2:.{cell.digits}f}"
    return text + ("*" if cell.significant else "")


def escape(text: str) -> str:
    """Plain text for LaTeX: nothing in a candidate's name is a command; what pdflatex can't set is shown as its code
    point."""
    out = []
    for character in text:
        if character in ESCAPES:
            out.append(ESCAPES[character])
        elif character.isascii():
            out.append(character if character.isprintable() or character == "\0" else " ")
        else:
            out.append(f"[U+{ord(character):04X}]")
    return "".join(out)


def _plain(cell: Cell) -> str:
    return cell.text.partition(" [")[0] if cell.low is not None else cell.text


def _headings(table: Table) -> list[tuple[str, str]]:
    better = table.better or (0,) * len(table.header)
    return [(name, ARROWS.get(direction, "")) for name, direction in zip(table.header, better, strict=True)]


def _pipes(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _harmless(text: str) -> str:
    """A name that a spreadsheet would take for a formula is made text."""
    if text[:1] in ("=", "@", "\t", "\r") or (text[:1] in "+-" and not _number(text)):
        return "'" + text
    return text


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return not text
    return True
