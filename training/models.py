"""Models as training loads, adapts and keeps them: safetensors only, no code from the model folder."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

from serving.files import beside, write_json
from serving.model.fingerprint import check_model_folder
from serving.model.folder import read_config, refuse_links_out
from serving.named import nearest
from serving.template_trial import check_template
from training.config import TrainingConfig

_COMPANIONS = (
    "config.json",
    "generation_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "chat_template*",
    "additional_chat_templates",
    "LICENSE*",
)


def check_base(folder: Path) -> list[Path]:
    """Weight files of a base model. ValueError if it is missing, incomplete, pickled, quantised or has no tokenizer."""
    files = check_model_folder(folder)
    config = read_config(folder)
    if config.get("quantization_config"):
        raise ValueError(f"{folder} holds quantised weights; training needs the model they were made from")
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model")):
        raise ValueError(f"{folder} has no tokenizer (tokenizer.json); copy the model's tokenizer files into it")
    return files


def load_tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    check_template(getattr(tokenizer, "chat_template", None), str(folder))
    return tokenizer


def load_model(folder: Path, dtype: Any) -> Any:
    """The model in ``dtype`` on the CPU (or wherever DeepSpeed partitions it).

    Without a cache: none is needed in training, and with one transformers does not keep packed documents apart.
    """
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True, use_safetensors=True)
    model.config.use_cache = False
    return model


def trainable_model(folder: Path, config: TrainingConfig) -> Any:
    """The model with float32 weights to learn, or a frozen base (QLoRA: in 4 bits) with a fresh LoRA adapter."""
    import torch

    if config.method == "full":
        return load_model(folder, torch.float32)
    if config.lora.quantized:
        from peft import prepare_model_for_kbit_training

        model = load_quantized(folder, config)
        return with_adapter(
            prepare_model_for_kbit_training(model, use_gradient_checkpointing=config.gradient_checkpointing), config
        )
    return with_adapter(load_model(folder, torch.bfloat16 if config.dtype == "bf16" else torch.float32), config)


def with_adapter(model: Any, config: TrainingConfig) -> Any:
    """The model with a new LoRA adapter. ValueError if target_modules name nothing in it."""
    from peft import LoraConfig, get_peft_model

    options = config.lora
    if options.target_modules != "all-linear":
        names = {name.rpartition(".")[2] for name, _ in model.named_modules()}
        for module in options.target_modules:
            if module.rpartition(".")[2] not in names:
                raise ValueError(
                    f"lora.target_modules: the model has no module '{module}': {nearest(module, [*names])}"
                )
    modules = options.target_modules
    if touches_head(config):
        part_head(model)
    return get_peft_model(
        model,
        LoraConfig(
            task_type="CAUSAL_LM",
            r=options.rank,
            lora_alpha=options.alpha,
            lora_dropout=options.dropout,
            target_modules=modules if isinstance(modules, str) else list(modules),
            use_rslora=options.rslora,
            use_dora=options.dora,
        ),
    )


def stored_dtype(folder: Path) -> Any:
    """The dtype most weights of a folder are stored in."""
    from collections import Counter

    from safetensors import safe_open

    with safe_open(check_model_folder(folder)[0], framework="pt") as file:
        names = list(file.keys())
        counts = Counter(file.get_slice(name).get_dtype() for name in names)
        common = counts.most_common(1)[0][0]
        return next(file.get_tensor(name).dtype for name in names if file.get_slice(name).get_dtype() == common)


def store_as(folder: Path, dtype: Any) -> None:
    """Rewrites a folder's floating-point weights in ``dtype``, shard by shard, where they are not in it already."""
    from safetensors.torch import load_file, save_file

    for path in check_model_folder(folder):
        tensors = load_file(path)
        if all(tensor.dtype == dtype or not tensor.is_floating_point() for tensor in tensors.values()):
            continue
        cast = {name: t.to(dtype) if t.is_floating_point() else t for name, t in tensors.items()}
        with beside(path) as partial:
            save_file(cast, partial, metadata={"format": "pt"})


def copy_companions(source: Path, target: Path) -> None:
    """Configuration, tokenizer and chat template, byte for byte: training changes weights and nothing else."""
    refuse_links_out(source)
    for pattern in _COMPANIONS:
        for path in source.glob(pattern):
            if path.is_dir():
                shutil.copytree(path, target / path.name, dirs_exist_ok=True)
            else:
                shutil.copyfile(path, target / path.name)


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
