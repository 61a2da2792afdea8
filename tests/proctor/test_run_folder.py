"""What is reused, what is done again, and who may work in a run folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from proctor.experiment.experiment import Experiment
from proctor.run_folder.run import open_run
from proctor.run_folder.stage import StageFolder
from proctor.runner.plan import plan
from proctor.stages.exam import stage as exam_stage
from serving.files import read_json
from serving.model.spec import ModelSpec
from tests.proctor.command import proctor, start, write_experiment
from tests.proctor.scripted import do, scripted


@pytest.fixture(scope="module")
def scripted_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, not to be changed."""
    return do(tmp_path_factory.mktemp("whole"), scripted())


@pytest.fixture
def run(scripted_run: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(scripted_run, tmp_path / "run"))


def summary(run: Path) -> dict[str, Any]:
    return json.loads((run / "report" / "summary.json").read_text())["candidates"]


def test_the_report_reads_only_what_the_experiment_contains(run: Path) -> None:
    assert summary(run)["two"]["kieval"] is not None
    value = scripted(seed=5)
    for exam in value["exams"].values():
        exam["candidates"] = ["one"]
    value["detection"] = None
    do(run.parent, value)
    found = summary(run)
    assert set(found) == {"one", "two"}
    assert found["one"]["kieval"] is not None
    assert found["two"]["kieval"] is None
    assert found["two"]["accuracy_leaked"] is None
    assert found["one"]["detection"] == {}


