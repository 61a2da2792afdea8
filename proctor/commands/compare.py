"""compare: two runs, candidate by candidate and item by item."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="Run folder.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Run folder to compare it with.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for comparison.json and .csv, .md, .tex.")] = None,
) -> None:
    """Show paired differences A - B of the candidates and items that two runs share."""
    from proctor.atomic import write_json
    from proctor.detecting import clean
    from proctor.report.run_comparison import compare_runs, comparison_table
    from proctor.report.table import print_rows
    from proctor.report.tables import write_tables
    from proctor.runfolder import open_run

    if out is not None and out.is_file():
        raise ValueError(f"--out {out} is a file; name a folder")
    a, b = open_run(run_a), open_run(run_b)
    found = clean(compare_runs(a, b))
    table = comparison_table(found)
    rows = [[cell.text + ("*" if cell.significant else "") for cell in row] for row in table.rows]
    print_rows(f"A {run_a}, B {run_b}; {table.caption}", table.header, rows, left=("candidate", "figure"))
    for side, key in (("A", "only_a"), ("B", "only_b")):
        if found[key]:
            print(f"in {side} only: {', '.join(found[key])}")
    for note in found["notes"]:
        print(f"note: {note}")
    if out is not None:
        write_tables([table], out)
        write_json(out / "comparison.json", found)
        print(f"written: {out}")
