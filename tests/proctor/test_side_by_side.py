"""``proctor run --gpus``: independent stages at the same time on devices of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proctor.experiment.experiment import Experiment
from proctor.runner.plan import plan
from proctor.runner.several_gpus import check_devices, read_devices
from tests.proctor.command import proctor, records, write_experiment
from tests.proctor.scripted import do, scripted


def test_two_candidates_sit_their_exams_together(tmp_path: Path) -> None:
    value = scripted(detection=None, exams={"kieval": {"protocol": "kieval", "limit": 2, "options": {"rounds": 2}}})
    result = proctor("run", write_experiment(tmp_path, value), "--out", tmp_path / "run", "--gpus", "4,7")
    assert result.returncode == 0, result.stdout + result.stderr
    lines = [line for line in result.stdout.splitlines() if re.match(r"\S+: (started|done)", line)]
    assert lines[:4] == [
        "exam: started on GPUs none",
        lines[1],
        "kieval.one: started on GPUs 4",
        "kieval.two: started on GPUs 7",
    ]
    # an exam's outputs count as soon as they are whole, even if its process has yet to end
    assert lines.index("report: started on GPUs none") > 3
    assert lines[-1].startswith("report: done")
    for stage, device in (("one", "4"), ("two", "7")):
        log = (tmp_path / "run" / "stages" / f"kieval.{stage}" / "log.txt").read_text()
        assert re.match(rf"--- \S+ kieval.{stage} on GPUs {device}\n", log)
    (tmp_path / "local").mkdir()
    assert records(tmp_path / "run") == records(do(tmp_path / "local", value))


def test_one_fails_and_the_other_finishes(tmp_path: Path) -> None:
    value = scripted(detection=None, exams={"static": {"protocol": "static"}})
    run = do(tmp_path, value, "exam")
    (run / "ledger").mkdir(exist_ok=True)
    (run / "ledger" / "static.one").write_text("in the way")
    result = proctor("run", write_experiment(tmp_path, value), "--out", run, "--gpus", "0,1")
    assert result.returncode != 0
    assert "stage static.one failed" in result.stderr
    assert "static.two: done in" in result.stdout
    assert "report" not in result.stdout
    (run / "ledger" / "static.one").unlink()
    result = proctor("run", write_experiment(tmp_path, value), "--out", run, "--gpus", "0,1")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "static.two" not in "".join(line for line in result.stdout.splitlines() if "started" in line)


def test_devices_that_do_not_do(tmp_path: Path) -> None:
    assert read_devices("0, 1") == ("0", "1")
    assert read_devices("GPU-5d1f") == ("GPU-5d1f",)
    for wrong in ("", "0,,1", ","):
        with pytest.raises(ValueError, match="must name devices"):
            read_devices(wrong)
    with pytest.raises(ValueError, match="twice"):
        read_devices("0,0")
    models = {"m": {"path": "none", "engine": "scripted", "tensor_parallel": 4}}
    experiment = Experiment.model_validate(scripted(models=models, candidates={"one": {"model": "m"}}))
    with pytest.raises(ValueError, match=r"stage static\.one needs 4 GPUs, and --gpus names 2"):
        check_devices(plan(experiment), ("0", "1"))
    check_devices(plan(experiment), ("0", "1", "2", "3"))
