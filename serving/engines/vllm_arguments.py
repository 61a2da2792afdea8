"""What vLLM is started with: the same for the engine in a process of ours and for a server."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from serving.model.adapters import limits
from serving.model.spec import ModelSpec


def vllm_arguments(
    spec: ModelSpec, folder: Path, *, max_length: int, on_cpu: bool, adapters: Sequence[str] = ()
) -> dict[str, Any]:
    """Arguments of vLLM's LLM(...) by name. ModelError for an adapter that it can't serve.

    Everything that vLLM would choose by the GPU's size is pinned, so that schedules do not depend on it.
    """
    arguments: dict[str, Any] = {
        "model": str(folder),
        "dtype": spec.dtype if spec.dtype != "auto" or not on_cpu else "bfloat16",
        "quantization": spec.quantization,
        "seed": 0,
        "max_model_len": max_length,
        "max_num_seqs": spec.max_num_seqs,
        "max_num_batched_tokens": max(spec.max_num_batched_tokens, spec.max_num_seqs),
        "tensor_parallel_size": spec.tensor_parallel,
        "pipeline_parallel_size": spec.pipeline_parallel,
        "generation_config": "vllm",
        "enable_prefix_caching": True,
        "enforce_eager": on_cpu,
        "trust_remote_code": False,
        "load_format": "auto" if spec.allow_pickle else "safetensors",
        "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
    }
    if on_cpu:
        # A prompt cut in two rewinds the seeded generator of its request, which CPU generators can't do: the engine
        # dies of "CPU Generator does not use offset" (gpu_model_runner, vLLM 0.32).
        arguments["enable_chunked_prefill"] = False
        arguments["max_num_batched_tokens"] = max(arguments["max_num_batched_tokens"], max_length)
    else:
        arguments["gpu_memory_utilization"] = spec.memory_share
        if spans_nodes(spec):
            arguments["distributed_executor_backend"] = "ray"
    if (room := limits(adapters)) is not None:
        arguments |= {"enable_lora": True, "max_lora_rank": room.rank, "max_loras": room.adapters}
    return {**arguments, **spec.engine_args}


def as_flags(arguments: dict[str, Any]) -> list[str]:
    """The same as flags of ``vllm serve``; its model is the positional argument and not among them."""
    flags: list[str] = []
    for name, value in arguments.items():
        flag = "--" + name.replace("_", "-")
        if name == "model" or value is None:
            continue
        if value is True or value is False:
            flags.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            flags += [flag, json.dumps(value) if isinstance(value, dict | list) else str(value)]
    return flags


def spans_nodes(spec: ModelSpec) -> bool:
    """Whether the model needs more GPUs than this node has, in a job whose script started a Ray cluster."""
    import torch

    return "RAY_ADDRESS" in os.environ and spec.tensor_parallel * spec.pipeline_parallel > torch.cuda.device_count()
