"""Paired comparisons: by hand; two runs through the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evaluation.kieval.interview import KIEval
from evaluation.lm_examiner.exam import LMExaminer
from evaluation.static import Static
from proctor.report.item_score import Scored, scored, value
from proctor.report.paired import gap_difference, paired, sign_flip
from proctor.report.summary import adjust
from serving.files import read_jsonl, write_jsonl
from tests.proctor.command import proctor
from tests.proctor.scripted import do, rewrite, scripted


def rows(values: str) -> list[Scored]:
    """1 right, 0 wrong, - no result, a space: the item is not there."""
    known = {"1": True, "0": False, "-": None}
    records = [{"item_id": f"i{i}", "correct": known[v]} for i, v in enumerate(values) if v != " "]
    return scored(Static, records)


def test_right_or_wrong_by_hand() -> None:
    found = paired(rows("11110000"), rows("00010000"), seed=0)
    assert found is not None
    assert (found["a"], found["b"], found["difference"]) == (0.5, 0.125, 0.375)
    assert (found["only_a"], found["only_b"], found["n"], found["unpaired"]) == (3, 0, 8, 0)
    assert found["p_value"] == pytest.approx(0.25)  # McNemar, exact: 2 x (1/2)^3


def test_only_items_that_both_have_are_compared() -> None:
    found = paired(rows("11-1 "), rows("1001"), seed=0)
    assert found is not None
    assert (found["n"], found["unpaired"]) == (3, 1)
    assert found["difference"] == pytest.approx(1 / 3)
    assert paired(rows("1   "), rows("   1"), seed=0) is None
    assert paired([], [], seed=0) is None


def test_sign_flip_by_hand() -> None:
    # of 2^3 signs the means +-1 are as extreme as 1: 2/8; zeros change nothing
    assert sign_flip([1, 1, 1], seed=0) == pytest.approx(0.25)
    assert sign_flip([1, 0, 1, 1, 0], seed=0) == pytest.approx(0.25)
    assert sign_flip([0, 0], seed=0) == 1
    assert sign_flip([2.0], seed=0) == 1


def test_gap_difference_by_hand() -> None:
    def scores(label_and_loss: list[tuple[int, float]]) -> list[dict[str, Any]]:
        return [{"id": i, "label": lab, "scores": {"loss": -loss}} for i, (lab, loss) in enumerate(label_and_loss)]

    # a: gap 3.5 - 1 = 2.5; b: 3 - 3 = 0; item differences a - b: untouched 0, 1; leaked -2, -2
    a = scores([(0, 3), (0, 4), (1, 1), (1, 1)])
    b = scores([(0, 3), (0, 3), (1, 3), (1, 3)])
    found = gap_difference(a, b)
    assert found is not None
    assert found["difference"] == pytest.approx(2.5)
    assert found["n"] == 4
    assert gap_difference(a[:3], b[:3]) is None
    same = gap_difference(a, a)
    assert same is not None
    assert (same["difference"], same["p_value"]) == (0, 1)
    # another seed leaked other texts: no text is of the same half in both
    assert gap_difference(a, scores([(1, 3), (1, 3), (0, 3), (0, 3)])) is None


def test_values_of_records() -> None:
    assert value({"correct": True}) == 1
    assert value({"correct": None}) is None
    assert KIEval.score({"scores": {"released": 0.3, "paper": 0.1}}) == 0.3
    assert [LMExaminer.score({"overall": mark}) for mark in (5, 4, None)] == [1, 0, None]
    assert value({"score": None}) is None
    assert value({"score": 7}) == 7
    assert value({"text": "x"}) is None


def test_adjusted_over_all_rows() -> None:
    found = [{"p_value": p, "interval": [-1, 1]} for p in (0.01, 0.04, 0.5)]
    found.append({"p_value": None, "interval": [0.1, 0.2]})  # no uncorrected star beside corrected ones
    adjust(found)
    assert [row["p_adjusted"] for row in found] == [pytest.approx(0.03), pytest.approx(0.06), pytest.approx(0.5), None]
    assert [row["significant"] for row in found] == [True, False, False, False]


def test_two_runs(tmp_path: Path) -> None:
    setting = scripted(exams={"static": {"protocol": "static"}}, detection=None)
    a = do(tmp_path, setting, "exam", "static.one", "static.two")
    b = tmp_path / "b"
    shutil.copytree(a, b)
    file = b / "stages" / "static.one" / "records.jsonl"
    changed = read_jsonl(file)
    lost = 0
    for row in changed:
        if row["correct"]:
            row.update(correct=False, status="wrong")
            lost += 1
    rewrite(b, "static.one", changed[:-1])
    items = read_jsonl(b / "exam" / "items.jsonl")
    write_jsonl(b / "exam" / "items.jsonl", [{**items[0], "question": "Another?"}, *items[1:]])
    result = proctor("compare", a, b, "--out", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    found = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    compared = found["candidates"]["one"]
    assert sum(row["n"] for row in compared.values()) == 11
    assert sum(row["unpaired"] for row in compared.values()) == 1
    assert (
        sum(row["only_a"] for row in compared.values())
        == lost - read_jsonl(a / "stages" / "static.one" / "records.jsonl")[-1]["correct"]
    )
    assert all(row["difference"] == 0 for row in found["candidates"]["two"].values())
    assert "static/leaked" in result.stdout
    assert "note: exam static: 1 items have one id and other content" in result.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "comparison.json",
        "comparison.csv",
        "comparison.md",
        "comparison.tex",
    }
    (b / "stages" / "static.one" / "DONE").unlink()
    (b / "stages" / "static.two" / "DONE").unlink()
    result = proctor("compare", a, b, "--out", tmp_path / "none")
    assert result.returncode == 2
    assert "no candidate, exam and item in common" in result.stderr
    assert not (tmp_path / "none").exists()
