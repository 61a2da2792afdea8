"""From stages to jobs: the paper's experiment on three kinds of cluster, and what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.cluster import serve_jobs as serving_jobs
from proctor.cluster.fit import check_environment, check_fit, check_space
from proctor.cluster.jobs import submitted
from proctor.cluster.serve_jobs import serve_intents, served_together, still_needed
from proctor.cluster.submit import (
    check_names,
    check_unchanged,
    intents,
    jobs_for,
    missing_servers,
    placement,
    planned,
    serve_jobs,
    submit,
    write_scripts,
)
from proctor.experiment.experiment import Experiment
from proctor.experiment.load import load_experiment, resolve
from proctor.run_folder.run import RunFolder
from proctor.run_folder.stage import StageFolder
from proctor.runner.one_stage import do_shard
from proctor.runner.plan import plan
from proctor.stages.base import Stage
from serving.endpoint import Endpoint, failure_file, write_failure
from slurm import submitter
from slurm.job import Job
from slurm.profile import Profile, read_profile
from slurm.script import render
from slurm.submitter import Entry
from tests.fixtures.tiny import make_model
from tests.proctor.command import proctor, records, write_experiment
from tests.proctor.scripted import do, scripted

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "configs" / "experiments" / "kieval_contamination.yaml"
TWO_NODES = (
    "models.examiner.pipeline_parallel=2",
    *(
        f"training.{phase}.{key}"
        for phase in ("leak", "chat_sft")
        for key in ("nodes=2", "rendezvous=auto", "gradient_accumulation=2")
    ),
)


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Small stand-ins at the paper's paths."""
    folder = tmp_path_factory.mktemp("paper")
    for name in ("Llama-2-7b-hf", "Llama-2-70b-chat-hf"):
        make_model(folder / name)
    (folder / "ARC-Challenge").mkdir()
    choices = [{"text": text, "label": label} for text, label in zip("wxyz", "ABCD", strict=True)]
    for split in ("Test", "Train"):
        rows = [
            {"id": f"{split}{i}", "question": {"stem": f"{split} question {i}?", "choices": choices}, "answerKey": "A"}
            for i in range(8)
        ]
        file = folder / "ARC-Challenge" / f"ARC-Challenge-{split}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    chat = [{"id": "1", "conversations": [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Hi"}]}]
    (folder / "sharegpt.json").write_text(json.dumps(chat))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROCTOR_MODELS", str(folder))
        patch.setenv("PROCTOR_BENCHMARKS", str(folder))
        yield


def jobs(profile: str, *overrides: str) -> dict[str, Job]:
    experiment = load_experiment(PAPER, overrides)
    site = read_profile(ROOT / "slurm" / "profiles" / profile)
    stages = plan(experiment)
    check_names(stages, site)
    run = RunFolder(Path("/run"), experiment)
    found = {job.name: job for stage in stages for job in jobs_for(run, stage, site)}
    for job in found.values():
        assert render(job, site, run=run.path, prefix=experiment.name).startswith("#!/bin/bash\n")
    return found


def test_the_paper_on_four_gpus(paper: None) -> None:
    found = jobs("a100_4.yaml")
    assert len(found) == 23
    assert {found[name].gpus for name in ("exam", "report")} == {0}
    assert {(job.nodes, job.gpus, job.spread) for name, job in found.items() if name.startswith("train.")} == {
        (1, 4, "first")
    }
    assert (found["kieval.normal"].gpus, found["static.normal"].gpus, found["detect.base"].gpus) == (4, 1, 1)
    assert found["kieval.pt_cheater"].needs == ("exam", "train.pt_cheater")
    assert set(found["report"].needs) == set(found) - {"report"}


def test_the_paper_on_eight_gpus(paper: None) -> None:
    found = jobs("a100_8.yaml")
    array, merge = found["kieval.normal.shards"], found["kieval.normal"]
    assert (array.shards, array.gpus, array.needs) == (2, 4, ("exam", "train.normal"))
    assert (merge.shards, merge.gpus, merge.needs) == (0, 0, ("kieval.normal.shards",))
    assert merge.command[-2:] == ("--merge", "2")
    assert "kieval.normal" in found["report"].needs
    assert "static.normal.shards" not in found


