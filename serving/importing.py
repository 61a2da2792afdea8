"""``proctor models import``: a GGUF file, a model folder or an adapter becomes a safetensors folder of our own."""

from __future__ import annotations

import shutil
from pathlib import Path

from serving.files import whole_folder
from serving.model.embedded import gguf_to_folder
from serving.model.fingerprint import ModelError, resolve_model
from serving.model.folder import check_complete, refuse_links_out
from serving.model.spec import ModelSpec


def import_model(source: Path, out: Path, *, base: str | None = None) -> Path:
    """Writes ``out`` whole or not at all. ModelError if the source can't be read or ``out`` exists.

    base: the model that an adapter is merged into (None: the one that the adapter names)
    """
    if out.exists():
        raise ModelError(f"{out} exists already; choose another folder")
    if (source / "adapter_config.json").is_file() and not (source / "config.json").is_file():
        return _merge(source, out, base)
    if base is not None:
        raise ModelError(f"--base belongs to an adapter, and {source} is none; leave it out")
    if source.is_file():
        return gguf_to_folder(source, out)
    check_complete(source)
    refuse_links_out(source)
    with whole_folder(out) as partial:
        for path in sorted(source.iterdir()):
            if path.is_file() and path.suffix in (".safetensors", ".json", ".jinja", ".model", ".txt"):
                shutil.copyfile(path, partial / path.name)
    return out


def _merge(adapter: Path, out: Path, base: str | None) -> Path:
    """The base with the adapter's deltas in its weights; checked on a few tokens after it was read back."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    from serving.model.adapters import read_adapter, with_adapter_merged

    logging.disable_progress_bar()
    named = base or read_adapter(adapter).get("base_model_name_or_path")
    if not named:
        raise ModelError(f"adapter {adapter} does not name its base model; give it with --base")
    folder = resolve_model(ModelSpec(path=str(named)))
    check_complete(folder)
    refuse_links_out(folder)
    arguments = {"dtype": "auto", "trust_remote_code": False, "use_safetensors": True}
    merged = with_adapter_merged(AutoModelForCausalLM.from_pretrained(folder, **arguments), adapter).eval()
    with whole_folder(out) as partial:
        merged.save_pretrained(partial, safe_serialization=True)
        for path in sorted(folder.iterdir()):
            companion = path.suffix in (".json", ".jinja", ".model", ".txt") and not _is_weights(path.name)
            if path.is_file() and companion and not (partial / path.name).exists():
                shutil.copyfile(path, partial / path.name)
        again = AutoModelForCausalLM.from_pretrained(partial, **arguments).eval()
        ids = torch.arange(3, 19)[None] % merged.get_input_embeddings().num_embeddings
        with torch.inference_mode():
            wanted, found = merged(input_ids=ids).logits.float(), again(input_ids=ids).logits.float()
        if not torch.allclose(wanted, found, rtol=1e-3, atol=1e-3):
            raise RuntimeError(f"{out}: the merged model is not the same after it was read back")
    return out


def _is_weights(name: str) -> bool:
    return name.endswith(".safetensors") or name.endswith(".safetensors.index.json")
