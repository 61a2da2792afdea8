"""Groups in an experiment: the stage, killed and resumed, in shards, refused in time, and in the report."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evaluation.lm_examiner.tables import peers, ranking, ranking_notices
from evaluation.protocol import Held
from evaluation.registry import group_protocol, protocol
from proctor.checks.estimate import estimate
from proctor.checks.experiment import preflight
from proctor.checks.preview import preview
from proctor.cluster.serve_jobs import needing
from proctor.cluster.submit import check_names, jobs_for
from proctor.experiment.experiment import Experiment
from proctor.experiment.load import resolve
from proctor.report.run_comparison import notes
from proctor.report.write import write_report
from proctor.run_folder.run import open_run
from proctor.runner.one_stage import do_stage
from proctor.runner.plan import find, plan
from proctor.stages import exam as exam_stages
from serving.files import read_json, read_jsonl
from serving.role_engines import Cast
from slurm.profile import Profile
from tests.proctor.scripted import do, scripted

QUESTIONS = "\n".join(
    f"{n}. How does the {a} {b}?" for n, (a, b) in enumerate((("baker knead", "his dough"), ("sea", "rise")), 1)
)
WRITER = {"engine": "scripted", "engine_args": {"replies": [{"match": "different exam question", "reply": QUESTIONS}]}}
PEERS = {"protocol": "peer_examination", "options": {"domains": 1, "questions": 2, "max_inconsistency": 1.0}}
RANKED = {"protocol": "ranking", "limit": 2, "options": {"schedule": "all_pairs"}}
STYLE = {"protocol": "style_bias", "candidates": ["one"], "benchmark": {"format": "embedded", "limit": 3}}


def value(**changes: Any) -> dict[str, Any]:
    """Three models that write questions; a scripted examiner always takes Response 1 and marks everything 1."""
    made: dict[str, Any] = {
        "models": {name: {"path": name, **WRITER} for name in ("m", "q", "r")},
        "roles": {"examiner": "m", "writer": "q", "stylist": "m", "filter": "m"},
        "candidates": {"one": {"model": "m"}, "two": {"model": "q"}, "three": {"model": "r"}},
        "exams": {"static": {"protocol": "static", "limit": 2}},
        "groups": {"ranked": RANKED, "peers": PEERS, "style": STYLE},
        "detection": None,
    }
    return scripted(**{**made, **changes})


def loaded(**changes: Any) -> Experiment:
    return resolve(Experiment.model_validate(value(**changes)))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return do(tmp_path_factory.mktemp("groups"), value())


def test_stages_and_what_they_need() -> None:
    stages = plan(loaded())
    assert [s.name for s in stages if s.name.startswith("group.")] == ["group.ranked", "group.peers", "group.style"]
    assert find(stages, "group.ranked").needs == ("exam",)
    assert find(stages, "group.peers").needs == ()
    assert find(stages, "group.style").needs == ("exam.style",)
    assert {s for s in find(stages, "report").needs if "group" in s} == {"group.ranked", "group.peers", "group.style"}
    trained = {"one": {"model": "m"}, "two": {"recipe": "normal"}, "three": {"recipe": "sft_cheater"}}
    experiment = loaded(candidates=trained)
    with pytest.MonkeyPatch.context() as patch:  # the base has no weights to be hashed
        patch.setattr(exam_stages, "model_identity", lambda spec: {"path": spec.path})
        stage = exam_stages.group_stage(experiment, "peers")
    assert stage.needs == ("train.two", "train.three")
    assert set(stage.config["models"]) == {"one"}  # the others' weights are outputs of what it needs
    assert set(stage.config["serve"]) == {"one", "two", "three"}


def test_the_input_digest_knows_who_takes_part() -> None:
    def config(**changes: Any) -> dict[str, Any]:
        return find(plan(loaded(**changes)), "group.ranked").config

    first = config()
    assert set(first["models"]) == {"one", "two", "three", "examiner"}
    assert config(roles={"examiner": "q", "writer": "q", "stylist": "m", "filter": "m"}) != first
    assert config(seed=1) != first
    assert config(groups={"ranked": {**RANKED, "candidates": ["two", "one"]}})["candidates"] == ["two", "one"]
    assert config(groups={"ranked": {**RANKED, "options": {"schedule": "merge_sort"}}}) != first
    # another table of the file is no input
    assert config(exams={}, groups={"ranked": RANKED}) == first


def test_records_and_figures(run: Path) -> None:
    rows = read_jsonl(run / "stages" / "group.ranked" / "records.jsonl")
    assert sorted(row["half"] for row in rows) == ["leaked", "leaked", "untouched", "untouched"]
    metrics = read_json(run / "stages" / "group.ranked" / "metrics.json")
    # three pairs a question, each twice; the first response wins both times, so each is a contradiction
    assert (metrics["calls"]["comparisons"], metrics["calls"]["verdicts"], metrics["inconsistency"]) == (12, 24, 1.0)
    peers_rows = read_jsonl(run / "stages" / "group.peers" / "records.jsonl")
    assert [(row["examiner"], len(row["questions"]), row["half"]) for row in peers_rows] == [
        ("one", 2, "all"), ("two", 2, "all"), ("three", 2, "all")
    ]  # fmt: skip
    found = read_json(run / "stages" / "group.peers" / "metrics.json")
    assert found["full_marks"]["one"] == {"one": None, "two": 0.0, "three": 0.0}
    assert found["AVG"] == {"one": 0.0, "two": 0.0, "three": 0.0}
    style = read_jsonl(run / "stages" / "group.style" / "records.jsonl")
    assert [set(row["comparisons"]) for row in style] == [{"one"}] * 3
    drawn = sorted(path.name for path in (run / "stages" / "group.ranked" / "figures").iterdir())
    assert drawn == ["bradley_terry.png", "bradley_terry.svg", "win_rates.png", "win_rates.svg"]


def test_the_report_shows_them(run: Path) -> None:
    summary = read_json(run / "report" / "summary.json")
    jsonschema.validate(summary, json.loads((files("proctor.report") / "summary.schema.json").read_text("utf-8")))
    assert {name: row["protocol"] for name, row in summary["groups"].items()} == {
        "ranked": "ranking", "peers": "peer_examination", "style": "style_bias"
    }  # fmt: skip
    assert summary["missing"] == []
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    for heading in ("Group ranked", "Group peers", "Group style", "Win rates: ranked", "Win rates: peers, by mean"):
        assert f">{heading}</h3>" in page, heading
    assert "ranked: the examiner contradicts itself in" in page
    assert "data:image" not in page  # the page's policy shows none
    names = {path.name for path in (run / "report" / "figures").iterdir()}
    assert {"win_rates.ranked.svg", "win_rates.peers.by_mean.png", "win_rates.peers.by_vote.svg"} <= names
    with (run / "report" / "tables" / "group_ranked.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0][:2] == ["candidate", "win rate"]
    assert {row[0]: row[1] for row in rows[1:]} == {"one": "0.500", "two": "0.500", "three": "0.500"}
    markdown = (run / "report" / "tables" / "group_peers.md").read_text(encoding="utf-8").splitlines()
    assert markdown[0].startswith("| candidate | by one")
    assert markdown[2].split("|")[1:5] == [" one ", " - ", " 0.0 ", " 0.0 "]
    assert r"\toprule" in (run / "report" / "tables" / "group_style.tex").read_text(encoding="utf-8")
    # the prompts of a group stand on the page, too
    assert page.count("examiner_compare") >= 1


def test_a_group_that_is_not_done_is_missing_and_not_shown(tmp_path: Path) -> None:
    folder = do(tmp_path, value(), "exam", "static.one", "group.ranked")
    write_report(open_run(folder), folder / "report")
    summary = read_json(folder / "report" / "summary.json")
    assert set(summary["groups"]) == {"ranked"}
    assert {"group.peers", "group.style", "exam.style"} <= set(summary["missing"])


def test_tables_by_hand() -> None:
    """The paper's example (LMExamQA, section 5): AVG and AVG_weight of Claude, ChatGPT, Bard, Vicuna."""
    models = ["claude", "chatgpt", "bard", "vicuna"]
    columns = ([None, 98, 100, 96], [41, None, 100, 95], [41, 99, None, 92], [42, 98, 99, None])
    metrics = {
        "full_marks": {name: dict(zip(models, row, strict=True)) for name, row in zip(models, columns, strict=True)},
        "AVG": dict(zip(models, (98.0, 78.67, 77.33, 79.67), strict=True)),
        "AVG_weight": dict(zip(models, (99.7, 98.9, 97.8, 99.3), strict=True)),
        "inconsistency": dict.fromkeys(models, 0.25),
        "n": 400,
        "asked": 400,
        "notices": ["bard is left out"],
        "unscaled": [],
    }
    table = peers("p", metrics)
    assert [cell.text for cell in table.rows[0]] == ["claude", "-", "98.0", "100.0", "96.0", "98.0", "99.7"]
    assert [row[-1].best for row in table.rows] == [True, False, False, False]
    assert "Notice: bard is left out." in table.caption
    ranked = {
        "n": 5,
        "calls": {"comparisons": 12},
        "inconsistency": 0.25,
        "win_rates": {"mean": {"a": 0.25, "b": None, "c": 0.75}, "inferred": [[0, 1, 0], [1, 0, 2], [0, 2, 0]]},
        "bradley_terry": {
            "strengths": {"a": -3e-13, "b": None, "c": 0.5},
            "intervals": {"a": [-1.0, 0.0], "b": None, "c": None},
            "reason": "",
        },
    }
    table = ranking("r", ranked)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["c", "0.750", "0.50", "0.250"],
        ["a", "0.250", "0.00 [-1.00, 0.00]", "0.250"],
        ["b", "-", "-", "0.250"],
    ]
    assert "3 pairs were never compared" in table.caption
    steady = {"inconsistency": 0.75, "contradictory": 9, "known": 12, "first_share": 0.6}
    told = {"schedule_of_pairs": "merge_sort", "consistency": steady}
    lines = list(ranking_notices({"r": Held(options={}, metrics=told)}))
    assert lines[0].startswith("r: the examiner contradicts itself in 9 of 12 pairs")
    assert "largely chance" in lines[1]
    assert len(list(ranking_notices({"r": Held(options={}, metrics={**told, "schedule_of_pairs": "all_pairs"})}))) == 1