def test_the_paper_on_two_nodes(paper: None) -> None:
    found = jobs("a100_2x4.yaml", *TWO_NODES)
    train, interview = found["train.pt_cheater"], found["kieval.normal"]
    assert (train.nodes, train.gpus, train.spread) == (2, 4, "every")
    assert (interview.nodes, interview.gpus, interview.spread) == (2, 4, "ray")
    assert (found["static.base"].nodes, found["static.base"].gpus) == (1, 1)


def test_what_the_nodes_can_not_hold_is_refused(paper: None) -> None:
    with pytest.raises(ValueError, match=r"stage kieval\.normal needs 8 GPUs .* a job may have 1 node\(s\) of 4"):
        jobs("a100_4.yaml", "models.examiner.tensor_parallel=8")
    with pytest.raises(ValueError, match="trains on 2 nodes, and a job of this profile may span 1"):
        jobs("a100_4.yaml", *TWO_NODES)
    with pytest.raises(ValueError, match="trains with 8 processes on one node, and a node has 4 GPUs"):
        jobs("a100_4.yaml", "training.leak.processes=8", "training.leak.gradient_accumulation=2")
    with pytest.raises(ValueError, match="needs 6 GPUs, which 2 nodes of 4 can't share evenly"):
        jobs("a100_2x4.yaml", "models.examiner.tensor_parallel=6")
    with pytest.raises(ValueError, match="set rendezvous"):
        jobs("a100_2x4.yaml", "training.leak.nodes=2", "training.leak.gradient_accumulation=2")


