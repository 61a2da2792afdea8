"""How much memory training takes on one GPU: an estimate before the run, and what to change when it was not enough."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.config import TrainingConfig

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Bytes on one GPU (on the host where offloaded bytes are left out of it)."""

    parameters: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        return self.parameters + self.gradients + self.optimizer + self.activations

    def __str__(self) -> str:
        parts = ("parameters", "gradients", "optimizer", "activations")
        listed = ", ".join(f"{name} {getattr(self, name) / GIB:.1f}" for name in parts)
        return f"{self.total / GIB:.1f} GiB per device ({listed})"


def estimate(
    config: TrainingConfig, *, parameters: int, layers: int, hidden: int, vocabulary: int, trainable: int | None = None
) -> MemoryEstimate:
    """Bytes per device for a decoder of ``parameters`` weights.

    Weights: 4 bytes (float32 master); with DeepSpeed and bf16 2 bytes, the masters counting to the optimiser; LoRA's
    frozen base 2 in bf16; QLoRA's 4.127 bits but for embedding and LM head (arXiv 2305.14314, section 3). Gradients: 4
    (2 with DeepSpeed bf16). Adam: two moments of 4 bytes, plus 4 for masters. ZeRO-2 shares gradients and optimiser
    among all processes, ZeRO-3 the weights too (Rajbhandari et al. 2020, arXiv 1910.02054, section 3); offload moves
    the optimiser (and ZeRO-3's weights) to the host.
    Activations of a layer: 34 s b h bytes in 16 bit without stored attention matrices (Korthikanti et al. 2022, arXiv
    2205.05198, equation 2), twice that in float32; with gradient checkpointing 2 s b h per layer and one whole layer.
    Logits: s b V values, three times in float32 (logits, their softmax, their gradient).
    """
    ranks = config.processes * config.nodes
    deepspeed = config.deepspeed or ""
    stage = 3 if "3" in deepspeed else 2 if "2" in deepspeed else 0
    offload = "offload" in deepspeed
    half = config.dtype == "bf16"
    lora = config.method == "lora"
    learned = trainable if trainable is not None else parameters
    weight_bytes = 2 if half and (stage or lora) else 4
    gradient_bytes = 2 if half and stage else 4
    adam_bytes = 12 if half and stage else 8
    weights = parameters * weight_bytes // (ranks if stage == 3 else 1)
    if lora and config.lora.quantized:
        whole = min(parameters, 2 * vocabulary * hidden)
        weights = round((parameters - whole) * 4.127 / 8) + whole * weight_bytes
    if offload and stage == 3:
        weights = parameters * weight_bytes // layers  # one layer at a time is on the device
    gradients = learned * gradient_bytes // (ranks if stage else 1)
    optimizer = 0 if offload else learned * adam_bytes // (ranks if stage else 1)
    tokens = config.max_length * config.per_device_batch_size
    width = 1 if half else 2
    layer = 34 * tokens * hidden * width
    stored = layers * 2 * tokens * hidden * width + layer if config.gradient_checkpointing else layers * layer
    return MemoryEstimate(
        parameters=weights, gradients=gradients, optimizer=optimizer, activations=stored + 12 * tokens * vocabulary
    )


@functools.lru_cache(maxsize=64)
def _shape(folder: Path) -> tuple[int, int, int, int, int]:
    """Weights, layers, hidden size, vocabulary, and the sum of inputs and outputs of all linear layers but the LM head.

    The model is built without memory, from config.json alone.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    model_config = AutoConfig.from_pretrained(folder)
    text = model_config.get_text_config()
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(model_config)
    linear = [m for m in model.modules() if isinstance(m, torch.nn.Linear) and m.out_features != text.vocab_size]
    return (
        sum(weight.numel() for weight in model.parameters()),
        text.num_hidden_layers,
        text.hidden_size,
        text.vocab_size,
        sum(m.in_features + m.out_features for m in linear),
    )


def estimate_for(folder: Path, config: TrainingConfig) -> MemoryEstimate:
    """The estimate for a model folder, of which only config.json is read."""
    parameters, layers, hidden, vocabulary, sides = _shape(folder)
    return estimate(
        config,
        parameters=parameters,
        layers=layers,
        hidden=hidden,
        vocabulary=vocabulary,
        trainable=config.lora.rank * sides if config.method == "lora" else None,
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out, on a GPU or on the host."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text


def advice(config: TrainingConfig, needed: MemoryEstimate) -> str:
    """What to change, the cheapest first, among what is not in use yet."""
    steps = []
    if config.per_device_batch_size > 1:
        steps.append("lower per_device_batch_size (raise gradient_accumulation by as much: same result)")
    if not config.gradient_checkpointing:
        steps.append("set gradient_checkpointing: true")
    if config.deepspeed != "zero3_offload":
        steps.append("set deepspeed: zero3, or zero3_offload, with more processes")
    if config.method == "full":
        steps.append("set method: lora")
    if config.dtype == "float32":
        steps.append("set dtype: bf16")
    steps.append(f"lower max_length ({config.max_length})")
    return f"not enough memory for training, estimated {needed}. What helps: " + "; ".join(steps)
