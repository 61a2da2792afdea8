"""How a model is named and served: the ``ModelSpec`` of experiment files and of ad hoc commands."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from serving.records import BosPolicy

EngineName = Literal["auto", "vllm", "transformers", "server", "scripted"]


class ModelSpec(BaseModel):
    """One model as a role uses it.

    path: folder in Hugging Face layout, or the name of an entry in the local hub cache
    adapter: PEFT adapter folder; vllm serves it beside its base, transformers merges it on load
    engine: who generates (auto: vllm where it is installed, else transformers; server: a vLLM server that
        ``proctor serve`` started); all scoring is done by ``transformers``, but that of a server's models by the server
    endpoint: the file that ``proctor serve`` wrote (engine server; None: the run's own serving/<model>.json)
    patience: seconds to wait for a server that is not there, or no longer
    dtype, score_dtype: of generation and of scoring (auto: the checkpoint's own; vLLM on a CPU takes bfloat16)
    max_length: context in tokens; the model's own where None
    chat_template: file whose Jinja template replaces the tokenizer's; ``"none"`` treats the model as a base model
    reasoning_tags: text between them is kept apart and never judged
    engine_args: passed to the engine by name (vLLM's LLM(...), transformers' from_pretrained)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    revision: str | None = None
    adapter: str | None = None
    engine: EngineName = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    score_dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    quantization: str | None = None
    max_length: int | None = Field(default=None, ge=8)
    tensor_parallel: int = Field(default=1, ge=1)
    pipeline_parallel: int = Field(default=1, ge=1)
    memory_share: float = Field(default=0.9, gt=0.0, le=1.0)
    max_num_seqs: int = Field(default=64, ge=1)
    max_num_batched_tokens: int = Field(default=8192, ge=64)
    chat_template: str | None = None
    bos: BosPolicy = "model"
    stop: tuple[str, ...] = ()
    reasoning_tags: tuple[str, str] | None = ("<think>", "</think>")
    score_batch_tokens: int = Field(default=2048, ge=64, description="tokens of one scoring batch, padding included")
    allow_pickle: bool = False
    endpoint: str | None = None
    patience: float = Field(default=1800.0, ge=0.0)
    engine_args: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _path_only(cls, value: Any) -> Any:
        return {"path": str(value)} if isinstance(value, str | Path) else value

    def resolved(self) -> ModelSpec:
        """The spec with ``engine: auto`` decided for this machine."""
        if self.engine != "auto":
            return self
        engine = "vllm" if importlib.util.find_spec("vllm") else "transformers"
        return self.model_copy(update={"engine": engine})
