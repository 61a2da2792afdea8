"""Reports of runs whose stages do not fit each other: one was done again with other items, one lacks, names overlap."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evaluation.probing.plots import plots
from evaluation.protocol import Held
from evaluation.show.plate import draw, styles
from proctor.report.verdicts import verdict_lines
from proctor.report.write import write_report
from proctor.run_folder.run import RunFolder, open_run
from serving.files import read_jsonl
from tests.proctor.scripted import do, rewrite, scripted


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    exams = {"static": {"protocol": "static"}, "static.again": {"protocol": "static"}}
    value = scripted(exams=exams, benchmark={"format": "embedded", "limit": 6}, candidates={"one": {"model": "m"}})
    return do(tmp_path_factory.mktemp("damaged"), value)


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def report(run: Path) -> dict[str, Any]:
    write_report(open_run(run), run / "report")
    found: dict[str, Any] = json.loads((run / "report" / "summary.json").read_text(encoding="utf-8"))
    return found


def test_an_exam_whose_name_begins_with_another_s(finished_run: Path) -> None:
    summary = json.loads((finished_run / "report" / "summary.json").read_text(encoding="utf-8"))
    assert summary["missing"] == []
    assert list(summary["candidates"]["one"]["exams"]) == ["static", "static.again"]
    assert summary["candidates"]["one"]["exams"]["static.again"]["leaked"]["n"] == 3


@pytest.mark.parametrize("kept", [0, 3])
def test_a_candidate_and_a_base_that_saw_other_texts(run: Path, kept: int) -> None:
    whole = report(run)["candidates"]["one"]
    assert whole["verdict"]["outcome"]
    # an interrupted run of fewer items did the base again
    rewrite(run, "detect.base", read_jsonl(run / "stages" / "detect.base" / "records.jsonl")[:kept])
    one = report(run)["candidates"]["one"]
    assert "verdict" not in one
    assert "gain_over_base" not in one
    assert one["loss_gap"] == whole["loss_gap"]


def test_an_exam_that_has_another_protocol_now(run: Path) -> None:
    opened = open_run(run)
    exams = dict(opened.experiment.exams)
    exams["static"] = exams["static"].model_copy(update={"protocol": "mt_bench"})
    changed = RunFolder(opened.path, opened.experiment.model_copy(update={"exams": exams}))
    write_report(changed, run / "report")
    summary = json.loads((run / "report" / "summary.json").read_text(encoding="utf-8"))
    assert summary["missing"] == ["static.one"]
    assert list(summary["candidates"]["one"]["exams"]) == ["static.again"]


def test_no_records_at_all(run: Path) -> None:
    for file in (run / "stages").glob("*/records.jsonl"):
        rewrite(run, file.parent.name, [])
    assert report(run)["candidates"]["one"]["accuracy_leaked"] is None


def test_a_candidate_is_not_called_the_control(run: Path) -> None:
    marker = run / "stages" / "detect.base" / "DONE"
    said = marker.read_bytes()
    marker.unlink()
    one, base = verdict_lines(report(run))
    assert one["outcome"] == "not tested"
    assert "No verdict" in one["reason"]
    assert "detection against the control (base)" in one["untested"]
    assert base["outcome"] == "not tested"
    marker.write_bytes(said)
    assert verdict_lines(report(run))[1]["outcome"] == "control"


def test_probing_figures_of_a_former_candidate(tmp_path: Path) -> None:
    entry = {"rephrase": {"difference": 0.1, "interval": [0.1 + 1e-12, 0.2]}}  # rounded, it lies outside
    held = Held(options={}, metrics={}, plots={"probing": {"deltas": {"gone": entry, "one": entry}}})
    (drawn,) = draw(lambda: plots({"p": held}, styles(["one"])), tmp_path)
    assert "one" in drawn.svg
    assert "gone" not in drawn.svg
