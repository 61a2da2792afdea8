"""Profiles, scripts and what SLURM's commands print, without a cluster."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from slurm.job import Job
from slurm.profile import Profile, read_profile
from slurm.script import render
from slurm.submitter import Entry, _parse_accounts, _parse_queue, submit

PROFILES = Path(__file__).parents[2] / "slurm" / "profiles"
RUN = Path("/shared/my runs/one")
FULL = Profile(
    partition="gpu",
    account="lab",
    qos="long",
    constraint="a100&nvlink",
    gpus_per_node=4,
    gpu_type="a100",
    nodes=2,
    memory="8G",
    cpus_per_gpu=6,
    memory_per_gpu="60G",
    modules=("cuda/12.8", "it's"),
    setup=('source "$HOME/venv/bin/activate"',),
    container=("apptainer", "exec", "--nv", "/shared/an image.sif"),
    srun=("--mpi=none",),
    scratch="$SLURM_TMPDIR",
    cache="/shared/cache of mine",
    environment={"NCCL_DEBUG": "WARN; rm -rf x"},
    directives=("--mail-type=FAIL",),
    shards_at_once=4,
    stages={"train": {"time": "2-00:00:00", "partition": "long"}, "train.x": {"cpus": 3}},
)


def job(**changes: object) -> Job:
    value = {"name": "train.x", "kind": "train", "command": ("python", "-m", "x", str(RUN)), "log": RUN / "log.txt"}
    return Job(**{**value, "gpus": 4, **changes})  # type: ignore[arg-type]


def directives(text: str) -> list[str]:
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH ")]


def test_resources_come_from_the_profile_and_its_stages() -> None:
    lines = directives(render(job(), FULL, run=RUN, prefix="demo"))
    assert lines == [
        "--job-name=demo.train.x",
        '--chdir="/shared/my runs/one"',
        '--output="/shared/my runs/one/log.txt"',
        "--open-mode=append",
        "--partition=long",
        "--account=lab",
        "--qos=long",
        "--constraint=a100&nvlink",
        "--time=2-00:00:00",
        "--nodes=1",
        "--ntasks-per-node=1",
        "--cpus-per-task=3",
        "--mem=240G",
        "--gres=gpu:a100:4",
        "--requeue",
        "--signal=B:USR1@120",
        "--mail-type=FAIL",
    ]
    lines = directives(render(job(name="report", kind="report", gpus=0), FULL, run=RUN, prefix="demo"))
    assert "--mem=8G" in lines
    assert "--cpus-per-task=4" in lines
    assert not any(line.startswith("--gres") for line in lines)


def test_arrays() -> None:
    text = render(job(name="kieval.x.shards", kind="kieval", shards=8), FULL, run=RUN, prefix="demo")
    assert "--array=0-7%4" in directives(text)
    assert 'command+=(--shard "$SLURM_ARRAY_TASK_ID/8")' in text
    assert 'scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"' in text
    text = render(job(kind="kieval", shards=8), FULL, run=RUN, prefix="demo", array="2,5")
    assert "--array=2,5%4" in directives(text)


@pytest.mark.parametrize(
    "changes",
    [{}, {"shards": 3}, {"gpus": 0}, {"nodes": 2, "spread": "every"}, {"nodes": 2, "spread": "ray"}],
    ids=["plain", "array", "cpu", "training on two nodes", "a model on two nodes"],
)
def test_scripts_are_clean(changes: dict[str, object], tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed (apt-get install shellcheck)")
    for site in (FULL, Profile(), *map(read_profile, sorted(PROFILES.glob("*.yaml")))):
        file = tmp_path / "job.sbatch"
        file.write_text(render(job(**changes), site, run=RUN, prefix="demo"))
        checked = subprocess.run(["shellcheck", "--shell=bash", file], capture_output=True, text=True)
        assert not checked.stdout, checked.stdout
        lines = file.read_text().splitlines()
        assert lines[0] == "#!/bin/bash"
        assert not any(line.endswith(" ") for line in lines)
        first = next(number for number, line in enumerate(lines) if line and not line.startswith("#"))
        assert not any(line.startswith("#SBATCH") for line in lines[first:])  # SLURM stops reading there


def test_what_the_profile_says_is_not_run_by_bash(tmp_path: Path) -> None:
    """Values are quoted; only variables of scratch and cache are expanded, on the node."""
    text = render(job(), FULL, run=RUN, prefix="demo")
    assert "export NCCL_DEBUG='WARN; rm -rf x'" in text
    assert 'export TMPDIR="$SLURM_TMPDIR"' in text
    assert """  module load 'it'"'"'s'""" in text
    assert "command=(apptainer exec --nv '/shared/an image.sif' python -m x '/shared/my runs/one')" in text
    for wrong in ("$(id)", "`id`", 'a"b', "a\nb"):
        with pytest.raises(ValueError, match="may hold variables"):
            render(job(), Profile(scratch=wrong), run=RUN, prefix="demo")
    with pytest.raises(ValueError, match="can't stand in an sbatch script"):
        render(job(log=Path('/a"b')), FULL, run=RUN, prefix="demo")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("partiton: gpu\n", r"unknown key 'partiton'; did you mean 'partition'\?"),
        ("time: 24:00:00\n", r"time: .*\"24:00:00\".*given: 86400"),
        ("time: tomorrow\n", r"time: .*hours:minutes:seconds.*given: 'tomorrow'"),
        ("memory: 64 gigabytes\n", r"memory: .*e\.g\. \"64G\""),
        ("partition: 'gpu\n#SBATCH --uid=0'\n", "partition: "),
        ("stages: {train: {tme: '1'}}\n", r"unknown key 'stages\.train\.tme'; did you mean 'time'"),
        ("shards: {kieval: 1}\n", "an array has 2 to 1000 shards"),
        ("directives: [exclusive]\n", "write e.g. --exclusive"),
        ("- a\n", "must hold keys"),
        ("a: [\n", "can't be read"),
        ("gpus_per_node: -1\n", "gpus_per_node: "),
    ],
)
def test_a_wrong_profile_is_explained(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "profile.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_profile(file)
    assert str(file) in str(caught.value)
    with pytest.raises(ValueError, match="does not exist"):
        read_profile(tmp_path / "none.yaml")


def test_what_squeue_and_sacct_print() -> None:
    assert _parse_queue("7|N/A|RUNNING|1:02|node3|None\n8|2-7|PENDING|0:00||Dependency\nnoise\n") == [
        Entry(job="7", task="", state="RUNNING", elapsed="1:02", node="node3", reason="None"),
        Entry(job="8", task="2-7", state="PENDING", elapsed="0:00", node="", reason="Dependency"),
    ]
    text = (
        "7|CANCELLED by 1000|00:01:02|node3|0:0\n7.batch|FAILED|1|n|1:0\n8_3|FAILED|00:00:05|n1|2:0\n"
        "9_[4-7]|PENDING|0|None assigned|0:0\n"
    )
    assert _parse_accounts(text) == [
        Entry(job="7", task="", state="CANCELLED", elapsed="00:01:02", node="node3", reason=""),
        Entry(job="8", task="3", state="FAILED", elapsed="00:00:05", node="n1", reason="exit code 2"),
        Entry(job="9", task="4-7", state="PENDING", elapsed="0", node="", reason=""),
    ]


def test_without_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="sbatch is not on this machine; run this on a login node"):
        submit(tmp_path / "x.sbatch")
