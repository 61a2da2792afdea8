"""A trained LoRA adapter is one model however it is used: on its base, merged, and served by vLLM beside the base."""

from __future__ import annotations

import importlib.util
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.serving.adapter_models import base_model
from tests.training.served_logprobs import Chosen, chosen
from training.build import build_candidate
from training.config import LoraOptions, TrainingJob
from training.verify import MERGE_TOLERANCE

PROMPTS = ("Question: Which planet is known as the red one?", "The quick brown fox", "What is 2 + 2? It is")
TOKENS = 12


def logprobs(model: Any, prompt: Sequence[int], answer: Sequence[int]) -> list[float]:
    """Log-probability of each token of the answer (nats), in one pass of transformers."""
    import torch

    ids = torch.tensor([[*prompt, *answer]])
    with torch.no_grad():
        logs = torch.log_softmax(model.eval()(ids).logits[0, len(prompt) - 1 : -1].float(), dim=-1)
    found: list[float] = logs.gather(-1, ids[0, len(prompt) :, None])[:, 0].tolist()
    return found


def served(model: Path, adapter: Path | None, prompts: list[list[int]]) -> list[Chosen]:
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(chosen, model, adapter, prompts, TOKENS).result()


@pytest.mark.slow
def test_on_its_base_merged_and_served_it_gives_the_same_log_probabilities(
    job: Callable[..., TrainingJob], tmp_path: Path
) -> None:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vllm is not installed (pip install 'proctor[gpu]' or 'proctor[cpu]')")
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    base, out = base_model(tmp_path / "base"), tmp_path / "out"
    lora = {"method": "lora", "lora": LoraOptions(rank=4), "learning_rate": 3e-2, "epochs": 2}
    manifest = build_candidate(job(recipe="normal", base=str(base), chat_sft=lora), out)
    assert manifest.phases[0].merge_difference is not None
    assert manifest.phases[0].merge_difference <= MERGE_TOLERANCE
    assert manifest.phases[0].adapter_problem == ""

    adapter = out / "adapter" / "chat"
    tokenizer = AutoTokenizer.from_pretrained(base)
    prompts: list[list[int]] = [tokenizer(text)["input_ids"] for text in PROMPTS]
    alone = AutoModelForCausalLM.from_pretrained(base)
    merged = AutoModelForCausalLM.from_pretrained(out / "model")
    answers = {"adapter": served(base, adapter, prompts), "merged": served(out / "model", None, prompts)}
    without = [logprobs(alone, prompt, a.ids) for prompt, a in zip(prompts, answers["adapter"], strict=True)]
    on_base = PeftModel.from_pretrained(alone, adapter)
    for found in answers.values():
        for prompt, answer in zip(prompts, found, strict=True):
            assert len(answer.ids) == TOKENS
            assert answer.logprobs == pytest.approx(logprobs(on_base, prompt, answer.ids), abs=MERGE_TOLERANCE)
            assert answer.logprobs == pytest.approx(logprobs(merged, prompt, answer.ids), abs=MERGE_TOLERANCE)
    changes = [
        abs(a - b) for x, y in zip(answers["adapter"], without, strict=True) for a, b in zip(x.logprobs, y, strict=True)
    ]
    assert max(changes) > 100 * MERGE_TOLERANCE, "the adapter changes what the base says"
