"""proctor rejudge: stored interviews under another evaluator; the candidate is asked nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from proctor.cli import app
from serving.files import read_json, read_jsonl, write_jsonl
from tests.proctor.command import proctor
from tests.proctor.scripted import do, scripted

Write = Callable[[str, str], Path]
ASPECTS = ("accuracy", "logic", "relevance", "coherence", "conciseness", "overall")


def verdict(score: int, stop: bool = False) -> str:
    judged = {"comment": "", "score": score}
    reason = "repetition" if stop else "none"
    return json.dumps({**dict.fromkeys(ASPECTS, judged), "reason": reason, "stop": stop})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run: six interviews of two rounds, the evaluator gives 3 and then 1 throughout."""
    replies = [
        {"match": "Judge the candidate's reply of round 2", "reply": verdict(1)},
        {"match": "Judge the candidate's reply", "reply": verdict(3)},
    ]
    value = scripted(
        models={
            "m": {"path": "none", "engine": "scripted"},
            "e": {"path": "e", "engine": "scripted", "engine_args": {"replies": replies}},
        },
        candidates={"one": {"model": "m"}, "a.b": {"model": "m"}},
        roles={"interactor": "m", "evaluator": "e"},
        exams={
            "kieval": {"protocol": "kieval", "limit": 3, "options": {"rounds": 2}},
            "static": {"protocol": "static"},
        },
        detection=None,
    )
    return do(tmp_path_factory.mktemp("rejudge"), value)


def judge(source: Path, out: Path, *arguments: str) -> Any:
    command = ["rejudge", str(source), "--evaluator", "x", "--engine", "scripted", "--out", str(out), *arguments]
    return CliRunner().invoke(app, command)


