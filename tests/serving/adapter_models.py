"""Adapters of a small random model, and what vLLM answers with them: run in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from serving.model.adapters import with_adapter_merged
from serving.model.spec import ModelSpec
from serving.records import Completion, Request
from tests.serving.serving_models import save_model


def base_model(folder: Path, **config: Any) -> Path:
    """A random model whose heads are 64 wide, as vLLM's attention on a CPU wants them."""
    return save_model(folder, hidden_size=128, num_attention_heads=2, num_key_value_heads=2, **config)


def make_adapter(
    base: Path, folder: Path, *, seed: int, modules: Sequence[str] = ("q_proj", "v_proj"), **more: Any
) -> Path:
    """A random adapter of rank 4, large enough to change greedy answers."""
    import peft
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(base)
    config = peft.LoraConfig(
        r=4, lora_alpha=16, target_modules=list(modules), init_lora_weights=False, task_type="CAUSAL_LM", **more
    )
    adapted = peft.get_peft_model(model, config)
    for name, parameter in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    adapted.save_pretrained(folder, save_embedding_layers=False)
    return folder


def merge(base: Path, adapter: Path, out: Path) -> Path:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with_adapter_merged(AutoModelForCausalLM.from_pretrained(base), adapter).save_pretrained(out)
    AutoTokenizer.from_pretrained(base).save_pretrained(out)
    return out


class Answers(NamedTuple):
    """together: as Proctor asks; unparted: all in one vLLM batch; alone: one by one"""

    together: list[Completion]
    unparted: list[Completion]
    alone: list[Completion]


def answers(
    spec: ModelSpec, served: Sequence[str], asked: Sequence[str | None], requests: Sequence[Request]
) -> Answers:
    """For a spawned process: a vLLM engine is not loaded into pytest's own."""
    from serving.engines.process import child_environment

    os.environ.update(child_environment(2))
    from serving.engines.vllm_engine import VllmBackend

    backend = VllmBackend(spec, mode="lockstep", adapters=served)
    return Answers(
        together=backend.generate_with(asked, requests),
        unparted=backend._batch(asked, requests),
        alone=[backend.generate_with([a], [r])[0] for a, r in zip(asked, requests, strict=True)],
    )
