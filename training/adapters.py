"""What a LoRA adapter sits on: a base in 4 bits (QLoRA), and an LM head that shares its weights with the embedding."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from training.config import TrainingConfig

HEADS = ("lm_head", "embed_tokens", "embed_out", "wte", "output_layer")


def load_quantized(folder: Path, config: TrainingConfig) -> Any:
    """The model in 4 bits (NF4, double quantisation; Dettmers et al. 2023, arXiv 2305.14314, section 3).

    ValueError where bitsandbytes is missing, or ZeRO-3 would have to partition such weights.
    """
    import torch

    if not has_bitsandbytes():
        raise ValueError(
            "lora.quantized is set but bitsandbytes is not installed: pip install bitsandbytes, or set quantized: false"
        )
    if config.deepspeed is not None and "3" in config.deepspeed:
        raise ValueError("lora.quantized with ZeRO-3: 4-bit weights can't be partitioned; use zero2, or no DeepSpeed")
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    model = AutoModelForCausalLM.from_pretrained(
        folder,
        local_files_only=True,
        use_safetensors=True,
        quantization_config=BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16 if config.dtype == "bf16" else torch.float32,
        ),
    )
    model.config.use_cache = False
    return model


def has_bitsandbytes() -> bool:
    return importlib.util.find_spec("bitsandbytes") is not None


def frozen_base(folder: Path, config: TrainingConfig) -> Any:
    """The base that an adapter belongs to, in float32, to be merged into. With QLoRA these are the 4-bit weights read
    back: the adapter was trained on them, rounding and all, not on the weights that they were made from."""
    import torch

    from training.models import load_model

    if not config.lora.quantized:
        return load_model(folder, torch.float32)
    return load_quantized(folder, config).dequantize().to(torch.float32)


def touches_head(config: TrainingConfig) -> bool:
    """Whether the phase puts an adapter on the LM head or the embedding."""
    modules = config.lora.target_modules
    return config.method == "lora" and modules != "all-linear" and any(m.rpartition(".")[2] in HEADS for m in modules)


def part_head(model: Any) -> None:
    """Gives a model whose LM head is its embedding a head of its own: an adapter on one must not change both."""
    import torch

    head = model.get_output_embeddings()
    if head is not None and head.weight is model.get_input_embeddings().weight:
        head.weight = torch.nn.Parameter(head.weight.detach().clone(), requires_grad=False)
        model.config.tie_word_embeddings = False
        model.config.get_text_config().tie_word_embeddings = False


def has_own_head(folder: Path) -> bool:
    """Whether a saved model's configuration says that LM head and embedding are two tensors."""
    from transformers import AutoConfig

    return not AutoConfig.from_pretrained(folder).get_text_config().tie_word_embeddings


def keep_own_head(folder: Path) -> None:
    """Says in config.json that the head is a tensor of its own, whatever the base's configuration says."""
    from training.launch import write_json

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for part in (config, config.get("text_config")):
        if isinstance(part, dict):
            part["tie_word_embeddings"] = False
    write_json(folder / "config.json", config)


def serving_problem(config: TrainingConfig) -> str:
    """Why vLLM can't serve the phase's adapter beside its base, "" if it can. It is merged in any case."""
    if touches_head(config):
        return "it changes the LM head or the embedding, and vLLM drops those of an adapter: serve the merged model"
    if config.lora.dora:
        return "it is a DoRA adapter, whose magnitudes vLLM does not read: serve the merged model"
    if config.lora.quantized:
        return "it belongs to the 4-bit base that it was trained on: serve the merged model"
    return ""
