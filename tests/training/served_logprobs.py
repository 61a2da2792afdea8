"""What vLLM says of the tokens it chose: run in a process of its own, an engine is not loaded into pytest's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from serving.model.spec import ModelSpec


class Chosen(NamedTuple):
    """The tokens of a greedy answer and their log-probabilities (nats)."""

    ids: list[int]
    logprobs: list[float]


def chosen(model: Path, adapter: Path | None, prompts: Sequence[Sequence[int]], tokens: int) -> list[Chosen]:
    """One answer per prompt, of the model or of the model with the adapter, which vLLM adds as it serves."""
    from serving.engines.process import child_environment

    os.environ.update(child_environment(2))
    from serving.engines.vllm_engine import VllmBackend

    spec = ModelSpec(path=str(model), engine="vllm", dtype="float32", max_num_seqs=4)
    backend = VllmBackend(spec, mode="lockstep", adapters=[str(adapter)] if adapter else [])
    from vllm import SamplingParams
    from vllm.lora.request import LoRARequest

    outputs = backend._llm.generate(
        [{"prompt_token_ids": list(ids)} for ids in prompts],
        SamplingParams(max_tokens=tokens, temperature=0.0, logprobs=1, ignore_eos=True),
        use_tqdm=False,
        lora_request=[LoRARequest("adapter", 1, str(adapter))] * len(prompts) if adapter else None,
    )
    answers = [output.outputs[0] for output in outputs]
    return [
        Chosen(list(a.token_ids), [entry[token].logprob for entry, token in zip(a.logprobs, a.token_ids, strict=True)])
        for a in answers
    ]
