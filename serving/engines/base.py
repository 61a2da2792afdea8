"""The one narrow seam to a model: batch in, batch out, order kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from serving.model.spec import ModelSpec
from serving.records import Completion, Request, ScoreRequest, TokenScores


class Backend(Protocol):
    """A loaded model inside its own process (see serving/engines/process.py)."""

    def generate(self, requests: Sequence[Request]) -> list[Completion]: ...

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]: ...


class Engine(Backend, Protocol):
    """A model as the scheduler sees it; it is loaded at the first request."""

    fingerprint: str

    def close(self) -> None: ...


class ManyAdapters(Protocol):
    """An engine that serves several adapters of one base."""

    def generate_with(self, adapters: Sequence[str | None], requests: Sequence[Request]) -> list[Completion]:
        """Each request is answered by the base (None) or with its adapter's folder; order kept."""


def load_backend(spec: ModelSpec, *, mode: str, adapters: Sequence[str] = ()) -> Backend:
    """Loads a model in this process. ValueError for what the user can mend, else whatever the engine raises.

    adapters: LoRA folders that will be asked for beside the base (vllm)
    """
    if spec.engine == "vllm":
        from serving.engines.vllm_engine import VllmBackend

        return VllmBackend(spec, mode=mode, adapters=adapters)
    if spec.engine == "transformers":
        from serving.engines.transformers_engine import TransformersBackend

        return TransformersBackend(spec)
    from serving.engines.scripted_engine import ScriptedBackend

    return ScriptedBackend(spec)