def refuse(source: Path, out: Path, *arguments: str) -> str:
    result = judge(source, out, *arguments)
    assert isinstance(result.exception, ValueError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def asked(out: Path) -> list[dict[str, Any]]:
    """The batches in the ledger."""
    lines = [
        json.loads(line.partition(" ")[2])
        for file in (out / "ledger").glob("*.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return [line for line in lines if "batch" in line]


def test_another_evaluator(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    source = run / "stages" / "kieval.one"
    before = (source / "records.jsonl").read_bytes()
    result = judge(source, out)
    assert result.exit_code == 0, result.output
    assert {batch["role"] for batch in asked(out)} == {"evaluator"}  # the candidate and the interactor: nothing
    assert sum(len(batch["requests"]) for batch in asked(out)) == 12
    assert set(read_json(out / "usage.json")["roles"]) == {"evaluator"}
    assert (source / "records.jsonl").read_bytes() == before

    stored, rows = read_jsonl(source / "records.jsonl"), read_jsonl(out / "records.jsonl")
    assert [row["item_id"] for row in rows] == [row["item_id"] for row in stored]
    assert [turn["overall"] for row in stored for turn in row["rounds"]] == [3, 1] * 6
    assert [turn["overall"] for row in rows for turn in row["rounds"]] == [1, 1] * 6  # the smallest verdict
    metrics = read_json(out / "metrics.json")
    agreement = metrics["agreement"]
    assert (metrics["n"], metrics["rounds_judged"], metrics["missing_verdicts"]) == (6, 12, 0)
    assert metrics["score"] == pytest.approx(0.1)
    assert (agreement["n"], agreement["exact"]) == (12, 0.5)
    assert agreement["kappa"]["value"] == pytest.approx(0)  # a constant judge agrees by chance only
    assert agreement["mean_difference"]["mean"] == -1  # -2 and 0
    assert agreement["pearson"]["reason"] == "constant scores (new)"
    for line in ("n: 6 interviews, 12 rounds, 0 of them without verdict", "agreement, exact: 0.5"):
        assert line in result.output


def test_the_same_evaluator_agrees_with_itself(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its verdicts are a function of the prompts, so equal verdicts mean equal prompts."""
    from proctor.commands import options
    from serving.model.spec import ModelSpec

    spec = ModelSpec.model_validate(read_yaml(run)["models"]["e"])
    monkeypatch.setattr(options, "model_spec", lambda *_, **__: spec)
    out = tmp_path / "out"
    assert judge(run / "stages" / "kieval.one", out).exit_code == 0
    stored, rows = read_jsonl(run / "stages" / "kieval.one" / "records.jsonl"), read_jsonl(out / "records.jsonl")
    for old, new in zip(stored, rows, strict=True):
        assert [turn["verdict"] for turn in new["rounds"]] == [turn["verdict"] for turn in old["rounds"]]
        assert new["scores"] == new["scores_all_rounds"] == old["scores"]
    agreement = read_json(out / "metrics.json")["agreement"]
    assert agreement["exact"] == 1
    assert agreement["kappa"]["value"] == agreement["kappa_quadratic"]["value"] == pytest.approx(1)
    assert [agreement[name]["value"] for name in ("pearson", "spearman")] == pytest.approx([1, 1])
    assert agreement["mean_difference"] == {
        "mean": 0,
        "interval": None,
        "interval_note": "6 of 6 at 0: up to 46 % may lie elsewhere",
        "n": 6,
    }
    assert agreement["stop"]["neither"] == 12


def read_yaml(run: Path) -> dict[str, Any]:
    import yaml

    value: dict[str, Any] = yaml.safe_load((run / "experiment.yaml").read_text(encoding="utf-8"))
    return value


def test_a_second_call_does_nothing_and_a_killed_one_goes_on(run: Path, tmp_path: Path) -> None:
    out, source = tmp_path / "out", run / "stages" / "kieval.one"
    assert judge(source, out, "--votes", "3").exit_code == 0
    records, batches = (out / "records.jsonl").read_bytes(), len(asked(out))
    again = judge(source, out, "--votes", "3")
    assert "nothing to do: done already" in again.output
    assert len(asked(out)) == batches

    for name in ("DONE", "records.jsonl", "metrics.json"):  # as if killed before its end
        (out / name).unlink()
    assert "nothing to do" not in judge(source, out, "--votes", "3").output
    assert (out / "records.jsonl").read_bytes() == records
    usage = read_json(out / "usage.json")["roles"]["evaluator"]
    assert usage["replayed"] == usage["calls"] > 0
    assert len(asked(out)) == batches

    assert "holds the results of other inputs" in refuse(source, out)
    assert "holds the results of other inputs" in refuse(source, out, "--votes", "3", "--seed", "1")
    assert (out / "records.jsonl").read_bytes() == records


def test_votes(run: Path, tmp_path: Path) -> None:
    assert judge(run / "stages" / "kieval.one", tmp_path / "out", "--votes", "3", "--seed", "5").exit_code == 0
    for row in read_jsonl(tmp_path / "out" / "records.jsonl"):
        assert [len(turn["votes"]) for turn in row["rounds"]] == [3, 3]
    requests = [request for batch in asked(tmp_path / "out") for request in batch["requests"]]
    assert len(requests) == 36
    assert len({json.dumps(request) for request in requests}) == 36  # each with a seed of its own


def test_where_the_items_are_found(run: Path, tmp_path: Path) -> None:
    assert judge(run / "stages" / "kieval.a.b", tmp_path / "dotted").exit_code == 0
    alone = tmp_path / "alone"
    shutil.copytree(run / "stages" / "kieval.one", alone)
    assert "the items of these records are not found" in refuse(alone, tmp_path / "out")
    shutil.copy(run / "exam" / "items.jsonl", alone / "items.jsonl")
    assert judge(alone, tmp_path / "out").exit_code == 0


def test_own_items_of_an_exam_with_dots_in_its_name(tmp_path: Path, write_text: Write) -> None:
    rows = [{"question": f"Is {i} odd?", "choices": ["yes it is", "no"], "answer": "A"} for i in range(3)]
    path = write_text("odd.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    own = {"protocol": "kieval", "options": {"rounds": 1}, "benchmark": {"format": "jsonl", "path": str(path)}}
    value = scripted(exams={"odd.numbers": own}, detection=None)
    run = do(tmp_path, value, "exam", "exam.odd.numbers", "odd.numbers.one")
    assert judge(run / "stages" / "odd.numbers.one", tmp_path / "out").exit_code == 0
    assert read_json(tmp_path / "out" / "metrics.json")["n"] == 3


def test_refusals(run: Path, tmp_path: Path) -> None:
    out, source = tmp_path / "out", run / "stages" / "kieval.one"
    assert "has no records.jsonl; give a finished stage" in refuse(tmp_path / "nowhere", out)
    assert "is none of kieval, version 2 or later" in refuse(run / "stages" / "static.one", out)
    assert "-o votes=... can't be set: give --votes" in refuse(source, out, "-o", "votes=3")
    assert "did you mean 'retries'" in refuse(source, out, "-o", "retriez=3")
    assert "--schedule is 'slow'" in refuse(source, out, "--schedule", "slow")
    other = tmp_path / "other"
    shutil.copytree(source, other)
    items = read_jsonl(run / "exam" / "items.jsonl")
    rows = read_jsonl(source / "records.jsonl")
    write_jsonl(other / "items.jsonl", [item for item in items if item["id"] != rows[1]["item_id"]])
    assert f"item {rows[1]['item_id']} is not in" in refuse(other, out)
    (other / "items.jsonl").write_text('{"id": "x"}\n', encoding="utf-8")
    assert "items.jsonl:1: not an exam item" in refuse(other, out)
    shutil.copy(run / "exam" / "items.jsonl", other / "items.jsonl")
    for text, said in (("", "is empty"), ("[1]\n", "record 1 is no JSON object"), ("{\n", "line 1 is damaged")):
        (other / "records.jsonl").write_text(text, encoding="utf-8")
        assert said in refuse(other, out)
    old = [{key: value for key, value in row.items() if key != "rounds_allowed"} for row in rows]
    write_jsonl(other / "records.jsonl", old)
    assert "is none of kieval, version 2 or later" in refuse(other, out)
    assert not out.exists()


def test_the_exit_code_of_a_refusal(run: Path, tmp_path: Path) -> None:
    source = run / "stages" / "kieval.one"
    result = proctor("rejudge", source, "--evaluator", tmp_path / "no", "--out", tmp_path / "out")
    assert result.returncode == 2
    assert result.stderr.startswith("error: --evaluator: ")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
