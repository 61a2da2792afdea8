"""What the serving tests share: one tiny model, the embedded real one, and an engine that notes what it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from serving.engines.scripted_engine import ScriptedBackend
from serving.model.spec import ModelSpec
from serving.records import Completion, Request, ScoreRequest, TokenScores
from tests.serving.serving_models import save_model
from tests.serving.shared_node import Impostor


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for weight hashes and converted models."""
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a random ChatML Llama."""
    return save_model(tmp_path_factory.mktemp("serving") / "tiny")


@pytest.fixture(scope="session")
def real() -> Path:
    """Folder of SmolLM2-135M-Instruct."""
    from serving.model.embedded import embedded_model

    try:
        return embedded_model()
    except ValueError as missing:
        pytest.skip(str(missing))


class SpyEngine:
    """The scripted model in this process; every batch it is asked is appended to ``trace``."""

    def __init__(self, spec: ModelSpec, fingerprint: str, trace: list[tuple[str, list[Any]]]) -> None:
        self.fingerprint = fingerprint
        self.trace = trace
        self.closed = 0
        self._backend = ScriptedBackend(spec)

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        self.trace.append(("generate", list(requests)))
        return self._backend.generate(requests)

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        self.trace.append(("score", list(requests)))
        return self._backend.score(requests)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def trace() -> list[tuple[str, list[Any]]]:
    return []


@pytest.fixture
def spy(trace: list[tuple[str, list[Any]]]) -> Callable[..., SpyEngine]:
    """A ``make_engine`` for Cast whose engines write to ``trace``."""

    def make(spec: ModelSpec, *, fingerprint: str, mode: str, threads: int | None) -> SpyEngine:
        return SpyEngine(spec, fingerprint, trace)

    return make


@pytest.fixture
def scripted() -> ModelSpec:
    return ModelSpec(path="scripted", engine="scripted")


@pytest.fixture(autouse=True)
def _no_impostor_stays() -> Iterator[None]:
    yield
    while Impostor.all:
        process = Impostor.all.pop()
        process.kill()
        process.communicate()


@pytest.fixture
def tests_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """For children that run a module of the tests: they don't find it in the folder they start in."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
