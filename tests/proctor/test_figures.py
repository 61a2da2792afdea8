"""The figure of static accuracy against KIEval: its line by hand, its bytes, its text; and the published figures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from evaluation.kieval.published import COLUMNS, FIGURES, published
from evaluation.show.plate import LOOK, Drawing, Plate, canvas, draw, save
from proctor.report.accuracy_against_kieval import Line, Point, caption, plate, points, regression


def write_accuracy_against_kieval(found: list[Point], line: Line, folder: Path) -> str:
    """The file's text; the element for the page is parsed on the way."""
    from matplotlib import rc_context

    with rc_context(LOOK):
        drawing: Drawing = save(plate(found, line), folder)
    ElementTree.fromstring(drawing.svg)
    assert "<script" not in drawing.svg
    assert "<style" not in drawing.svg
    return (folder / drawing.files[0].partition("/")[2]).read_text(encoding="utf-8")


def point(name: str, accuracy: float, kieval: float) -> Point:
    return Point(name=name, accuracy=accuracy, accuracy_interval=None, kieval=kieval, kieval_interval=None)


def row(*pairs: tuple[float, float]) -> list[Point]:
    return [point(f"c{i}", accuracy, kieval) for i, (accuracy, kieval) in enumerate(pairs)]


FOUR = row((20, 30), (40, 50), (60, 40), (80, 80))


def test_the_line_by_hand() -> None:
    # means 50, 50; Sxx 2000, Sxy 1400, Syy 1400: slope 0.7, intercept 50 - 35, r = 1400 / sqrt(2000 x 1400) = sqrt(0.7)
    line = regression(FOUR)
    assert line.n == 4
    assert line.slope == pytest.approx(0.7)
    assert line.intercept == pytest.approx(15)
    assert line.r == pytest.approx(0.83666, abs=1e-5)
    # Fisher: z = ln((1 + r) / (1 - r)) / 2 = 1.20993, standard error 1 / sqrt(4 - 3) = 1, tanh(z -+ 1.95996)
    assert line.r_interval is not None
    z = math.log((1 + math.sqrt(0.7)) / (1 - math.sqrt(0.7))) / 2
    assert line.r_interval == pytest.approx((math.tanh(z - 1.959964), math.tanh(z + 1.959964)), abs=1e-6)
    assert line.r_interval == pytest.approx((-0.6352, 0.9965), abs=1e-4)
    assert caption(line) == "Pearson r = 0.84 [-0.64, 1.00], n = 4 candidates"


def test_three_points_have_no_interval() -> None:
    line = regression(row((10, 30), (20, 20), (30, 40)))  # Sxx 200, Sxy 100, Syy 200
    assert (line.slope, line.r) == (pytest.approx(0.5), pytest.approx(0.5))
    assert line.r_interval is None
    assert caption(line) == "Pearson r = 0.50, n = 3 candidates"


def test_points_on_a_line() -> None:
    line = regression(row((10, 80), (20, 60), (30, 40), (40, 20)))
    assert (line.slope, line.intercept) == (pytest.approx(-2), pytest.approx(100))
    assert line.r == pytest.approx(-1)
    assert line.r_interval is None  # one of no width would read as certainty


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (row(), "0 of the candidates have both figures, a line needs 3"),
        (row((10, 20)), "1 of the candidates have both figures, a line needs 3"),
        (row((10, 20), (30, 40)), "2 of the candidates have both figures, a line needs 3"),
        (row((50, 20), (50, 40), (50, 60)), "all accuracies are equal, so there is no correlation"),
        (row((10, 30), (20, 30 + 1e-12), (30, 30)), "all KIEval scores are equal, so there is no correlation"),
    ],
)
def test_where_there_is_no_line(found: list[Point], reason: str, tmp_path: Path) -> None:
    line = regression(found)
    assert line == Line(n=len(found), reason=reason)
    assert caption(line) == f"no regression: {reason}"
    if len(found) == 1:  # a figure of one point is drawn all the same
        assert "c0" in write_accuracy_against_kieval(found, line, tmp_path)


