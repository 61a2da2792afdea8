"""What broke analyses and groups once: settings that were found bad late, figures of a former kind in the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.commands.analyse import _of_run
from proctor.experiment.experiment import Experiment
from proctor.experiment.load import resolve
from proctor.report.summary import analysed, grouped
from proctor.run_folder.run import RunFolder, create
from proctor.runner.plan import find, plan
from serving.files import write_json, write_jsonl
from tests.proctor.scripted import scripted

STATIC = {"protocol": "static"}
PROBED = {"build": "moved", "vanilla": "vanilla"}


def value(**changes: Any) -> dict[str, Any]:
    return scripted(
        **{
            "roles": {"prober": "m", "evaluator": "m", "examiner": "m"},
            "benchmark": {"format": "embedded", "limit": 4},
            "builds": {"moved": {"builder": "probing", "options": {"probes": ["p3"], "augment": True}}},
            "exams": {
                "vanilla": STATIC,
                "moved": {**STATIC, "build": "moved"},
                "versions": {**STATIC, "build": "moved", "set": "variants"},
            },
            "analyses": {"x": {"kind": "items", "options": {"exam": "vanilla"}}},
            "groups": {"g": {"protocol": "ranking", "limit": 1}},
            "detection": None,
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("items", {"exam": "moved", "against": "moved"}, "against: 'moved' is the exam that is analysed"),
        ("items", {"exam": "moved", "cuts": [0, 0.1, float("inf")]}, "cuts are 0.0, 0.1, inf"),
        ("items", {"exam": "moved", "max_score": float("inf")}, "max_score"),
        ("probing", {**PROBED, "sizes": {"one": 0}}, "sizes.one"),
        ("probing", {**PROBED, "sizes": {"one": float("nan")}}, "sizes.one"),
        ("probing", {**PROBED, "sizes": {"nobody": 1}}, "sizes: 'nobody' is no candidate compared here"),
        ("probing", {**PROBED, "clean": "one", "contaminated": ["one"]}, "'one' is the clean one"),
        ("probing", {**PROBED, "exams": ["versions"]}, "'versions' is of the set 'variants'"),
    ],
)
def test_settings_are_refused_before_anything_runs(kind: str, options: dict[str, Any], said: str) -> None:
    experiment = resolve(Experiment.model_validate(value(analyses={"x": {"kind": kind, "options": options}})))
    with pytest.raises(ValueError, match=r"^analyses\.x") as error:
        plan(experiment)
    assert said in str(error.value)


def test_an_exam_of_all_versions_is_no_probed_set() -> None:
    experiment = resolve(Experiment.model_validate(value(analyses={"x": {"kind": "probing", "options": PROBED}})))
    needs = find(plan(experiment), "analysis.x").needs
    assert {"moved.one", "moved.two"} <= set(needs)
    assert not [name for name in needs if name.startswith("versions")]


def test_figures_of_a_former_kind_are_not_shown(tmp_path: Path) -> None:
    """The file was changed, and the run that would make the new figures hasn't come to them yet."""
    run = create(tmp_path / "run", resolve(Experiment.model_validate(value())))
    for stage, figures in (
        ("analysis.x", {"set": {}, "items": 3}),
        ("group.g", {"protocol": "ranking", "win_rates": {}, "n": 1}),
    ):
        folder = run.stage(stage)
        write_json(folder.path / "metrics.json", figures)
        folder.finish("inputs", ["metrics.json"])
    assert (list(analysed(run)), list(grouped(run))) == (["x"], ["g"])
    changed = value(
        analyses={"x": {"kind": "probing", "options": PROBED}},
        groups={"g": {"protocol": "style_bias", "candidates": ["one"]}},
    )
    again = RunFolder(run.path, resolve(Experiment.model_validate(changed)))
    assert (analysed(again), grouped(again)) == ({}, {})


def test_the_report_is_written_anew_when_an_analysis_is_another() -> None:
    first, second = (
        find(plan(resolve(Experiment.model_validate(value(analyses=given)))), "report").config
        for given in (
            {"x": {"kind": "items", "options": {"exam": "vanilla"}}},
            {"x": {"kind": "items", "options": {"exam": "vanilla", "fraction": 0.5}}},
        )
    )
    assert first != second


def test_an_exam_is_not_taken_for_another_whose_name_goes_on(tmp_path: Path) -> None:
    """``grown.v2`` is an exam of its own, ``gone`` a candidate of a former experiment."""
    exams = {"grown": STATIC, "grown.v2": STATIC}
    run = create(tmp_path / "run", resolve(Experiment.model_validate(value(builds={}, exams=exams, analyses={}))))
    for stage in ("grown.one", "grown.two", "grown.gone", "grown.v2.one", "grown.v2.two"):
        folder = run.stage(stage)
        write_jsonl(folder.path / "records.jsonl", [{"item_id": "i", "correct": stage.endswith("one")}])
        folder.finish("inputs", ["records.jsonl"])
    assert list(_of_run(run.path, "grown")) == ["one", "two"]
    assert list(_of_run(run.path, "grown.v2")) == ["one", "two"]
    (run.stage("grown.two").path / "records.jsonl").write_text("", encoding="utf-8")  # not as its stage left it
    assert list(_of_run(run.path, "grown")) == ["one"]
    with pytest.raises(ValueError, match=r"--exam: there is no exam 'grow'; there are: grown, grown\.v2"):
        _of_run(run.path, "grow")
