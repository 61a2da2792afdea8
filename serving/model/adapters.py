"""LoRA adapters: what vLLM can serve beside its base, and the merging of what it can't.

vLLM adds an adapter's deltas to linear layers inside the decoder. Deltas of the LM head or of the embeddings are
dropped by some versions and refused by others, so an adapter that holds any is refused here, with the reason, and
merged instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from serving.model.fingerprint import ModelError
from serving.model.folder import read_object, safetensors_header

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM takes for max_lora_rank (config/lora.py, 0.32)."""

_HEADS = ("lm_head", "embed_tokens", "embed_out", "wte", "output_layer")
_PLAIN = {"use_dora", "lora_bias", "layer_replication", "alora_invocation_tokens", "use_bdlora", "use_qalora"}
"""Features of PEFT that change what an adapter computes and that vLLM has no code for."""


class Limits(NamedTuple):
    """What a vLLM engine is started for. The shapes of its kernels depend on it, so it is part of the fingerprint.

    rank: the smallest of ``RANKS`` that holds every adapter
    adapters: how many may share a batch
    """

    rank: int
    adapters: int


def read_adapter(folder: Path) -> dict[str, Any]:
    """adapter_config.json of a PEFT folder. ModelError if it is not a LoRA adapter in safetensors."""
    config_file, weights = folder / "adapter_config.json", folder / "adapter_model.safetensors"
    if not config_file.is_file():
        raise ModelError(f"adapter folder {folder} lacks adapter_config.json; give the folder that PEFT saved")
    if not weights.is_file():
        pickled = (folder / "adapter_model.bin").is_file()
        why = "has only pickled weights (adapter_model.bin)" if pickled else "lacks adapter_model.safetensors"
        raise ModelError(f"adapter folder {folder} {why}; save it again with PEFT's save_pretrained")
    config = read_object(config_file)
    if config.get("peft_type") != "LORA":
        raise ModelError(f"{config_file}: peft_type is {config.get('peft_type')!r:.80}; Proctor reads LORA adapters")
    return config


def head_modules(folder: Path, config: dict[str, Any]) -> list[str]:
    """Modules of the LM head or the embeddings that an adapter changes (by its tensors, not by its word alone)."""
    saved = [str(name) for name in config.get("modules_to_save") or ()]
    names = {
        name.removeprefix("base_model.model.") for name in safetensors_header(folder / "adapter_model.safetensors")
    }
    touched = {name.partition(".lora_")[0].removesuffix(".weight") for name in names}
    heads = {name for name in touched if any(part in _HEADS for part in name.split("."))}
    return sorted(heads | {name for name in saved if name.rpartition(".")[2] in _HEADS})


def check_servable(folder: Path) -> int:
    """The rank of an adapter that vLLM can serve beside its base. ModelError, with the reason, if it can't."""
    config = read_adapter(folder)
    merge = f"merge it ('proctor models import {folder} OUT') and serve the result, or set engine: transformers"
    if heads := head_modules(folder, config):
        raise ModelError(
            f"adapter {folder} changes {', '.join(heads)}: vLLM drops an adapter's deltas of LM head and embeddings, "
            f"so its answers would be another model's; {merge}"
        )
    odd = sorted(name for name in _PLAIN if config.get(name))
    if odd or config.get("modules_to_save"):
        what = odd[0] if odd else f"modules_to_save: {config['modules_to_save']}"
        raise ModelError(f"adapter {folder} uses {what}, which vLLM can't serve as an adapter; {merge}")
    rank = max([int(config.get("r", 0)), *(int(value) for value in (config.get("rank_pattern") or {}).values())])
    if not 1 <= rank <= RANKS[-1]:
        raise ModelError(f"adapter {folder} has rank {rank}; vLLM serves ranks 1 to {RANKS[-1]}; {merge}")
    return rank


def limits(adapters: Iterable[str]) -> Limits | None:
    """What an engine needs to serve these adapters; None where there are none. ModelError as ``check_servable``."""
    ranks = [check_servable(Path(adapter)) for adapter in adapters]
    if not ranks:
        return None
    return Limits(rank=next(size for size in RANKS if size >= max(ranks)), adapters=len(ranks))


def apart(adapters: Sequence[str | None]) -> list[list[int]]:
    """Positions of a batch's requests in parts that may be computed together: adapters among themselves, then the base.

    vLLM on a CPU (0.32) answers a request without an adapter by an adapter that shares its step, so they never do.
    """
    parts = ([i for i, a in enumerate(adapters) if a is not None], [i for i, a in enumerate(adapters) if a is None])
    return [part for part in parts if part]


def with_adapter_merged(model: Any, folder: Path) -> Any:
    """A loaded model with the adapter's deltas added to its weights. ModelError if they do not fit together.

    Where head and embeddings are one tensor and the adapter changes either, they are parted first: merging into the
    shared tensor would change both.
    """
    import torch
    from peft import PeftModel

    config = read_adapter(folder)
    head = model.get_output_embeddings()
    shared = head is not None and head.weight is model.get_input_embeddings().weight
    if shared and head_modules(folder, config):
        head.weight = torch.nn.Parameter(head.weight.detach().clone(), requires_grad=False)
        model.config.get_text_config().tie_word_embeddings = False
        model.config.tie_word_embeddings = False
    try:
        return PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
    except (RuntimeError, KeyError, ValueError) as error:
        raise ModelError(
            f"adapter {folder} does not fit its base model ({str(error).splitlines()[0][:200]}); give the model that "
            "it was trained from"
        ) from error
