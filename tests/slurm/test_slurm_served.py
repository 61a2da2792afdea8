"""A served examiner on a real SLURM: its server is a job of its own, and no GPU is held when nobody asks any more."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.proctor.command import proctor
from tests.serving.adapter_models import base_model
from tests.slurm.cluster import Cluster, job_state, wait_for, wait_for_end
from tests.slurm.test_slurm_runs import experiment, standing, submit, submitted

OPTIONS = {"rounds": 1, "comment_length": 12, "interactor_tokens": 12, "candidate_tokens": 12, "retries": 0}


def value_of(judge: dict[str, Any]) -> dict[str, Any]:
    """Two scripted candidates before one served examiner of random weights, whose verdicts count for nothing here."""
    value = experiment(name="served", mode="fast", max_failure_rate=1.0)
    value["models"]["judge"] = {"engine": "server", "dtype": "float32", "max_num_seqs": 8, "patience": 150, **judge}
    value["roles"] = {"interactor": "judge", "evaluator": "judge"}
    value["exams"]["kieval"]["options"] = OPTIONS
    return value


@pytest.mark.slow
def test_a_server_is_a_job_and_ends_with_the_last_that_asks(cluster: Cluster, tmp_path: Path) -> None:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed (pip install 'proctor[gpu]' or 'proctor[cpu]')")
    value = value_of({"path": str(base_model(tmp_path / "model", max_position_embeddings=4096))})
    run, where = tmp_path / "run", {"serve_host": "127.0.0.1"}
    jobs = submitted(submit(tmp_path, value, **where))
    assert list(jobs) == ["serve.judge", "exam", "kieval.one", "kieval.two", "report"]
    shown = subprocess.run(
        ["scontrol", "show", "job", jobs["kieval.two"]], check=True, capture_output=True, text=True
    ).stdout
    assert f"after:{jobs['serve.judge']}" in shown
    assert "is still" not in submit(tmp_path, value, **where).stdout  # the same experiment: nothing stands in its way
    cancelled = proctor("cancel", run, "--stage", "kieval.two")
    assert cancelled.stdout.startswith("cancelled 2: kieval.two (job "), cancelled.stdout + cancelled.stderr
    wait_for(lambda: standing(run)["serve.judge"] == "serving", 150, "the server to be well")
    assert "http://127.0.0.1:" in proctor("status", run).stdout
    wait_for_end()
    log = (run / "serving" / "serve.judge.txt").read_text()
    assert "no stage needs it any more" in log, log[-2000:]
    assert job_state(jobs["serve.judge"]) == "COMPLETED"
    found = standing(run)
    assert (found["kieval.one"], found["kieval.two"], found["serve.judge"]) == ("done", "cancelled", "ended")
    again = submitted(submit(tmp_path, value, **where))
    assert list(again) == ["serve.judge", "kieval.two", "report"]
    assert again["serve.judge"] != jobs["serve.judge"]
    ended = proctor("cancel", run, "--stage", "serve.judge")
    assert ended.stdout.startswith("cancelled 1: serve.judge (job "), ended.stdout + ended.stderr
    assert "cancelled 2: " in proctor("cancel", run).stdout
    wait_for_end()
    assert standing(run)["serve.judge"] == "cancelled"
    metrics = json.loads((run / "stages" / "kieval.one" / "metrics.json").read_text())
    assert metrics["schedule"] == "fast"


def test_a_server_that_can_not_start_ends_those_that_wait_for_it(cluster: Cluster, tmp_path: Path) -> None:
    """8.8.8.8 is no address to listen on; nobody waits for the model's patience."""
    value = value_of({"path": str(base_model(tmp_path / "model", max_position_embeddings=4096))})
    value["candidates"] = {"one": {"model": "m"}}
    jobs = submitted(submit(tmp_path, value, serve_host="8.8.8.8"))
    wait_for_end(120)
    assert [job_state(jobs[name]) for name in ("serve.judge", "kieval.one", "report")] == [
        "FAILED", "FAILED", "CANCELLED",
    ]  # fmt: skip
    found = proctor("status", tmp_path / "run").stdout
    assert "has failed: " in found
    assert "neither loopback nor private" in found
