"""vLLM (V1, in-process): the default engine for generation.

Determinism: scheduling in one process, pinned limits, the prefix cache emptied before each batch (lockstep), grammars
compiled synchronously, or vLLM's batch-invariant kernels. Scores come from ``prompt_logprobs=0``: log-probabilities
only; what needs the full vocabulary is refused and belongs to the transformers engine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from serving.engines.common import completion, context_length, end_ids, load_tokenizer, marked, prepare
from serving.engines.vllm_arguments import vllm_arguments
from serving.model.adapters import apart
from serving.model.fingerprint import ModelError, check_model_folder, resolve_model
from serving.model.spec import ModelSpec
from serving.records import Completion, Request, ScoreRequest, TokenScores
from serving.rendering import last_tokens, render_with_continuation


class VllmBackend:
    """adapters: LoRA folders served beside the base; ``spec.adapter`` alone where none are named."""

    def __init__(self, spec: ModelSpec, *, mode: str, adapters: Sequence[str] = ()) -> None:
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
        served = tuple(dict.fromkeys([*adapters, *([spec.adapter] if spec.adapter else [])]))
        self._adapters = {path: number for number, path in enumerate(served, start=1)}
        on_cpu = current_platform.is_cpu()
        arguments = vllm_arguments(spec, folder, max_length=self._max_length, on_cpu=on_cpu, adapters=served)
        self._llm = vllm.LLM(**{"disable_log_stats": True, **arguments})
        self._compile_grammars_in_step()

    def _compile_grammars_in_step(self) -> None:
        """vLLM compiles grammars in a thread, so that the first step of a batch would depend on timing."""
        core: Any = self._llm.llm_engine.engine_core
        core = getattr(core, "engine_core", core)
        manager = getattr(core, "structured_output_manager", None)
        if manager is not None:
            manager._use_async_grammar_compilation = False

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        return self.generate_with([self._spec.adapter] * len(requests), requests)

    def generate_with(self, adapters: Sequence[str | None], requests: Sequence[Request]) -> list[Completion]:
        """Answers each request by the base (None) or by the base with an adapter; order kept."""
        answers: dict[int, Completion] = {}
        for part in apart(adapters):
            found = self._batch([adapters[i] for i in part], [requests[i] for i in part])
            answers.update(zip(part, found, strict=True))
        return [answers[i] for i in range(len(requests))]

    def _batch(self, adapters: Sequence[str | None], requests: Sequence[Request]) -> list[Completion]:
        from vllm.lora.request import LoRARequest
        from vllm.sampling_params import StructuredOutputsParams

        if self._mode == "lockstep":
            self._llm.llm_engine.reset_prefix_cache()
        prepared = prepare(self._spec, self._tokenizer, self._max_length, requests)
        prompts, parameters, loras = [], [], []
        for adapter, request, ready in zip(adapters, requests, prepared, strict=True):
            if ready.room == 0:
                continue
            loras.append(
                adapter and LoRARequest(f"adapter-{self._adapters[adapter]}", self._adapters[adapter], adapter)
            )
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
        with_lora = {"lora_request": loras} if any(loras) else {}
        outputs = iter(self._llm.generate(prompts, parameters, use_tqdm=False, **with_lora) if prompts else [])
        answers = []
        for request, ready in zip(requests, prepared, strict=True):
            if ready.room == 0:
                answers.append(completion(self._spec, request, ready, "", "context", 0))
                continue
            output = next(outputs).outputs[0]
            reason = "stop" if output.finish_reason == "stop" else "length"
            text = marked(self._tokenizer, ready, output.token_ids, self._end_ids) or output.text
            answers.append(completion(self._spec, request, ready, text, reason, len(output.token_ids)))  # type: ignore[arg-type]
        return answers

    def sleep(self) -> None:
        """Weights go to the machine's memory, the cache is dropped (vLLM's level 1)."""
        self._llm.sleep(level=1)

    def wake_up(self) -> None:
        self._llm.wake_up()

    def score(self, requests: Sequence[ScoreRequest]) -> list[TokenScores]:
        if any(request.moments for request in requests):
            raise ModelError("the vllm engine gives log-probabilities only; moments need the transformers engine")
        if self._adapters:  # its worker dies of prompt_logprobs beside an adapter, whichever of the two is asked
            served = ", ".join(self._adapters)
            raise ModelError(f"the vllm engine can't score with an adapter ({served}); use transformers")
        self._llm.llm_engine.reset_prefix_cache()
        rendered, dropped = [], []
        for request in requests:
            text = render_with_continuation(
                self._tokenizer,
                request.prompt,
                request.continuation,
                bos=request.bos if request.bos != "model" else self._spec.bos,
            )
            kept, cut = last_tokens(text, self._max_length - 1)
            rendered.append((kept.ids, kept.segments))
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
