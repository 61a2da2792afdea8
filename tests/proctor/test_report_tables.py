"""Tables as CSV, Markdown and LaTeX: by hand, with hostile names, and through pdflatex where it is installed."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from pathlib import Path

import pytest

from evaluation.show.plate import own_names
from evaluation.show.table import Cell, Table, figure, with_best
from proctor.report.table_files import as_csv, as_latex, as_markdown, escape, half_interval, write_tables
from proctor.report.terminal import print_rows

NASTY = r"\input{x} $a_1$ & 50% #1 ~^{} <script> | é"


def table(name: str = "plain") -> Table:
    rows = [
        [Cell(name), figure(0.6875, [0.514, 0.8204], 100, 1), Cell("contaminated")],
        [Cell("other"), figure(0.5, [0.25, 0.75], 100, 1), Cell("-")],
        [Cell("none"), Cell("-"), Cell("")],
    ]
    return Table("t", "About.", ("candidate", "acc. %", "verdict"), with_best(rows, (0, 1, 0)), (0, 1, 0))


def test_half_interval() -> None:
    assert half_interval(figure(0.6875, [0.514, 0.8204], 100, 1), "+-") == "68.8 +- 15.3"  # (82.04 - 51.4) / 2
    assert half_interval(Cell("-"), "+-") == "-"
    assert half_interval(Cell("3", 3, significant=True), "+-") == "3*"


def test_best_is_marked_by_what_is_shown() -> None:
    column = [[figure(v, None, 1, 2)] for v in (0.501, 0.504, 0.3)]  # two of them read 0.50
    assert [row[0].best for row in with_best(column, (1,))] == [True, True, False]
    assert [row[0].best for row in with_best(column, (-1,))] == [False, False, True]
    assert [row[0].best for row in with_best(column, (0,))] == [False] * 3
    equal = [[figure(0.1, None, 1, 2)], [figure(0.1, None, 1, 2)]]
    assert not any(row[0].best for row in with_best(equal, (1,)))
    assert not any(row[0].best for row in with_best([[figure(0.1, None, 1, 2)], [Cell("-")]], (1,)))


def test_brackets_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    print_rows("A runs/a[/b], B c", ("candidate", "figure"), [[r"one\[x]", "0.5 [0.4, 0.6]"]], left=("candidate",))
    shown = capsys.readouterr().out
    assert "A runs/a[/b], B c" in shown
    assert r"one\[x]" in shown
    assert "0.5 [0.4, 0.6]" in shown


def test_csv() -> None:
    rows = list(csv.reader(io.StringIO(as_csv(table("=HYPERLINK(1)")))))
    assert rows == [
        ["candidate", "acc. %", "acc. % low", "acc. % high", "verdict"],
        ["'=HYPERLINK(1)", "68.8", "51.400", "82.040", "contaminated"],
        ["other", "50.0", "25.000", "75.000", ""],
        ["none", "", "", "", ""],
    ]
    negative = Table("n", "", ("a",), [[figure(-0.5, None, 1, 1)]])
    assert as_csv(negative).splitlines()[1] == "-0.5"  # a number is no formula


def test_markdown() -> None:
    lines = as_markdown(table("a|b <i>")).splitlines()
    assert lines[0] == "| candidate | acc. % ↑ | verdict |"
    assert lines[2] == "| a\\|b &lt;i> | **68.8 ± 15.3** | contaminated |"


def test_latex() -> None:
    text = as_latex(table(NASTY))
    assert r"acc. \% $\uparrow$" in text
    assert r"\textbf{68.8 $\pm$ 15.3}" in text
    assert r"\toprule" in text
    assert r"\textbackslash{}input\{x\} \$a\_1\$ \& 50\%" in text
    assert escape("é\u202e") == "[U+00E9][U+202E]"


def test_latex_compiles(tmp_path: Path) -> None:
    pdflatex = shutil.which("pdflatex")
    if pdflatex is None:
        pytest.skip("pdflatex is missing: apt-get install texlive-latex-recommended")
    write_tables([table(NASTY), table('quote " tab\t')], tmp_path)
    (tmp_path / "t2.tex").write_text(as_latex(table(NASTY)), encoding="utf-8")
    paper = (
        r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{t.tex}\input{t2.tex}\end{document}" + "\n"
    )
    (tmp_path / "paper.tex").write_text(paper, encoding="utf-8")
    result = subprocess.run(
        [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 5_000


def test_the_sign_is_explained_only_where_it_stands() -> None:
    bare = Table("t", "About.", ("candidate", "n"), [[Cell("a"), Cell("3", 3)]])
    assert as_markdown(bare).rstrip().endswith("About.")
    assert r"\caption{About.}" in as_latex(bare)
    assert as_markdown(table()).rstrip().endswith("About. Values \N{PLUS-MINUS SIGN} half of their 95% interval.")
    assert r"\caption{About. Values $\pm$ half of their 95\% interval.}" in as_latex(table())


def test_no_table_replaces_another_of_its_name() -> None:
    names = ["a", "b", "a", "A", "a_2"]
    made = list(own_names(Table(name, str(i), (), []) for i, name in enumerate(names)))
    assert [one.name for one in made] == ["a", "b", "a_2", "A_3", "a_2_2"]
    assert [one.caption for one in made] == ["0", "1", "2", "3", "4"]