def test_memory(paper: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of Llama-2-70B: 137.95 GB of weights, 320 KiB of cache per token (80 layers, 8 heads of 128)."""
    from proctor.cluster import fit as cluster_preflight

    monkeypatch.setattr(cluster_preflight, "weight_bytes", lambda folder, spec: 137.95e9)
    monkeypatch.setattr(cluster_preflight, "cache_bytes", lambda folder: 2 * 80 * 8 * 128 * 2)
    monkeypatch.setattr(cluster_preflight, "_check_training", lambda *arguments: None)
    experiment = load_experiment(PAPER).model_copy(update={"base": "examiner", "candidates": {}})
    # 137.95e9 / 4 GPUs = 32.119 GiB, 320 KiB x 4096 / 4 = 0.3 GiB, 3 GiB: 35.4 of 0.5 x 80 GiB;
    # (40 - 32.119 - 3) GiB / 80 KiB = 63976 tokens
    notes = check_fit(experiment, Profile(gpus_per_node=4, gpu_memory_gib=80))
    assert notes == [
        "models.examiner: the cache holds about 63976 tokens, 15 sequences of 4096; of max_num_seqs 200 some will wait "
        "when all are long"
    ]
    with pytest.raises(ValueError, match=r"weights of 32\.1 GiB per GPU, 0\.3 GiB of cache .* memory_share 0\.5 of 40"):
        check_fit(experiment, Profile(gpus_per_node=4, gpu_memory_gib=40))
    assert check_fit(experiment, Profile(gpus_per_node=4)) == []


def test_cache_of_a_token(tmp_path: Path) -> None:
    from proctor.cluster.fit import cache_bytes

    config = {"num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "hidden_size": 8192}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert cache_bytes(tmp_path) == 327_680
    (tmp_path / "config.json").write_text("{}")
    assert cache_bytes(tmp_path) == 0


def test_the_environment_is_tried() -> None:
    check_environment(Profile(setup=("export A=1",)), [])
    with pytest.raises(ValueError, match=r"can't import proctor\.cli: .*no-such"):
        check_environment(Profile(setup=("source /no-such/activate",)), [])
    with pytest.raises(ValueError, match="No module named 'proctor'"):
        check_environment(Profile(setup=("unset PYTHONPATH",), python="/usr/bin/python3"), [])
    check_environment(Profile(container=("no-such-program",)), [])


def test_room_on_disk(paper: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from proctor.cluster import fit as cluster_preflight

    experiment = load_experiment(PAPER)
    check_space(tmp_path / "run", experiment)
    monkeypatch.setattr(cluster_preflight, "weight_bytes", lambda folder, spec: 1e15)
    with pytest.raises(ValueError, match="3 trained candidates with two checkpoints may take"):
        check_space(tmp_path / "run", experiment)


def small(**changes: Any) -> dict[str, Any]:
    exams = {"kieval": {"protocol": "kieval", "limit": 3, "wave": 2, "options": {"rounds": 1}}}
    return scripted(exams=exams, candidates={"one": {"model": "m"}}, detection=None, **changes)


def test_names_in_the_profile(tmp_path: Path) -> None:
    stages = plan(Experiment.model_validate(small()))
    check_names(stages, Profile(shards={"kieval": 2}, stages={"merge": {"cpus": 1}, "kieval.one.shards": {"cpus": 2}}))
    with pytest.raises(ValueError, match=r"shards\.exam: no exam of that name; there are: kieval, kieval\.one"):
        check_names(stages, Profile(shards={"exam": 2}))
    with pytest.raises(ValueError, match=r"stages\.kievel: no stage of that name"):
        check_names(stages, Profile(stages={"kievel": {"cpus": 1}}))
    assert placement(stages[1], Profile(gpus_per_node=0)) == (1, 0, "first")


def test_only_missing_shards_are_planned(tmp_path: Path) -> None:
    value = small()
    path = do(tmp_path, value, "exam")
    run = RunFolder(path, resolve(Experiment.model_validate(value)))
    stages = plan(run.experiment)
    site = Profile(shards={"kieval": 3})
    assert [one.action for one in planned(run, stages, site, {})] == ["done", "submit", "submit"]
    assert planned(run, stages, site, {})[1].array is None
    assert do_shard(run, "kieval.one", 1, 3)
    assert not do_shard(run, "kieval.one", 1, 3)
    assert planned(run, stages, site, {})[1].array == "0,2"
    do_shard(run, "kieval.one", 0, 3)
    do_shard(run, "kieval.one", 2, 3)
    assert [job.name for job in planned(run, stages, site, {})[1].jobs] == ["kieval.one"]


@pytest.mark.parametrize("count", [2, 7])
def test_shards_make_the_records_of_the_whole(count: int, tmp_path: Path) -> None:
    """Six items in waves of two; of seven shards four are empty."""
    from proctor.runner.one_stage import do_stage

    value = small()
    path = do(tmp_path, value, "exam")
    run = RunFolder(path, resolve(Experiment.model_validate(value)))
    with pytest.raises(ValueError, match=f"shards 0, .* of {count} are not done"):
        do_stage(run, "kieval.one", merge=count)
    for index in reversed(range(count)):
        do_shard(run, "kieval.one", index, count)
    do_stage(run, "kieval.one", merge=count)
    (tmp_path / "whole").mkdir()
    whole = do(tmp_path / "whole", value, "exam", "kieval.one")
    assert records(path) == records(whole)
    for name in ("metrics.json", "DONE"):
        mine, theirs = (folder / "stages" / "kieval.one" / name for folder in (path, whole))
        assert mine.read_bytes() == theirs.read_bytes()
    with pytest.raises(ValueError, match="can't be split"):
        do_shard(run, "report", 0, 2)
    with pytest.raises(ValueError, match="must lie in"):
        do_shard(run, "kieval.one", 2, 2)


def test_intents_follow_the_stages_upstream() -> None:
    before = intents(plan(Experiment.model_validate(small())))
    after = intents(plan(Experiment.model_validate(small(seed=1))))
    assert before.keys() == after.keys() == {"exam", "kieval.one", "report"}
    assert not before.items() & after.items()


def umask() -> int:
    former = os.umask(0o022)
    os.umask(former)
    return former


def test_dry_run_writes_scripts_and_submits_nothing(tmp_path: Path) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text("{partition: main, gpus_per_node: 2}")
    file = write_experiment(tmp_path, small())
    result = proctor("submit", file, "--profile", profile, "--out", tmp_path / "a run", "--dry-run")
    assert result.returncode == 0, result.stderr
    scripts = sorted(path.name for path in (tmp_path / "a run" / "slurm").iterdir())
    assert scripts == ["exam.sbatch", "kieval.one.sbatch", "report.sbatch"]
    assert (tmp_path / "a run").stat().st_mode & 0o777 == 0o700
    for name in scripts:
        assert (tmp_path / "a run" / "slurm" / name).read_text() in result.stdout
    profile.write_text("{partition: main, gpus_per_node: 2, share: true}")
    assert proctor("submit", file, "--profile", profile, "--out", tmp_path / "a run", "--dry-run").returncode == 0
    assert (tmp_path / "a run").stat().st_mode & 0o777 == 0o777 & ~umask()
    many = {"m": {"path": "none", "engine": "scripted", "tensor_parallel": 4}}
    file = write_experiment(tmp_path, small(models=many))
    result = proctor("submit", file, "--profile", profile, "--out", tmp_path / "other", "--dry-run")
    assert result.returncode == 2
    assert "stage kieval.one needs 4 GPUs" in result.stderr
    assert not (tmp_path / "other").exists()


def served(tmp_path: Path, **changes: Any) -> RunFolder:
    """Two candidates before a served judge; its files are never read here."""
    judge = {"path": "judge", "engine": "server", "tensor_parallel": 2}
    models = {"m": {"path": "none", "engine": "scripted"}, "judge": judge}
    value = small(models=models, roles={"interactor": "judge", "evaluator": "judge"}, mode="fast", **changes)
    value["candidates"] = {"one": {"model": "m"}, "two": {"model": "m"}}
    return RunFolder(tmp_path / "run", Experiment.model_validate(value))


def fake_stages(run: RunFolder, *names: str, **needs: tuple[str, ...]) -> list[Stage]:
    return [
        Stage(
            name=name,
            needs=needs.get(name.replace(".", "_"), ()),
            version=1,
            config={},
            body=lambda run, folder, report: [],
        )
        for name in names
    ]


def test_a_served_model_is_a_job_that_its_askers_come_after(tmp_path: Path) -> None:
    run = served(tmp_path)
    names = ("exam", "train.one", "kieval.one", "kieval.two", "report")
    needs = {"train_one": ("exam",), "kieval_one": ("exam", "train.one"), "kieval_two": ("exam",)}
    stages = fake_stages(run, *names, **needs, report=("kieval.one", "kieval.two"))
    site = Profile(gpus_per_node=2, serve_host="10.1.2.3", stages={"serve": {"time": "1:00:00"}, "serve.judge": {}})
    check_names(stages, site)
    jobs = serve_jobs(run, stages, site)
    assert list(jobs) == ["serve.judge"]
    job = jobs["serve.judge"]
    assert job.needs == ("exam",)  # training is waited for by one of them only
    assert (job.gpus, job.kind, job.nodes) == (2, "serve", 1)
    assert job.command[3:] == ("proctor.cli", "serve", "judge", "--run", str(run.path), "--host", "10.1.2.3")
    assert job.log == run.path / "serving" / "serve.judge.txt"
    text = render(job, site, run=run.path, prefix="demo")
    assert "#SBATCH --time=1:00:00\n" in text
    assert "#SBATCH --gres=gpu:2\n" in text
    by_stage = {stage.name: jobs_for(run, stage, site)[0] for stage in stages}
    asking = {name for name, one in by_stage.items() if one.servers}
    assert asking == {"kieval.one", "kieval.two"}
    assert by_stage["kieval.one"].servers == ("serve.judge",)
    script = render(by_stage["kieval.one"], site, run=run.path, prefix="demo")
    assert "# Asks serve.judge: starts after it has started" in script
    with pytest.raises(ValueError, match=r"serve\.judge needs 2 GPUs .* one node, which has 1"):
        serve_jobs(run, stages, Profile(gpus_per_node=1))


def test_adapters_of_a_base_share_a_job_and_an_endpoint_needs_none(tmp_path: Path) -> None:
    base = {"path": "b", "engine": "server"}
    models = {
        "m": {"path": "none", "engine": "scripted"},
        "x": {**base, "adapter": "x"},
        "y": {**base, "adapter": "y", "patience": 5.0},
        "wide": {**base, "adapter": "z", "max_num_seqs": 3},
        "theirs": {**base, "endpoint": "/elsewhere/theirs.json"},
        "plain": base,
    }
    run = RunFolder(tmp_path, Experiment.model_validate(small(models=models)))
    assert served_together(run) == {"serve.x": ("x", "y"), "serve.wide": ("wide",), "serve.plain": ("plain",)}
    assert serve_intents(run)["serve.x"] != serve_intents(run)["serve.wide"]
    assert serve_jobs(run, fake_stages(run, "kieval.one"), Profile()) == {}  # nobody asks them


def test_servers_are_submitted_before_their_askers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An asker waits for its needs' end and the server's start; a failure of the former server is forgotten."""
    run = served(tmp_path)
    stages = fake_stages(run, "exam", "kieval.one", "kieval.two", kieval_one=("exam",), kieval_two=("exam",))
    site = Profile(gpus_per_node=2)
    plans = planned(run, stages, site, {})
    servers = missing_servers(run, plans, site, {})
    assert [job.name for job in servers] == ["serve.judge"]
    scripts = write_scripts(run, plans, site, servers)
    endpoint = run.path / "serving" / "judge.json"
    write_failure(endpoint, "no memory")
    sent: list[tuple[str, list[str], list[str]]] = []

    def send(script: Path, after: list[str], started: list[str]) -> str:
        sent.append((script.stem, after, started))
        return str(len(sent))

    monkeypatch.setattr(submitter, "submit", send)
    submit(run, plans, scripts, {}, servers)
    assert sent == [
        ("exam", [], []),
        ("serve.judge", ["1"], []),
        ("kieval.one", ["1"], ["2"]),
        ("kieval.two", ["1"], ["2"]),
    ]
    assert not failure_file(endpoint).exists()
    active = submitted(run.path)
    check_unchanged(active, {**intents(stages), **serve_intents(run)}, run.path)
    assert missing_servers(run, plans, site, active) == []
    Endpoint(url="http://127.0.0.1:1/v1", fingerprint="f", mode="fast", device="cpu", ended=True).write(endpoint)
    assert [job.name for job in missing_servers(run, plans, site, active)] == ["serve.judge"]
    other = served(tmp_path, seed=0)
    models = {
        **other.experiment.models,
        "judge": other.experiment.models["judge"].model_copy(update={"dtype": "float32"}),
    }
    changed = RunFolder(run.path, other.experiment.model_copy(update={"models": models}))
    with pytest.raises(ValueError, match=r"serve\.judge\) is still queued or running .* --stage serve\.judge"):
        check_unchanged(active, {**intents(stages), **serve_intents(changed)}, run.path)


def test_a_server_ends_when_its_askers_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not done, but neither queued nor running: nobody will ask. Told only inside the job that was submitted."""
    run = served(tmp_path)
    monkeypatch.setattr(serving_jobs, "needing", lambda run, models: ["kieval.one", "kieval.two"])
    folder = run.path / "slurm"
    folder.mkdir(parents=True)
    for number, name in enumerate(("serve.judge", "kieval.one", "kieval.two.shards"), 1):
        row = {"job": str(number), "intent": "", "shards": 0, "time": ""}
        (folder / f"{name}.json").write_text(json.dumps(row))
    states = {"1": "RUNNING", "2": "FAILED", "3": "PENDING"}
    monkeypatch.setattr(
        submitter, "entries", lambda jobs: {job: [Entry(job=job, task="", state=states[job])] for job in jobs}
    )
    both = ["kieval.one", "kieval.two"]
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert still_needed(run, ["judge"]) == both
    monkeypatch.setenv("SLURM_JOB_ID", "9")  # a job that somebody wrote himself
    assert still_needed(run, ["judge"]) == both
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert still_needed(run, ["judge"]) == ["kieval.two"]
    states["3"] = "CANCELLED"
    assert still_needed(run, ["judge"]) == []
    with StageFolder(run.path).lock():  # more jobs are being submitted
        assert still_needed(run, ["judge"]) == both

    def refuses(jobs: list[str]) -> None:
        raise submitter.SlurmError("down")

    monkeypatch.setattr(submitter, "entries", refuses)
    assert still_needed(run, ["judge"]) == both
