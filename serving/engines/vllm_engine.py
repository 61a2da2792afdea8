"""vLLM (V1, in-process): the default engine for generation.

Determinism: scheduling in one process, pinned limits, the prefix cache emptied before each batch (lockstep), grammars
compiled synchronously, or vLLM's batch-invariant kernels. Scores come from ``prompt_logprobs=0``: log-probabilities
only; what needs the full vocabulary is refused and belongs to the transformers engine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from serving.engines.common import completion, context_length, end_ids, load_tokenizer, prepare
from serving.fingerprint import ModelError, check_model_folder, resolve_model
from serving.models import ModelSpec
from serving.records import Completion, Request, ScoreRequest, TokenScores
from serving.rendering import render_with_continuation


class VllmBackend:
    def __init__(self, spec: ModelSpec, *, mode: str) -> None:
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        if mode == "batch-invariant":
            os.environ["VLLM_BATCH_INVARIANT"] = "1"
        try:
            import vllm
            from vllm.platforms import current_platform
        except ImportError as error:
            raise ModelError(
                f"the vllm engine can't be imported ({error}): pip install 'proctor[gpu]' (or 'proctor[cpu]'), or set "
                "engine: transformers"
            ) from error
        folder = resolve_model(spec)
        check_model_folder(folder, allow_pickle=spec.allow_pickle)
        self._spec, self._mode, self._vllm = spec, mode, vllm
        self._max_length = context_length(spec, folder)
        self._tokenizer = load_tokenizer(spec, folder)
        self._end_ids = end_ids(folder, self._tokenizer)
        on_cpu = current_platform.is_cpu()
        arguments: dict[str, Any] = {
            "model": str(folder),
            "dtype": spec.dtype if spec.dtype != "auto" or not on_cpu else "bfloat16",
            "quantization": spec.quantization,
            "seed": 0,
            "max_model_len": self._max_length,
            "max_num_seqs": spec.max_num_seqs,
            "max_num_batched_tokens": max(spec.max_num_batched_tokens, spec.max_num_seqs),
            "tensor_parallel_size": spec.tensor_parallel,
            "pipeline_parallel_size": spec.pipeline_parallel,
            "generation_config": "vllm",
            "enable_prefix_caching": True,
            "enforce_eager": on_cpu,
            "disable_log_stats": True,
            "trust_remote_code": False,
            "load_format": "auto" if spec.allow_pickle else "safetensors",
            "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
        }
        if on_cpu:
            # A prompt cut in two rewinds the seeded generator of its request, which CPU generators can't do: the engine
            # dies of "CPU Generator does not use offset" (gpu_model_runner, vLLM 0.32).
            arguments["enable_chunked_prefill"] = False
            arguments["max_num_batched_tokens"] = max(arguments["max_num_batched_tokens"], self._max_length)
        else:
            arguments["gpu_memory_utilization"] = spec.memory_share
            if spans_nodes(spec):
                arguments["distributed_executor_backend"] = "ray"
        if spec.adapter:
            raise ModelError(
                f"adapter {spec.adapter}: serve a merged copy through vllm (training writes one), or set "
                "engine: transformers"
            )
        self._llm = vllm.LLM(**{**arguments, **spec.engine_args})
        self._compile_grammars_in_step()

    def _compile_grammars_in_step(self) -> None:
        """vLLM compiles grammars in a thread, so that the first step of a batch would depend on timing."""
        core: Any = self._llm.llm_engine.engine_core
        core = getattr(core, "engine_core", core)
        manager = getattr(core, "structured_output_manager", None)
        if manager is not None:
            manager._use_async_grammar_compilation = False

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        from vllm.sampling_params import StructuredOutputsParams

        if self._mode == "lockstep":
            self._llm.llm_engine.reset_prefix_cache()
        prepared = prepare(self._spec, self._tokenizer, self._max_length, requests)
        prompts, parameters = [], []
        for request, ready in zip(requests, prepared, strict=True):
            if ready.room == 0:
                continue
            sampling = request.sampling
            prompts.append({"prompt_token_ids": list(ready.ids)})
            parameters.append(
                self._vllm.SamplingParams(
                    max_tokens=ready.room,
                    temperature=sampling.temperature,
                    top_p=sampling.top_p if sampling.temperature > 0 else 1.0,
                    seed=sampling.seed if sampling.temperature > 0 else None,
                    stop=list(ready.stop) or None,
                    stop_token_ids=self._end_ids or None,
                    structured_outputs=StructuredOutputsParams(json=request.schema) if request.schema else None,
                )
            )
        outputs = iter(self._llm.generate(prompts, parameters, use_tqdm=False) if prompts else [])
        answers = []
        for request, ready in zip(requests, prepared, strict=True):
            if ready.room == 0:
                answers.append(completion(self._spec, request, ready, "", "context", 0))
                continue
            output = next(outputs).outputs[0]
            reason = "stop" if output.finish_reason == "stop" else "length"
            answers.append(completion(self._spec, request, ready, output.text, reason, len(output.token_ids)))  # type: ignore[arg-type]
        return answers

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        if any(request.moments for request in requests):
            raise ModelError("the vllm engine gives log-probabilities only; moments need the transformers engine")
        self._llm.llm_engine.reset_prefix_cache()
        rendered, dropped = [], []
        for request in requests:
            text = render_with_continuation(
                self._tokenizer,
                request.prompt,
                request.continuation,
                bos=request.bos if request.bos != "model" else self._spec.bos,
            )
            cut = max(0, len(text.ids) - (self._max_length - 1))
            rendered.append((text.ids[cut:], text.segments[cut:]))
            dropped.append(cut)
        parameters = self._vllm.SamplingParams(max_tokens=1, temperature=0.0, prompt_logprobs=0)
        prompts = [{"prompt_token_ids": list(ids)} for ids, _ in rendered if len(ids) > 1]
        outputs = iter(self._llm.generate(prompts, parameters, use_tqdm=False) if prompts else [])
        tables = []
        for request, (ids, segments), cut in zip(requests, rendered, dropped, strict=True):
            if len(ids) < 2:
                tables.append(TokenScores(ids=(), logprobs=(), segments=(), dropped=cut))
                continue
            entries = next(outputs).prompt_logprobs[1:]
            keep = [i for i in range(1, len(ids)) if not request.answer_only or segments[i] == "answer"]
            tables.append(
                TokenScores(
                    ids=tuple(ids[i] for i in keep),
                    logprobs=tuple(float(entries[i - 1][ids[i]].logprob) for i in keep),
                    segments=tuple(segments[i] for i in keep),
                    ranks=tuple(int(entries[i - 1][ids[i]].rank) - 1 for i in keep),
                    greedy=tuple(entries[i - 1][ids[i]].rank == 1 for i in keep),
                    dropped=cut,
                )
            )
        return tables


def spans_nodes(spec: ModelSpec) -> bool:
    """Whether the model needs more GPUs than this node has, in a job whose script started a Ray cluster."""
    import torch

    return "RAY_ADDRESS" in os.environ and spec.tensor_parallel * spec.pipeline_parallel > torch.cuda.device_count()
