"""The shipped experiments, and one run with the real model, inside a network of nothing but loopback."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from proctor.experiment.load import load_experiment
from proctor.runner.plan import plan
from tests.proctor.command import environment, proctor, write_experiment

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "configs" / "experiments"


def test_the_demo_leaks_half_of_its_items(smollm: Path) -> None:
    result = proctor("run", CONFIGS / "demo.yaml", "--dry-run", "--out", "nowhere")
    assert result.returncode == 0, result.stderr
    assert "64 items, 32 leak" in result.stdout


def test_the_papers_experiment_is_well_formed() -> None:
    experiment = load_experiment(CONFIGS / "kieval_contamination.yaml")
    assert {c.recipe for c in experiment.candidates.values()} >= {"normal", "pt_cheater", "sft_cheater"}
    assert experiment.models["examiner"].tensor_parallel == 4
    kieval = experiment.exams["kieval"]
    assert (kieval.options["rounds"], kieval.limit) == (5, 200)
    assert "zero3" in json.dumps(experiment.training)


@pytest.mark.real
@pytest.mark.slow
def test_small_run_without_a_network(smollm: Path, tmp_path: Path) -> None:
    """``proctor run`` on the demo, cut small: vLLM where it is installed, no route to anywhere."""
    value = yaml.safe_load((CONFIGS / "demo.yaml").read_text(encoding="utf-8"))
    value["benchmark"]["limit"] = 8
    value["training"] |= {"repeats": 1, "chat_rows": 4}
    value["candidates"] = {"pt_cheater": {"recipe": "pt_cheater"}}
    value["exams"]["kieval"] |= {"limit": 2, "candidates": ["pt_cheater"]}
    value["exams"]["kieval"]["options"]["rounds"] = 1
    value["detection"]["formats"] = ["as_trained"]
    file = write_experiment(tmp_path, value)
    command = [sys.executable, "-P", "-m", "proctor.cli", "run", str(file), "--out", str(tmp_path / "out")]
    probe = ["unshare", "-rn", "ip", "link", "set", "lo", "up"]
    isolated = bool(shutil.which("unshare")) and subprocess.run(probe, capture_output=True).returncode == 0
    if isolated:
        command = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]
    result = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=900)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    summary = json.loads((tmp_path / "out" / "report" / "summary.json").read_text())
    row = summary["candidates"]["pt_cheater"]
    assert row["kieval"] is not None
    assert row["detection"]["min_k@20"]["n"] == 8
    rows = [json.loads(x) for x in (tmp_path / "out/stages/kieval.pt_cheater/records.jsonl").read_text().splitlines()]
    assert len(rows) == 4
    assert all(turn["verdict"] for record in rows for turn in record["rounds"]), "structured verdicts always parse"
    if not isolated:
        pytest.skip("passed, but with the network in reach: 'unshare -rn' with 'ip' (iproute2) is not possible here")


def test_plan_order() -> None:
    stages = plan(load_experiment(CONFIGS / "demo.yaml"))
    seen: set[str] = set()
    for stage in stages:
        assert set(stage.needs) <= seen
        seen.add(stage.name)
