"""The self-tests of proctor check: figures of a real engine, of made-up ones that go wrong, and their keeping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.experiment.experiment import Experiment
from proctor.experiment.load import resolve
from proctor.run_folder.environment import add_self_tests, measured, self_tests, write_environment
from serving import self_test
from serving.engines.scripted_engine import ScriptedBackend
from serving.files import read_json
from serving.model.spec import ModelSpec
from serving.records import Completion, Request, ScoreRequest, TokenScores

GOOD = {
    "parity_mean": 1e-5, "parity_max": 1e-4, "score_order": 0.0, "score_alone": 1e-6, "answers_repeat": 0,
    "answers_order": 0, "answers_alone": 0, "adapters_mixed_up": None, "tolerance": 1e-3, "mode": "lockstep",
    "dtype": "float32", "model": "m", "engine": "vllm", "device": "cpu x2", "seconds": 1.0,
}  # fmt: skip


class Batchy(ScriptedBackend):
    """Answers and scores that depend on how many are asked together."""

    made: list[Batchy] = []  # noqa: RUF012

    def __init__(self, spec: ModelSpec, **_: Any) -> None:
        super().__init__(spec)
        self.closed = False
        self.made.append(self)

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        found = super().generate(requests)
        return found if len(requests) > 1 else [replace(found[0], text="alone")]

    def generate_with(self, adapters: Sequence[str | None], requests: Sequence[Request]) -> list[Completion]:
        """Mixes base and adapter up where they share a batch."""
        together = len(requests) > 1
        texts = ["of the adapter" if adapter or together else "of the base" for adapter in adapters]
        return [replace(answer, text=text) for answer, text in zip(super().generate(requests), texts, strict=True)]

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        shift = 0.5 if len(requests) == 1 else 0.0
        found = super().score(requests)
        return [replace(table, logprobs=tuple(value + shift for value in table.logprobs)) for table in found]

    def close(self) -> None:
        self.closed = True


def test_a_model_whose_answers_depend_on_the_batch(
    tiny: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_test, "ProcessEngine", Batchy)
    spec = ModelSpec(path=str(tiny), engine="vllm", dtype="float32")
    figures = self_test.measure(spec, mode="batch-invariant")
    assert (figures["parity_mean"], figures["score_order"], figures["score_alone"]) == (0.0, 0.0, pytest.approx(0.5))
    assert (figures["answers_repeat"], figures["answers_order"], figures["answers_alone"]) == (0, 0, 6)
    assert [warning[:25] for warning in self_test.warnings(figures)] == [
        "scores depend on the batc",
        "answers depend on the bat",
    ]
    assert all(engine.closed for engine in Batchy.made)
    before = len(Batchy.made)
    assert self_test.measure(spec, mode="batch-invariant") == figures
    assert len(Batchy.made) == before, "measured once"
    assert self_test.find(self_test.key_of(spec, "lockstep")) is None, "another mode is measured by itself"
    assert self_test._adapters(Batchy(spec), "a") == 6


def test_warnings() -> None:
    assert self_test.warnings(GOOD) == []
    for change, said in (
        ({"parity_mean": 0.002}, "vllm and transformers differ by 0.002 nats"),
        ({"parity_mean": float("nan")}, "vllm and transformers differ"),
        ({"score_order": 0.01}, "scores depend on the batch"),
        ({"answers_repeat": 1}, "1 of 6 greedy answers changed"),
        ({"adapters_mixed_up": 2}, "2 of the answers of base and adapter"),
    ):
        (warning,) = self_test.warnings({**GOOD, **change})
        assert warning.startswith(said)
    assert self_test.warnings({**GOOD, "answers_alone": 3}) == [], "lockstep promises nothing about batches"
    assert self_test.warnings({**GOOD, "parity_mean": None, "parity_max": None}) == []


def test_differences() -> None:
    first = TokenScores(ids=(1, 2), logprobs=(-1.0, -2.0), segments=("prompt", "prompt"))
    second = replace(first, logprobs=(-1.5, -2.25))
    assert self_test.difference([first], [second]) == (0.375, 0.5)
    assert self_test.difference([first], [replace(second, ids=(1, 3))])[0] == float("inf")
    assert self_test.difference([], []) == (0.0, 0.0)


def test_a_real_engine_and_the_environment_of_a_run(
    tiny: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = {
        "name": "e",
        "models": {"m": {"path": str(tiny), "engine": "transformers", "dtype": "float32"}},
        "base": "m",
        "candidates": {"m": {"model": "m"}},
    }
    experiment = resolve(Experiment.model_validate(value))
    write_environment(tmp_path, experiment)
    assert read_json(tmp_path / "environment.json")["self_tests"] == {}
    said = list(self_tests(experiment))
    assert said[0].startswith("self-test of m (transformers, cpu x")
    assert "parity of engines not measured" in said[1]
    assert "again 0/6, in another order 0/6, alone 0/6" in said[2]
    assert len(said) == 3, "no warning"
    assert "measured before" in next(self_tests(experiment))
    add_self_tests(tmp_path, experiment)  # the run was begun before they were measured
    added = read_json(tmp_path / "environment.json")
    assert list(added["self_tests"]) == ["m"]
    write_environment(tmp_path, experiment)
    assert read_json(tmp_path / "environment.json") == added
    (figures,) = read_json(tmp_path / "environment.json")["self_tests"].values()
    assert figures == {**measured(experiment)["m"]}
    assert figures["score_alone"] < 1e-3
    assert figures["warnings"] == []
    monkeypatch.setenv("PROCTOR_DEVICE", "cuda:NVIDIA A100-SXM4-80GB")
    assert "left out: PROCTOR_DEVICE declares" in next(self_tests(experiment))
