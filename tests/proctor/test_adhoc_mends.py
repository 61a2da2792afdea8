"""Ad hoc commands: what --out may hold, what is checked before anything is written, and values out of range."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evaluation.run_exam import Report
from proctor.cli import app
from proctor.commands import detect, evaluate, train
from proctor.experiment.yaml_file import read_yaml
from proctor.run_folder.lock import boot, namespace, process_start
from proctor.run_folder.single import once
from proctor.run_folder.stage import StageBusy, StageFolder
from tests.proctor.command import proctor

Write = Callable[[str, str], Path]
QUICK = ["repeats=1", "chat_rows=2", "leak={dtype: float32, max_length: 256}", "chat_sft={dtype: float32}"]


def succeed(folder: Path, report: Report) -> list[str]:
    (folder / "records.jsonl").write_text("{}\n", encoding="utf-8")
    return ["records.jsonl"]


def fail(folder: Path, report: Report) -> list[str]:
    raise ValueError("no such model")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_a_killed_call_leaves_is_no_result(tmp_path: Path) -> None:
    dead = {"host": socket.gethostname(), "boot": boot(), "namespace": namespace(), "pid": 999_999_999, "start": 1}
    (tmp_path / "LOCK").write_text(json.dumps(dead))
    (tmp_path / ".inputs.json.4711").write_text("{", encoding="utf-8")
    assert once(tmp_path, {"a": 1}, succeed)
    assert not (tmp_path / ".inputs.json.4711").exists()
    assert not once(tmp_path, {"a": 1}, fail)
    with pytest.raises(ValueError, match="other inputs"):
        once(tmp_path, {"a": 2}, succeed)


def test_a_corrected_retry_follows_a_failed_call(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such model"):
        once(tmp_path, {"model": "wrong"}, fail)
    assert once(tmp_path, {"model": "right"}, succeed)


@pytest.mark.parametrize("name", ["records.jsonl", "scores.jsonl", "DONE", "ledger/host-1-2.jsonl"])
def test_other_inputs_are_refused_once_there_is_a_result(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no such model"):
        once(tmp_path, {"seed": 1}, fail)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("{}", encoding="utf-8")
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="other inputs"):
        once(tmp_path, {"seed": 2}, succeed)
    assert contents(tmp_path) == before


def test_an_out_that_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ValueError, match="holds no results of this command"):
        once(tmp_path, {}, succeed)
    for out in (tmp_path / "thesis.txt", tmp_path / "thesis.txt" / "below"):
        with pytest.raises(ValueError, match=r"thesis.txt is a file; give a folder"):
            once(out, {}, succeed)


def test_a_living_calls_folder_is_busy(tmp_path: Path) -> None:
    owner = {"host": "h", "boot": boot(), "namespace": namespace(), "pid": os.getppid()}
    owner["start"] = process_start(os.getppid())
    (tmp_path / "LOCK").write_text(json.dumps(owner), encoding="utf-8")
    with pytest.raises(StageBusy):
        once(tmp_path, {}, succeed)


def test_a_result_made_while_waiting_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = StageFolder.lock

    def lock(folder: StageFolder) -> Any:
        monkeypatch.undo()
        assert once(tmp_path, {"seed": 1}, succeed)
        return real(folder)

    monkeypatch.setattr(StageFolder, "lock", lock)
    with pytest.raises(ValueError, match="other inputs"):
        once(tmp_path, {"seed": 2}, succeed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1\n- 2\n", "must hold a mapping of keys .*, not a list"),
        ("3", "must hold a mapping of keys .*, not the single value '3'"),
        ("hello", "not the single value 'hello'"),
        ("[" * 3000, "nested too deeply"),
        ("a: [1,\n", "flow"),
    ],
)
def test_a_file_that_is_no_mapping(write_text: Write, text: str, message: str) -> None:
    path = write_text("e.yaml", text)
    with pytest.raises(ValueError, match=message) as error:
        read_yaml(path)
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize("seed", ["-1", str(2**31)])
@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "--candidate", "x", "--format", "embedded"),
        ("detect", "--model", "x", "--data", "texts.jsonl"),
        ("train", "--recipe", "normal", "--base", "x"),
    ],
)
def test_seeds_out_of_range(tmp_path: Path, arguments: tuple[str, ...], seed: str) -> None:
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out"), "--seed", seed])
    assert result.exit_code == 2
    assert "--seed" in result.output
    assert not (tmp_path / "out").exists()


def test_ids_in_scores_are_those_of_the_file(tmp_path: Path, write_text: Write) -> None:
    data = write_text("t.jsonl", '{"text": "a b", "id": 7}\n{"text": "c d", "id": "7x"}\n{"text": "e f"}\n')
    detect.detect(model="x", data=data, out=tmp_path / "out", methods="loss", engine="scripted")
    for name in ("scores.jsonl", "records.jsonl"):
        lines = (tmp_path / "out" / name).read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["id"] for line in lines] == [7, "7x", "3"]


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    result = proctor(
        "detect", "--model", "x", "--engine", "scripted", "--data", "/dev/stdin", "--out", tmp_path, input=""
    )
    assert (result.returncode, result.stderr.startswith("error: /dev/stdin: ")) == (2, True)
    memory = Path("/proc/self/mem")
    if memory.exists():
        with pytest.raises(ValueError, match="/proc/self/mem: can't be read"):
            detect.detect(model="x", data=memory, out=tmp_path, engine="scripted")
        with pytest.raises(ValueError, match="/proc/self/mem: can't be read"):
            evaluate.evaluate(candidate="x", benchmark=memory, out=tmp_path, engine="scripted")


@pytest.mark.parametrize("key", ["recipe", "base", "seed", "items", "leaked_ids"])
def test_settings_that_training_makes_itself(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match=f"-s {key}=... can't be set"):
        train.train(recipe="normal", base="x", out=tmp_path / "out", overrides=[f"{key}=1"])


def test_training_checks_before_it_writes(tmp_path: Path, tiny_model: Path, write_text: Write) -> None:
    out = tmp_path / "out"
    with pytest.raises(ValueError, match=r"--base: .*nowhere does not exist"):
        train.train(recipe="normal", base=str(tmp_path / "nowhere"), out=out)
    for setting, message in (("repeets=1", "did you mean 'repeats'"), ("chat=/nowhere.jsonl", "/nowhere.jsonl")):
        with pytest.raises(ValueError, match=message):
            train.train(recipe="normal", base=str(tiny_model), out=out, overrides=[setting])
    assert not out.exists()
    with pytest.raises(ValueError, match="is a file; give a folder"):
        train.train(recipe="normal", base=str(tiny_model), out=write_text("afile", "x"))
    for name in ("thesis.txt", "exam/mine.txt"):
        file = write_text(f"{name.partition('.')[0]}_folder/{name}", "x")
        folder = tmp_path / f"{name.partition('.')[0]}_folder"
        with pytest.raises(ValueError, match="choose another folder"):
            train.train(recipe="normal", base=str(tiny_model), out=folder, overrides=QUICK)
        assert contents(folder) == {str(file.relative_to(folder)): b"x"}


def test_another_job_leaves_a_candidates_folder_as_it_was(tmp_path: Path, tiny_model: Path) -> None:
    out = tmp_path / "out"
    train.train(recipe="normal", base=str(tiny_model), out=out, limit=8, overrides=QUICK)
    before = contents(out)
    usual: dict[str, Any] = {"recipe": "normal", "base": str(tiny_model), "limit": 8, "overrides": QUICK}
    for changed in ({"limit": 10}, {"seed": 1}, {"overrides": [*QUICK, "repeats=2"]}):
        with pytest.raises(ValueError, match="candidate of another job"):
            train.train(**{**usual, **changed}, out=out)
        assert contents(out) == before
    out.rename(tmp_path / "moved")
    train.train(recipe="normal", base=str(tiny_model), out=tmp_path / "moved", limit=8, overrides=QUICK)
    assert contents(tmp_path / "moved") == before
    begun = tmp_path / "begun"
    (begun / ".partial").mkdir(parents=True)
    manifest = json.loads((tmp_path / "moved" / "manifest.json").read_text(encoding="utf-8"))
    job = {key: manifest[key] for key in ("job", "base_sha256", "inputs")}
    (begun / ".partial" / "job.json").write_text(json.dumps(job), encoding="utf-8")
    before = contents(begun)
    with pytest.raises(ValueError, match="candidate of another job"):
        train.train(recipe="sft_cheater", base=str(tiny_model), out=begun, limit=8, overrides=QUICK)
    assert contents(begun) == before