def test_points_are_those_with_both_figures() -> None:
    def candidate(accuracy: float | None, kieval: float | None, **more: Any) -> dict[str, Any]:
        return {"accuracy_leaked": accuracy, "kieval": kieval, **more}

    summary = {
        "candidates": {
            "both": candidate(0.5, 0.7, accuracy_leaked_ci=[0.25, 0.75], kieval_ci=[0.5, 1.0]),
            "zero": candidate(0.0, 0.1),
            "no_kieval": candidate(0.5, None),
            "no_static": candidate(None, 0.7),
        }
    }
    found = points(summary)
    assert [p.name for p in found] == ["both", "zero"]
    assert (found[0].accuracy, found[0].kieval) == (50, pytest.approx(70))
    assert (found[0].accuracy_interval, found[0].kieval_interval) == ([25, 75], [50, 100])
    assert (found[1].accuracy, found[1].accuracy_interval) == (0, None)


def test_equal_runs_give_equal_files(tmp_path: Path) -> None:
    found = [
        Point(name="a", accuracy=20, accuracy_interval=[10, 30], kieval=40, kieval_interval=[40, 40]),
        *FOUR,
    ]
    first = write_accuracy_against_kieval(found, regression(found), tmp_path / "one")
    second = write_accuracy_against_kieval(found, regression(found), tmp_path / "two")
    assert first == second
    for name in ("accuracy_against_kieval.svg", "accuracy_against_kieval.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert (tmp_path / "one" / "accuracy_against_kieval.svg").read_text(encoding="utf-8") == first
    assert (tmp_path / "one" / "accuracy_against_kieval.png").read_bytes().startswith(b"\x89PNG")
    assert "dc:date" not in first
    links = [value for node in ElementTree.fromstring(first).iter() for key, value in node.items() if "href" in key]
    assert all(link.startswith("#") for link in links)  # the page loads nothing


@pytest.mark.parametrize(
    "name", ["</text><script>alert(1)</script>", "--><script>x</script>", "$x^2$ & {{ 7*7 }}", "\\"]
)
def test_a_hostile_name_is_text(name: str, tmp_path: Path) -> None:
    text = write_accuracy_against_kieval([point(name, 50, 50), *FOUR], regression(FOUR), tmp_path)
    assert "<script" not in text
    root = ElementTree.fromstring(text)
    assert not [node for node in root.iter() if node.tag.endswith("script")]
    shown = ["".join(node.itertext()) for node in root.iter() if node.tag.endswith("}text")]
    assert name in shown
    assert "c3" in shown


def test_published_figures() -> None:
    assert COLUMNS == ("ARC-E", "ARC-C", "MMLU", "HellaSwag", "C-Eval")
    assert FIGURES["GPT-3.5"][0] == (92.7, 97.6, 4.97)
    assert FIGURES["LLaMA2 70B"][4] == (42.0, 61.0, 3.94)
    assert FIGURES["Yi 6B"][4] == (71.5, 55.6, 3.66)
    assert FIGURES["MPT 7B"][3] == (27.3, 57.3, 4.10)
    assert len(FIGURES) == 7
    assert all(len(row) == 5 for row in FIGURES.values())


def test_published_figures_beside_a_benchmark() -> None:
    arc, mmlu = published("arc"), published("mmlu")
    assert arc is not None
    assert mmlu is not None
    assert arc.header == ("model", "ARC-E", "ARC-C")
    rows = [[cell.text for cell in row] for row in arc.rows]
    assert ["Mistral 7B", "83.5 / 80.8 / 4.64", "67.5 / 78.5 / 4.46"] in rows
    assert [cell.text for cell in mmlu.rows[3]] == ["LLaMA2 7B", "44.5 / 83.0 / 4.61"]
    assert published("gsm8k") is None


def test_no_figure_replaces_another_of_its_name(tmp_path: Path) -> None:
    def plates() -> list[Plate]:
        return [Plate(name="x", title=title, caption="", figure=canvas()) for title in ("first", "second")]

    assert [(one.name, one.title) for one in draw(plates, tmp_path)] == [("x", "first"), ("x_2", "second")]
    assert sorted(file.name for file in tmp_path.glob("*.svg")) == ["x.svg", "x_2.svg"]