def test_the_order_of_exams_decides_the_table(tmp_path: Path) -> None:
    exams = {
        "letter": {"protocol": "static", "options": {"mode": "letter"}},
        "cloze": {"protocol": "static", "options": {"mode": "cloze"}},
    }
    run = do(tmp_path, scripted(exams=exams))
    first = summary(run)["one"]
    assert first["accuracy_leaked"] == first["exams"]["letter"]["leaked"]["accuracy"]
    do(tmp_path, scripted(exams=dict(reversed(exams.items()))), "report")
    second = summary(run)["one"]
    assert second["accuracy_leaked"] == second["exams"]["cloze"]["leaked"]["accuracy"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidates": {"base": {"model": "q"}}}, "'base' is the control"),
        ({"candidates": {"base": {"recipe": "pt_cheater"}}}, "'base' is the control"),
        ({"exams": {"detect": {"protocol": "static"}}}, "name of a stage"),
        ({"candidates": {"one\n": {"model": "m"}}}, "may hold letters"),
        ({"detection": {"formats": []}}, "formats"),
        ({"mode": "batch-invariant"}, "PROCTOR_DEVICE"),
        ({"detection": {"formats": ["neutral", "neutral"]}}, "once"),
    ],
)
def test_names_that_would_collide(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    result = proctor("run", write_experiment(tmp_path, scripted(**change)), "--out", tmp_path / "run")
    assert result.returncode == 2
    assert message in result.stderr
    assert not (tmp_path / "run").exists()


def test_two_stages_of_one_name_are_refused() -> None:
    value = scripted(
        candidates={"c": {"model": "m"}, "b.c": {"model": "m"}},
        exams={"a": {"protocol": "static"}, "a.b": {"protocol": "static"}},
    )
    with pytest.raises(ValueError, match=r"two stages would be called 'a\.b\.c'"):
        plan(Experiment.model_validate(value))


def test_a_models_identity_is_its_content(tmp_path: Path, tiny_model: Path) -> None:
    """Weights, tokenizer and template count; where they lie does not."""
    import shutil

    def digest(folder: Path, **settings: Any) -> str:
        spec = ModelSpec(path=str(folder), engine="transformers", **settings)
        value = scripted(models={"m": spec.model_dump(), "q": spec.model_dump()})
        return exam_stage(Experiment.model_validate(value), "static", "one").digest({"exam": "x"})

    copy = tmp_path / "copy"
    shutil.copytree(tiny_model, copy)
    assert digest(copy) == digest(tiny_model)
    template = tmp_path / "a.jinja"
    template.write_text("{{ messages[0]['content'] }}")
    first = digest(tiny_model, chat_template=str(template))
    assert first != digest(tiny_model)
    renamed = template.rename(tmp_path / "b.jinja")
    assert digest(tiny_model, chat_template=str(renamed)) == first
    renamed.write_text("{{ messages[0]['content'] }}!")
    assert digest(tiny_model, chat_template=str(renamed)) != first
    (copy / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    assert digest(copy) != digest(tiny_model)


def test_one_runner_per_folder(run: Path, tmp_path: Path) -> None:
    other = scripted(seed=9)
    with StageFolder(run).lock():
        result = proctor("run", write_experiment(tmp_path, other), "--out", run)
    assert result.returncode == 2
    assert f"is being run by process {os.getpid()}" in result.stderr
    assert "seed: 0" in (run / "experiment.yaml").read_text()


def test_a_stage_refuses_inputs_that_changed(run: Path) -> None:
    result = proctor("stage", run, "static.one", "--digest", "0" * 64)
    assert result.returncode == 2
    assert "changed while the experiment was running" in result.stderr


def test_damaged_files_are_named(run: Path, tmp_path: Path) -> None:
    for text in ("[]", "null", "{", '{"inputs": 1, "outputs": 2, "sizes": []}'):
        (run / "stages" / "static.one" / "DONE").write_text(text)
        (run / "stages" / "static.one" / "LOCK").write_text(text)
        (run / "environment.json").write_text(text)
        result = proctor("status", run)
        assert result.returncode == 0, result.stderr
        states = dict(line.split()[:2] for line in result.stdout.splitlines())
        assert states["static.one"] in ("ready", "stale")
        assert states["static.two"] == "done"
    do(tmp_path, scripted())
    records = run / "stages" / "static.one" / "records.jsonl"
    records.write_text("{" * records.stat().st_size)  # of another size it would not be read at all
    result = proctor("report", run)
    assert result.returncode == 0, result.stderr
    assert "records.jsonl changed after it was done" in result.stdout
    assert read_json(run / "report" / "summary.json")["damaged"], "said on the page, and not shown"


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = proctor("run", write_experiment(tmp_path, scripted()), "--out", tmp_path / "file" / "sub")
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr


def test_a_resolved_experiment_is_not_interpolated_again(tmp_path: Path) -> None:
    value = scripted()
    value["models"]["m"]["stop"] = ["${HOME}"]
    run = do(tmp_path, value, "exam")
    assert "${HOME}" in (run / "experiment.yaml").read_text()
    assert list(open_run(run).experiment.models["m"].stop) == ["${HOME}"]


def test_a_run_can_be_looked_at_from_anywhere(tmp_path: Path) -> None:
    rows = [{"question": f"What is {i}+1?", "choices": [str(i + 1), "none"], "answer": "A"} for i in range(8)]
    (tmp_path / "bench.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    value = scripted(benchmark={"format": "jsonl", "path": "bench.jsonl"})
    file = write_experiment(tmp_path, value)
    assert proctor("run", file, "--out", "run", cwd=tmp_path).returncode == 0
    result = proctor("status", tmp_path / "run", cwd="/")
    assert result.returncode == 0, result.stderr
    assert all(line.split()[1] == "done" for line in result.stdout.splitlines())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_so(tmp_path: Path, number: int) -> None:
    value = scripted()
    # a rule that takes minutes on one prompt keeps the stage busy
    value["models"]["q"]["engine_args"] = {"replies": [{"match": "(a+)+$", "reply": "x"}]}
    process = start("run", write_experiment(tmp_path, value), "--out", tmp_path / "run")
    deadline = time.monotonic() + 60
    while not (tmp_path / "run" / "stages").is_dir() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 75, output
    assert "run the same command again" in output
    assert proctor("run", tmp_path / "experiment.yaml", "--out", tmp_path / "run").returncode == 0


def test_a_second_sigterm_does_not_cut_the_wait_for_a_checkpoint_short() -> None:
    """``timeout`` sends it to the command and then to its group."""
    code = (
        "import os, signal; from proctor.commands.runs import _as_interrupt; end = signal.SIGTERM\n"
        "signal.signal(end, _as_interrupt)\n"
        "try: os.kill(os.getpid(), end)\n"
        "except KeyboardInterrupt: os.kill(os.getpid(), end); print('waited')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "waited\n")
