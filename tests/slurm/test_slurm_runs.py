"""Experiments on a real SLURM (started on localhost): they end with the records of a local run, whatever happens."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.proctor.command import proctor, records, write_experiment
from tests.proctor.scripted import do, scripted
from tests.slurm.cluster import Cluster, job_state, queue, wait_for, wait_for_end

PROFILE: dict[str, Any] = {
    "partition": "main",
    "time": "00:10:00",
    "gpus_per_node": 2,
    "gpu_type": "a100",
    "cpus": 1,
    "cpus_per_gpu": 1,
    "max_requeues": 2,
}


def experiment(seconds: float = 0.0, **changes: Any) -> dict[str, Any]:
    """Two interviews of four items in waves of two; a model's batch takes ``seconds``."""
    slow = {"path": "none", "engine": "scripted", "engine_args": {"seconds": seconds}}
    return scripted(
        models={"m": slow, "q": {**slow, "path": "other"}},
        exams={"kieval": {"protocol": "kieval", "limit": 2, "wave": 1, "options": {"rounds": 2}}},
        detection=None,
        **changes,
    )


def profile(folder: Path, **changes: Any) -> Path:
    path = folder / "profile.yaml"
    path.write_text(yaml.safe_dump({**PROFILE, **changes}), encoding="utf-8")
    return path


def submit(folder: Path, value: dict[str, Any], *arguments: object, **changes: Any) -> subprocess.CompletedProcess[str]:
    """``proctor submit`` of the experiment into ``folder``/run."""
    file = write_experiment(folder, value)
    return proctor("submit", file, "--profile", profile(folder, **changes), "--out", folder / "run", *arguments)