class Killed(BaseException):
    """As SIGKILL: nothing catches it."""


def dying(after: int) -> Callable[..., Any]:
    """``Cast.answer`` that ends the process at the batch after so many."""
    real, count = Cast.answer, iter(range(10_000))

    def answer(self: Cast, role: str, requests: Any) -> Any:
        if next(count) >= after:
            raise Killed
        return real(self, role, requests)

    return answer


@pytest.mark.parametrize("group", ["ranked", "peers"])
def test_killed_and_resumed(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    folder = do(tmp_path, value(), "exam")
    for after in (1, 3):
        with monkeypatch.context() as patch:
            patch.setattr(Cast, "answer", dying(after))
            with pytest.raises(Killed):
                do_stage(open_run(folder), f"group.{group}")
    assert not (folder / "stages" / f"group.{group}" / "records.jsonl").exists()
    do_stage(open_run(folder), f"group.{group}")
    here, there = (place / "stages" / f"group.{group}" for place in (folder, run))
    for name in ("records.jsonl", "metrics.json"):
        assert (here / name).read_bytes() == (there / name).read_bytes()
    roles = read_json(here / "usage.json")["roles"].values()
    assert sum(role["replayed"] for role in roles) > 0


def test_shards_and_their_jobs(run: Path, tmp_path: Path) -> None:
    """As an array job does it: two parts and their merge give the same bytes."""
    groups = {"ranked": {**RANKED, "wave": 2}}
    whole = do(tmp_path / "whole", value(groups=groups), "exam", "group.ranked")
    folder = do(tmp_path / "parts", value(groups=groups), "exam")
    opened = open_run(folder)
    stage = find(plan(opened.experiment), "group.ranked")
    assert stage.shards is not None
    places = [tmp_path / str(index) for index in range(2)]
    for index, place in enumerate(places):
        place.mkdir()
        stage.shards.part(opened, place, lambda *_: None, index, 2)
    merged = tmp_path / "merged"
    merged.mkdir()
    stage.shards.merge(opened, merged, places)
    for name in ("records.jsonl", "metrics.json", "figures/win_rates.svg"):
        assert (merged / name).read_bytes() == (whole / "stages" / "group.ranked" / name).read_bytes()
    profile = Profile(gpus_per_node=0, shards={"group.ranked": 2})
    check_names(plan(opened.experiment), profile)
    assert [job.name for job in jobs_for(opened, stage, profile)] == ["group.ranked.shards", "group.ranked"]


def group(**changes: Any) -> dict[str, Any]:
    return {"groups": {"g": {**RANKED, **changes}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (group(protocol="static"), r"groups\.g: there is no group protocol 'static'; it belongs under 'exams'"),
        (
            group(protocol="rank"),
            r"groups\.g: there is no group protocol 'rank'; did you mean 'ranking'\? there are: ranking, peer_exam",
        ),
        ({"exams": {"x": {"protocol": "ranking"}}}, "no protocol 'ranking'; it belongs under 'groups'"),
        (group(candidates=["one", "tow"]), r"groups\.g\.candidates: 'tow' is not an entry.*did you mean 'two'"),
        (group(candidates=["one"]), r"groups\.g: there are 1 models \(one\); it takes at least 2"),
        ({"groups": {"g": {**PEERS, "candidates": ["one", "two"]}}}, r"groups\.g: there are 2 models"),
        (group(options={"schedul": "all_pairs"}), r"groups\.g: ranking\.schedul: unknown option; did you mean"),
        (group(options={"plain": ["four"]}), r"groups\.g: ranking\.plain: 'four' is no model that answers"),
        (group(build="b"), r"groups\.g\.build: 'b' is not an entry of builds"),
        (group(set="b"), "give 'build' too"),
        (group(benchmark={"format": "embedded"}, items="leaked"), "no halves"),
        (group(prefilter=True), "prefilter"),
        ({"roles": {}, "groups": {"g": RANKED}}, r"groups\.g: roles: nobody plays 'examiner'"),
        ({"roles": {}, "groups": {"g": STYLE}}, r"groups\.g: roles: nobody plays 'writer'"),
        (
            {"groups": {"g": {**PEERS, "limit": 3}}},
            r"groups\.g: peer_examination makes its own questions; leave 'limit'",
        ),
        ({"groups": {"g": {**PEERS, "items": "leaked"}}}, "leave 'items' out"),
        ({"groups": {"static": RANKED}}, r"groups: 'static' is the name of an exam"),
        ({"groups": {"a b": RANKED}}, r"groups: the name 'a b' may hold"),
        ({"exams": {"group.x": {"protocol": "static"}}}, r"exams: 'group\.x' is the name of a stage"),
        (
            {"candidates": {"examiner": {"model": "m"}, "two": {"model": "q"}}, "groups": {"g": RANKED}},
            r"groups\.g: the model name 'examiner' is taken",
        ),
    ],
)
def test_a_wrong_group_is_refused_before_anything_runs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        preflight(loaded(**changes))


ROLES = ("generator", "judge", "answerer_1", "checker_1", "checker_2")


def test_the_author_of_an_exam_is_not_ranked_on_it() -> None:
    builds = {"b": {"builder": "idgen", "limit": 2, "roles": dict.fromkeys(ROLES, "m")}}
    builds["b"]["options"] = {"answerers": 1}
    with pytest.raises(ValueError, match=r"candidate 'one' wrote the exam 'g'.*leave it out \(groups\.g\.candidates\)"):
        preflight(loaded(builds=builds, groups={"g": {**RANKED, "build": "b"}}))
    preflight(loaded(builds=builds, groups={"g": {**RANKED, "build": "b", "candidates": ["two", "three"]}}))


def test_check_names_them(run: Path) -> None:
    experiment = loaded()
    lines = list(preview(experiment, preflight(experiment)))
    assert "--- group ranked (ranking): 4 items, one, two, three together" in lines
    assert "--- group peers (peer_examination): 3 sets of questions of their own, one, two, three together" in lines
    assert "--- group style (style_bias): 3 items, one together" in lines


def test_estimate_counts_calls(run: Path) -> None:
    found = estimate(loaded(), items=None)
    usage = read_json(run / "stages" / "group.ranked" / "usage.json")["roles"]
    assert {role: f.calls for role, f in found["group.ranked"].roles.items()} == {
        role: row["calls"] for role, row in usage.items()
    }
    assert "group.peers" not in found  # what they ask depends on what they write


def test_who_still_needs_a_served_model(tmp_path: Path) -> None:
    groups = {"ranked": {**RANKED, "candidates": ["two", "three"]}}
    folder = do(tmp_path, value(groups=groups), "exam", "static.one")
    opened = open_run(folder)
    assert "group.ranked" in needing(opened, ["m"])  # the examiner
    assert "group.ranked" in needing(opened, ["r"])
    assert needing(opened, ["none"]) == []


def test_compared_runs_tell_of_groups(run: Path, tmp_path: Path) -> None:
    other = open_run(do(tmp_path, value(groups={"ranked": {**RANKED, "limit": 1}, "style": STYLE}), "exam"))
    found = notes(open_run(run), other)
    assert "group peers is in A only" in found
    assert "group ranked has other settings in B" in found


def test_names() -> None:
    assert group_protocol("ranking").name == "ranking"
    with pytest.raises(ValueError, match="it belongs under 'groups'"):
        protocol("style_bias")
