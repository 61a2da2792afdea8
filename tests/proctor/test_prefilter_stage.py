"""The validity filter of a run: one list of items for all candidates, drawn from what the evaluator itself knows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evaluation.exam_set import FrozenExam, read_exam
from proctor.experiment.experiment import Experiment
from proctor.runner.plan import find, plan
from serving.files import read_json, read_jsonl
from tests.proctor.command import proctor, write_experiment
from tests.proctor.scripted import do, scripted

ITEMS = 12


def benchmark(folder: Path) -> dict[str, Any]:
    rows = [
        {"question": f"What is {i} plus {i}?", "choices": [f"{2 * i} it is", "none of these"], "answer": "A"}
        for i in range(ITEMS)
    ]
    path = folder / "sums.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {"format": "jsonl", "path": str(path)}


def knows(right: str, wrong: str = "none") -> dict[str, Any]:
    """An evaluator that answers A, B, or nothing that can be read, by the number in the question."""
    asked = "What is ({}) plus.*Answer with A or B"
    replies = [{"match": asked.format(right), "reply": "A"}, {"match": asked.format(wrong), "reply": "B"}]
    return {"path": "evaluator", "engine": "scripted", "engine_args": {"replies": replies}, "max_num_seqs": 1}


def value(folder: Path, evaluator: dict[str, Any], **exam: Any) -> dict[str, Any]:
    kieval = {"protocol": "kieval", "prefilter": True, "options": {"rounds": 1}, **exam}
    base = scripted(benchmark=benchmark(folder), exams={"kieval": kieval}, detection=None)
    return {**base, "models": {**base["models"], "e": evaluator}, "roles": {"interactor": "m", "evaluator": "e"}}


def number(exam: FrozenExam, item_id: str) -> int:
    question = next(item.question for item in exam.items if item.id == item_id)
    return int(re.findall(r"\d+", question)[0])


def ids(run: Path, candidate: str) -> list[str]:
    return [row["item_id"] for row in read_jsonl(run / "stages" / f"kieval.{candidate}" / "records.jsonl")]


def fingerprints(run: Path) -> set[str]:
    lines = [
        json.loads(line.partition(" ")[2])
        for file in (run / "ledger" / "prefilter.kieval").glob("*.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    batches = [line for line in lines if "batch" in line]
    assert {line["role"] for line in batches} == {"evaluator"}
    return {line["fingerprint"] for line in batches}


def test_the_first_of_the_known_items_for_every_candidate(tmp_path: Path) -> None:
    right = {0, 2, 3, 5, 6, 8, 9, 11}
    settings = value(tmp_path, knows("0|2|3|5|6|8|9|11", "1|4"), limit=2)
    run = do(tmp_path, settings, "exam", "prefilter.kieval", "kieval.one", "kieval.two")
    exam = read_exam(run / "exam")
    expected = []
    for half in ("leaked", "untouched"):
        known = [item.id for item in exam.items if exam.half(item.id) == half and number(exam, item.id) in right]
        assert len(known) > 2  # or the limit would not be tested
        expected += known[:2]
    in_order = [item.id for item in exam.items if item.id in expected]
    assert ids(run, "one") == ids(run, "two") == in_order

    folder = run / "stages" / "prefilter.kieval"
    chosen = read_json(folder / "chosen.json")
    assert sorted(chosen["items"]) == sorted(expected)
    assert {chosen["evaluator"]} == fingerprints(run)
    metrics = read_json(folder / "metrics.json")
    assert metrics["kept"] == {"leaked": 2, "untouched": 2}
    assert metrics["shortfall"] == {"leaked": 0, "untouched": 0}
    for row in read_jsonl(folder / "records.jsonl"):
        n = number(exam, row["item_id"])
        assert row["correct"] is (True if n in right else False if n in (1, 4) else None)
        assert row["half"] == exam.half(row["item_id"])


def test_no_more_is_asked_than_needed(tmp_path: Path) -> None:
    settings = value(tmp_path, knows(r"\d+"), limit=1, items="leaked")
    run = do(tmp_path, settings, "exam", "prefilter.kieval", "kieval.one")
    rows = read_jsonl(run / "stages" / "prefilter.kieval" / "records.jsonl")
    exam = read_exam(run / "exam")
    leaked = [item.id for item in exam.items if item.id in exam.leaked]
    assert [row["item_id"] for row in rows] == leaked[:4]  # one step: 4 waves of max_num_seqs 1
    assert ids(run, "one") == leaked[:1]


def test_a_shortfall_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = do(tmp_path, value(tmp_path, knows("7"), limit=4))
    exam = read_exam(run / "exam")
    (seven,) = [item.id for item in exam.items if number(exam, item.id) == 7]
    half, other = ("leaked", "untouched") if seven in exam.leaked else ("untouched", "leaked")
    folder = run / "stages" / "prefilter.kieval"
    metrics = read_json(folder / "metrics.json")
    assert metrics["kept"] == {half: 1, other: 0}
    assert metrics["shortfall"] == {half: 3, other: 4}
    assert (metrics["n"], metrics["right"], metrics["unparsable"]) == (12, 1, 11)
    log = capsys.readouterr().out
    assert f"{half}: 1 of the first 6 items are kept" in log
    assert "3 fewer than wanted" in log
    assert "4 fewer than wanted" in log
    assert ids(run, "one") == ids(run, "two") == [seven]
    summary = read_json(run / "report" / "summary.json")["candidates"]["one"]["exams"]["kieval"]
    assert (summary[half]["n"], summary[other]["n"], summary[other]["score"]) == (1, 0, None)


def test_an_exam_with_its_own_benchmark(tmp_path: Path) -> None:
    own = benchmark(tmp_path)
    settings = {**value(tmp_path, knows("1|4|7|10"), limit=3, benchmark=own), "benchmark": {"format": "embedded"}}
    run = do(tmp_path, settings, "exam.kieval", "prefilter.kieval", "kieval.one")
    items = read_exam(run / "stages" / "exam.kieval").items
    known = [item.id for item in items if item.question.split()[2] in ("1", "4", "7")]
    assert ids(run, "one") == known
    assert read_json(run / "stages" / "prefilter.kieval" / "metrics.json")["kept"] == {"all": 3}


def test_an_evaluator_that_knows_nothing(tmp_path: Path) -> None:
    file = write_experiment(tmp_path, value(tmp_path, knows("none", "1|2"), limit=2))
    result = proctor("run", file, "--out", tmp_path / "run")
    assert result.returncode == 1
    assert "Traceback" not in result.stderr + result.stdout
    said = [line for line in (result.stdout + result.stderr).splitlines() if "answered none of 12 items right" in line]
    assert said
    assert "no item passes the prefilter of exam kieval; take a stronger evaluator, or leave prefilter out" in said[0]
    folder = tmp_path / "run" / "stages" / "prefilter.kieval"
    assert not (folder / "DONE").exists()
    assert not (folder / "chosen.json").exists()
    assert len(read_jsonl(folder / "records.jsonl")) == 12
    assert not (tmp_path / "run" / "stages" / "kieval.one" / "records.jsonl").exists()


def test_another_evaluator_makes_another_list(tmp_path: Path) -> None:
    def digest(evaluator: dict[str, Any], **exam: Any) -> str:
        stages = plan(Experiment.model_validate(value(tmp_path, evaluator, **exam)))
        return find(stages, "prefilter.kieval").digest({"exam": "x"})

    first = digest(knows("1"))
    assert digest(knows("1")) == first
    assert digest(knows("2")) != first
    assert digest(knows("1"), limit=3) != first
    assert digest(knows("1"), options={"rounds": 1, "candidate_tokens": 9}) != first
    assert digest(knows("1"), options={"rounds": 4, "comment_length": 9}) == first  # what it isn't asked

    stages = plan(Experiment.model_validate(value(tmp_path, knows("1"))))
    assert find(stages, "kieval.one").needs == ("exam", "prefilter.kieval")


def test_the_list_is_not_drawn_again(tmp_path: Path) -> None:
    settings = value(tmp_path, knows("0|2|3|5|6|8|9|11"), limit=2)
    run = do(tmp_path, settings, "exam", "prefilter.kieval")
    before = (run / "stages" / "prefilter.kieval" / "chosen.json").read_bytes()
    (run / "stages" / "prefilter.kieval" / "DONE").unlink()  # as if killed before its end
    do(tmp_path, settings, "prefilter.kieval")
    assert (run / "stages" / "prefilter.kieval" / "chosen.json").read_bytes() == before
    usage = read_json(run / "stages" / "prefilter.kieval" / "usage.json")["roles"]["evaluator"]
    assert usage["calls"] == usage["replayed"] > 0


@pytest.mark.parametrize("verb", ["run", "check"])
def test_only_kieval_has_a_filter(tmp_path: Path, verb: str) -> None:
    settings = scripted(exams={"letters": {"protocol": "static", "prefilter": True}})
    out = ("--out", tmp_path / "run") if verb == "run" else ()
    result = proctor(verb, write_experiment(tmp_path, settings), *out)
    assert result.returncode == 2
    assert result.stderr == (
        "error: exams.letters.prefilter: protocol 'static' has no validity filter; only kieval has one\n"
    )
    assert not (tmp_path / "run").exists()
