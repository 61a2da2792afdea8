"""What a user can get wrong: one clear message, exit code 2, and nothing written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.proctor.command import experiment, proctor, write_experiment

ROWS = [
    {"question": f"What is {i} plus {i}?", "choices": [str(2 * i), str(2 * i + 1), "7000"], "answer": "A"}
    for i in range(6)
]


def refused(folder: Path, value: dict[str, Any], *parts: str) -> None:
    """The run is refused with exit code 2, the message holds the parts, and no run folder appears."""
    file = write_experiment(folder, value)
    result = proctor("run", file, "--out", folder / "out", cwd=folder)
    assert result.returncode == 2, result.stderr
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr
    assert not (folder / "out").exists()


def benchmark(folder: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    path = folder / "bench.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {"format": "jsonl", "path": str(path)}


def test_missing_model_folder(tmp_path: Path) -> None:
    refused(tmp_path, experiment(tmp_path / "nowhere"), "models.m", "nowhere", "does not exist")


def test_pickled_weights(tmp_path: Path) -> None:
    folder = tmp_path / "pickled"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    (folder / "pytorch_model.bin").write_bytes(b"x")
    refused(tmp_path, experiment(folder), "pickled weights", "pytorch_model.bin", "safetensors")


def test_unknown_key_names_the_nearest(tmp_path: Path, tiny_model: Path) -> None:
    refused(tmp_path, experiment(tiny_model, benchmrk={}), "unknown key 'benchmrk'", "did you mean 'benchmark'")
    value = experiment(tiny_model)
    value["exams"]["static"]["protocl"] = "static"
    refused(tmp_path, value, "exams.static.protocl", "did you mean 'protocol'")
    value = experiment(tiny_model)
    value["training"]["repeets"] = 1
    refused(tmp_path, value, "repeets", "repeats")


def test_row_without_a_key(tmp_path: Path, tiny_model: Path) -> None:
    rows = [*ROWS, {"question": "And now, without a key?", "choices": ["a", "b"]}]
    refused(tmp_path, experiment(tiny_model, benchmark=benchmark(tmp_path, rows)), "bench.jsonl", "7", "answer")


def test_key_outside_the_options(tmp_path: Path, tiny_model: Path) -> None:
    rows = [*ROWS, {"question": "And a key beyond?", "choices": ["a", "b"], "answer": "D"}]
    refused(tmp_path, experiment(tiny_model, benchmark=benchmark(tmp_path, rows)), "bench.jsonl", "7", "D")


def test_empty_benchmark(tmp_path: Path, tiny_model: Path) -> None:
    refused(tmp_path, experiment(tiny_model, benchmark=benchmark(tmp_path, [])), "bench.jsonl", "empty")


def test_duplicate_items(tmp_path: Path, tiny_model: Path) -> None:
    refused(tmp_path, experiment(tiny_model, benchmark=benchmark(tmp_path, [*ROWS, ROWS[0]])), "1 duplicate items", "7")


def test_more_exemplars_than_there_are(tmp_path: Path, tiny_model: Path) -> None:
    value = experiment(tiny_model)
    value["exams"]["static"]["options"] = {"shots": 60}
    refused(tmp_path, value, "exams.static", "asked for 60 exemplars")


def test_output_folder_of_another_experiment(tmp_path: Path, tiny_model: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "experiment.yaml").write_text("name: another\n", encoding="utf-8")
    file = write_experiment(tmp_path, experiment(tiny_model))
    result = proctor("run", file, "--out", out)
    assert result.returncode == 2
    assert "belongs to the experiment 'another'" in result.stderr
    assert sorted(path.name for path in out.iterdir()) == ["experiment.yaml"]


def test_output_folder_with_other_files(tmp_path: Path, tiny_model: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("x", encoding="utf-8")
    result = proctor("run", write_experiment(tmp_path, experiment(tiny_model)), "--out", out)
    assert result.returncode == 2
    assert "is not a run folder" in result.stderr
    assert sorted(path.name for path in out.iterdir()) == ["thesis.txt"]


def test_context_longer_than_the_models(tmp_path: Path, tiny_model: Path) -> None:
    value = experiment(tiny_model)
    value["models"]["m"]["max_length"] = 100_000
    refused(tmp_path, value, "max_length is 100000", "context of 4096", "at most 4096")


def test_a_missing_base_says_what_it_is(tmp_path: Path, tiny_model: Path) -> None:
    value = experiment(tiny_model)
    del value["base"]
    refused(tmp_path, value, "key 'base' is missing: an entry of models that candidates are trained from")


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"base": "n"}, ("base: 'n' is not an entry of models; there are: m",)),
        ({"roles": {"interactor": "m"}}, ("nobody plays 'evaluator'",)),
        ({"roles": {}}, ("nobody plays 'interactor' or 'evaluator'", "'roles: {interactor: MODEL, evaluator: MODEL}'")),
        ({"candidates": {}}, ("candidates", "at least one")),
        ({"candidates": {"x": {"recipe": "pt_cheeter"}}}, ("pt_cheeter", "pt_cheater")),
        ({"seed": "seven"}, ("seed", "seven")),
        ({"name": "a b"}, ("name",)),
        ({"benchmark": {"format": "embedded", "limit": 1000}}, ("limit is 1000", "256 items")),
        ({"benchmark": {"format": "arcc"}}, ("arcc", "arc")),
        ({"detection": {"methods": ["min_q"]}}, ("min_q", "min_k")),
        ({"exams": {"s": {"protocol": "statik"}}}, ("statik", "static")),
    ],
)
def test_wrong_values(tmp_path: Path, tiny_model: Path, change: dict[str, Any], parts: tuple[str, ...]) -> None:
    refused(tmp_path, experiment(tiny_model, **change), *parts)


def test_not_yaml(tmp_path: Path, write_text: Callable[[str, str], Path]) -> None:
    result = proctor("run", write_text("bad.yaml", "a: [1,\nb: 2"), "--out", tmp_path / "out")
    assert result.returncode == 2
    assert "bad.yaml" in result.stderr
    result = proctor("run", tmp_path / "missing.yaml", "--out", tmp_path / "out")
    assert result.returncode == 2
    assert "does not exist" in result.stderr
    assert not (tmp_path / "out").exists()


def test_overrides(tmp_path: Path, tiny_model: Path) -> None:
    file = write_experiment(tmp_path, experiment(tiny_model))
    result = proctor("run", file, "-s", "benchmark.limit=6", "--dry-run", "--out", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert "6 items, 3 leak" in result.stdout
    assert not (tmp_path / "out").exists()
    result = proctor("run", file, "-s", "benchmark.limmit=6", "--dry-run")
    assert result.returncode == 2
    assert "did you mean 'limit'" in result.stderr


def test_evaluate_and_detect_refuse(tmp_path: Path, tiny_model: Path, write_text: Callable[[str, str], Path]) -> None:
    out = tmp_path / "out"
    result = proctor("evaluate", "--candidate", tmp_path / "no", "--format", "embedded", "--out", out)
    assert (result.returncode, out.exists()) == (2, False)
    assert "does not exist" in result.stderr
    result = proctor(
        "evaluate", "--candidate", tiny_model, "--format", "embedded", "--protocol", "kieval", "--out", out
    )
    assert (result.returncode, out.exists()) == (2, False)
    assert "--interactor" in result.stderr
    bad = write_text("texts.jsonl", '{"text": "a b c", "label": 2}\n')
    result = proctor("detect", "--model", tiny_model, "--data", bad, "--out", out)
    assert (result.returncode, out.exists()) == (2, False)
    assert "texts.jsonl" in result.stderr
    result = proctor("list", "detektors")
    assert result.returncode == 2
    assert "detectors" in result.stderr


def test_every_verb_finds_a_broken_model_folder_at_once(tmp_path: Path, tiny_model: Path) -> None:
    """An interrupted copy is no engine's to find, minutes later."""
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    said = f"error: models.m: {weights} has {weights.stat().st_size} bytes of {weights.stat().st_size + 1}"
    file = write_experiment(tmp_path, experiment(folder))
    profile = tmp_path / "profile.yaml"
    profile.write_text("{gpus_per_node: 0}")
    out = ("--out", tmp_path / "out")
    data = tmp_path / "data.jsonl"
    data.write_text('{"text": "One text of a few words."}\n')
    for arguments, expected in (
        (("run", file, *out), said),
        (("check", file), said),
        (("estimate", file), said),
        (("submit", file, "--profile", profile, "--dry-run", *out), said),
        (("detect", "--model", folder, "--data", data, *out), said.replace("models.m", "--model")),
        (("evaluate", "--candidate", folder, "--format", "embedded", *out), said.replace("models.m", "--candidate")),
    ):
        result = proctor(*arguments)
        assert result.returncode == 2, (arguments, result.stdout, result.stderr)
        assert result.stderr.startswith(expected), (arguments, result.stderr)
        assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()