def submitted(result: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Job ids by name."""
    assert result.returncode == 0, result.stdout + result.stderr
    return dict(re.findall(r"(\S+) is job (\d+)", result.stdout))


def standing(run: Path) -> dict[str, str]:
    """State by stage, as ``proctor status`` says."""
    lines = [line.split() for line in proctor("status", run).stdout.splitlines() if not line.startswith(" ")]
    return {words[0]: words[1] for words in lines}


def progress(run: Path, stage: str) -> int:
    try:
        return int(json.loads((run / "stages" / stage / "progress.json").read_text())["done"])
    except (FileNotFoundError, ValueError):
        return 0


def under_way(run: Path, stage: str) -> None:
    wait_for(lambda: progress(run, stage), 120, f"{stage} to be under way")


def holder(run: Path, stage: str) -> int:
    return int(json.loads((run / "stages" / stage / "LOCK").read_text())["pid"])


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The records of a local run of ``experiment()``."""
    return records(do(tmp_path_factory.mktemp("local"), experiment()))


def replies_only(found: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in found.items() if name.startswith("stages/kieval.")}


def test_a_whole_experiment_with_shards(cluster: Cluster, tmp_path: Path, local: dict[str, bytes]) -> None:
    result = submit(tmp_path, experiment(), shards={"kieval": 2}, shards_at_once=1)
    jobs = submitted(result)
    assert list(jobs) == [
        "exam", "kieval.one.shards", "kieval.one", "kieval.two.shards", "kieval.two", "report",
    ]  # fmt: skip
    run = tmp_path / "run"
    subprocess.run(["scontrol", "hold", jobs["report"]], check=True)  # however slow this machine is, it stays queued
    assert standing(run)["report"] == "queued"
    shown = subprocess.run(["scontrol", "show", "job", jobs["report"]], capture_output=True, text=True).stdout
    assert f"afterok:{jobs['exam']}" in shown or "afterok:" in shown
    assert "KillOInInvalidDependent=Yes" in shown
    again = submit(tmp_path, experiment(), shards={"kieval": 2})
    assert "nothing to submit" in again.stdout, again.stdout + again.stderr
    changed = submit(tmp_path, experiment(), "-s", "exams.kieval.limit=1", shards={"kieval": 2})
    assert changed.returncode == 2
    assert "is still queued or running for the former experiment" in changed.stderr
    subprocess.run(["scontrol", "release", jobs["report"]], check=True)
    wait_for_end()
    assert set(standing(run).values()) == {"done"}
    assert records(run) == local
    assert (run / "report" / "index.html").is_file()
    assert not (run / "stages" / "kieval.one" / "shards").exists()
    assert json.loads((run / "stages" / "kieval.one" / "usage.json").read_text())["shards"] == 2
    assert "job " in (run / "stages" / "kieval.two" / "log.1.txt").read_text()
    third = submit(tmp_path, experiment())
    assert third.stdout.startswith("nothing to submit: 4 stages are done")
    # a changed option of one exam: the exam's items are not drawn again
    fourth = submit(tmp_path, experiment(), "-s", "candidates.three.model=q")
    assert list(submitted(fourth)) == ["kieval.three", "report"]
    wait_for_end()
    assert set(standing(run).values()) == {"done"}
    assert records(run).items() >= local.items()


def test_usr1_and_sigkill_in_mid_stage(cluster: Cluster, tmp_path: Path) -> None:
    value = experiment(seconds=0.25)
    run = do(tmp_path, value, "exam")
    jobs = submitted(submit(tmp_path, value))
    assert list(jobs) == ["kieval.one", "kieval.two", "report"]
    under_way(run, "kieval.one")
    subprocess.run(["scancel", "--signal=USR1", "--batch", jobs["kieval.one"]], check=True)
    under_way(run, "kieval.two")
    os.kill(holder(run, "kieval.two"), signal.SIGKILL)
    log = run / "stages" / "kieval.one" / "log.txt"
    wait_for(lambda: "restart 1" in log.read_text(), 120, "the job to start again")
    wait_for_end()
    assert set(standing(run).values()) == {"done"}
    assert "interrupted (exit code 75): back to the queue" in log.read_text()
    other = (run / "stages" / "kieval.two" / "log.txt").read_text()
    assert "interrupted (exit code 137): back to the queue" in other
    assert "restart 1" in other
    for stage in ("kieval.one", "kieval.two"):
        assert len(list((run / "ledger" / stage).glob("*.jsonl"))) == 2
        usage = json.loads((run / "stages" / stage / "usage.json").read_text())
        assert sum(role["replayed"] for role in usage["roles"].values()) > 0
    (tmp_path / "whole").mkdir()
    assert replies_only(records(run)) == replies_only(records(do(tmp_path / "whole", value)))


def test_a_job_asked_to_stop_again_and_again_gives_up(cluster: Cluster, tmp_path: Path) -> None:
    value = experiment(seconds=2.0, candidates={"one": {"model": "m"}})
    run = do(tmp_path, value, "exam")
    jobs = submitted(submit(tmp_path, value, max_requeues=0))
    wait_for(lambda: (run / "stages" / "kieval.one" / "LOCK").exists(), 120, "the interview to start")
    subprocess.run(["scancel", "--signal=USR1", "--batch", jobs["kieval.one"]], check=True)
    wait_for_end()
    assert job_state(jobs["kieval.one"]) == "FAILED"
    assert job_state(jobs["report"]) == "CANCELLED"
    lines = proctor("status", run).stdout
    assert re.search(r"kieval.one +failed .*interrupted again \(exit code 75\) after 0 restarts", lines), lines
    assert re.search(r"report +cancelled ", lines), lines


def test_the_loss_of_a_node(cluster: Cluster, tmp_path: Path) -> None:
    value = experiment(seconds=0.25, candidates={"one": {"model": "m"}})
    run = do(tmp_path, value, "exam")
    jobs = submitted(submit(tmp_path, value))
    under_way(run, "kieval.one")
    cluster.kill_node()
    wait_for(lambda: "down" in cluster.node_state(), 120, "SLURM to notice")
    cluster.start_node()
    wait_for_end()
    assert set(standing(run).values()) == {"done"}
    assert f"job {jobs['kieval.one']} on {cluster.host}, restart 1" in (run / "stages/kieval.one/log.txt").read_text()
    (tmp_path / "whole").mkdir()
    assert records(run) == records(do(tmp_path / "whole", value))


def test_a_failure_upstream_and_what_is_submitted_after_it(cluster: Cluster, tmp_path: Path) -> None:
    value = experiment()
    run = do(tmp_path, value, "exam")
    (run / "ledger").mkdir(exist_ok=True)
    (run / "ledger" / "kieval.one").write_text("in the way")
    jobs = submitted(submit(tmp_path, value))
    wait_for_end()
    assert standing(run) == {"exam": "done", "kieval.one": "failed", "kieval.two": "done", "report": "cancelled"}
    assert job_state(jobs["report"]) == "CANCELLED"
    line = next(line for line in proctor("status", run).stdout.splitlines() if line.startswith("kieval.one"))
    assert f"job {jobs['kieval.one']}" in line
    assert "| error: " in line
    (run / "ledger" / "kieval.one").unlink()
    assert list(submitted(submit(tmp_path, value))) == ["kieval.one", "report"]
    wait_for_end()
    assert set(standing(run).values()) == {"done"}


def test_cancel_keeps_what_was_computed(cluster: Cluster, tmp_path: Path) -> None:
    value = experiment(seconds=0.25, candidates={"one": {"model": "m"}, "two": {"model": "q"}})
    run = do(tmp_path, value, "exam")
    submitted(submit(tmp_path, value))
    under_way(run, "kieval.one")
    result = proctor("cancel", run, "--stage", "kieval.one")
    assert result.stdout.startswith("cancelled 2: kieval.one (job "), result.stdout + result.stderr
    assert "report (job " in result.stdout
    wait_for_end()
    assert standing(run) == {"exam": "done", "kieval.one": "cancelled", "kieval.two": "done", "report": "cancelled"}
    assert proctor("cancel", run).stdout.startswith("nothing to cancel")
    assert list(submitted(submit(tmp_path, value))) == ["kieval.one", "report"]
    wait_for_end()
    assert set(standing(run).values()) == {"done"}
    usage = json.loads((run / "stages" / "kieval.one" / "usage.json").read_text())
    assert sum(role["replayed"] for role in usage["roles"].values()) > 0


def test_two_jobs_of_the_same_stage(cluster: Cluster, tmp_path: Path) -> None:
    """A script submitted by hand beside its own job waits for it, then finds the work done."""
    value = experiment(seconds=0.25, candidates={"one": {"model": "m"}})
    run = do(tmp_path, value, "exam")
    submitted(submit(tmp_path, value))
    script = run / "slurm" / "kieval.one.sbatch"
    under_way(run, "kieval.one")
    extra = subprocess.run(["sbatch", "--parsable", str(script)], check=True, capture_output=True, text=True)
    wait_for_end()
    assert job_state(extra.stdout.strip()) == "COMPLETED"
    log = (run / "stages" / "kieval.one" / "log.txt").read_text()
    assert re.search(r"kieval.one is being run by process \d+ on \S+; .*: waiting", log), log
    assert "stage kieval.one is done already" in log
    assert len(list((run / "ledger" / "kieval.one").glob("*.jsonl"))) == 1


def test_a_lock_is_judged_by_its_job(cluster: Cluster, tmp_path: Path) -> None:
    """Of a process on another host only SLURM knows whether it is alive."""
    from proctor.run_folder.stage import StageBusy, StageFolder

    job = subprocess.run(
        ["sbatch", "--parsable", "--wrap=sleep 60", "--output=/dev/null"], check=True, capture_output=True, text=True
    ).stdout.strip()
    folder = StageFolder(tmp_path / "stage")
    folder.path.mkdir()
    lock = folder.path / "LOCK"
    lock.write_text(json.dumps({"host": "elsewhere", "pid": 1, "start": 1, "job": job}))
    old = time.time() - 3600
    os.utime(lock, (old, old))  # no heartbeat reaches us, but the job runs
    with pytest.raises(StageBusy, match="elsewhere"), folder.lock():
        pass
    subprocess.run(["scancel", job], check=True)
    wait_for(lambda: job not in queue(), 120, "the job to end")
    os.utime(lock)  # a heartbeat a moment ago, but the job is gone
    with folder.lock():
        assert json.loads(lock.read_text())["host"] != "elsewhere"
    lock.write_text(json.dumps({"host": "elsewhere", "pid": 1, "start": 1, "job": "999999"}))
    with folder.lock():  # a job that SLURM has forgotten
        pass
