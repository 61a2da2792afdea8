"""Memory: the formula, by hand, and what to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.config import LoraOptions, TrainingConfig
from training.memory import advice, estimate, estimate_for, is_out_of_memory

SHAPE = {"parameters": 1000, "layers": 10, "hidden": 4, "vocabulary": 100}
SHORT = {"max_length": 8, "per_device_batch_size": 2}


def test_full_parameters_take_sixteen_bytes_each() -> None:
    found = estimate(TrainingConfig(dtype="float32", **SHORT), **SHAPE)
    assert (found.parameters, found.gradients, found.optimizer) == (4000, 4000, 8000)
    assert found.activations == 10 * 34 * 16 * 4 * 2 + 12 * 16 * 100
    assert found.total == 16000 + found.activations


def test_zero_shares_among_processes() -> None:
    two = estimate(TrainingConfig(deepspeed="zero2", processes=4, **SHORT), **SHAPE)
    assert (two.parameters, two.gradients, two.optimizer) == (2000, 500, 3000)
    three = estimate(TrainingConfig(deepspeed="zero3", processes=4, **SHORT), **SHAPE)
    assert (three.parameters, three.gradients, three.optimizer) == (500, 500, 3000)
    offload = estimate(TrainingConfig(deepspeed="zero3_offload", processes=4, **SHORT), **SHAPE)
    assert (offload.parameters, offload.optimizer) == (200, 0)


def test_checkpointing_keeps_one_layer_and_the_inputs_of_the_others() -> None:
    found = estimate(TrainingConfig(gradient_checkpointing=True, **SHORT), **SHAPE)
    assert found.activations == 10 * 2 * 16 * 4 + 34 * 16 * 4 + 12 * 16 * 100


def test_lora_learns_its_adapters_only(base: Path) -> None:
    config = TrainingConfig(method="lora", lora=LoraOptions(rank=2), dtype="float32", **SHORT)
    found = estimate_for(base, config)
    full = estimate_for(base, config.model_copy(update={"method": "full"}))
    per_layer = 2 * ((64 + 64) + 2 * (64 + 32) + (64 + 64) + 2 * (64 + 128) + (128 + 64))
    assert found.gradients == 4 * 2 * per_layer
    assert found.parameters == full.parameters == full.gradients


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")])
def test_running_out_is_recognised(error: Exception) -> None:
    assert is_out_of_memory(error)
    assert not is_out_of_memory(RuntimeError("shape mismatch"))


def test_the_advice_leaves_out_what_is_done_already() -> None:
    config = TrainingConfig(gradient_checkpointing=True, method="lora", per_device_batch_size=1)
    text = advice(config, estimate(config, **SHAPE))
    assert "GiB per device" in text
    assert "max_length (2048)" in text
    assert "gradient_checkpointing" not in text
    assert "method: lora" not in text
