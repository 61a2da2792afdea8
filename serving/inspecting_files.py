"""``proctor models inspect`` on what is no model folder: a PEFT adapter, a GGUF file."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from serving.adapters import check_servable, read_adapter
from serving.fingerprint import ModelError, file_hash, weights_of_adapter
from serving.inspecting import product
from serving.model_folder import safetensors_header


def inspect_adapter(folder: Path) -> Iterator[str]:
    """Lines of text. ModelError if it is no LoRA adapter in safetensors."""
    config = read_adapter(folder)
    tensors = safetensors_header(folder / "adapter_model.safetensors")
    count = sum(product(info["shape"]) for info in tensors.values())
    dtypes = ", ".join(sorted({info["dtype"] for info in tensors.values()}))
    modules = config.get("target_modules") or []
    yield f"folder        {folder}"
    yield f"adapter       LoRA, rank {config.get('r')}, alpha {config.get('lora_alpha')}; not merged: it needs its base"
    yield f"base          {config.get('base_model_name_or_path') or 'not named'}"
    yield f"modules       {', '.join(sorted(modules)) if isinstance(modules, list) else modules}"
    yield f"parameters    {count / 1e6:,.3f} M in safetensors ({dtypes})"
    try:
        rank = check_servable(folder)
        yield f"engines       transformers (merged on load), vllm beside its base (rank {rank})"
    except ModelError as error:
        yield f"engines       transformers (merged on load); not vllm: {error}"
    yield "use           as adapter of a model, whose path is the base; 'proctor models import ADAPTER OUT' merges"
    yield f"weights hash  {weights_of_adapter(folder)}"


def inspect_gguf(path: Path) -> Iterator[str]:
    """Lines of text. ModelError if it is no GGUF file, or the package gguf is missing."""
    with path.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise ModelError(f"{path} is a file, but not GGUF; give a model folder, an adapter folder or a GGUF file")
    if importlib.util.find_spec("gguf") is None:
        raise ModelError("reading GGUF needs the package gguf: pip install 'proctor[demo]'")
    import gguf

    try:
        reader = gguf.GGUFReader(path)
        tensors = [(t.tensor_type.name, int(t.n_elements), int(t.n_bytes)) for t in reader.tensors]
        fields: dict[str, Any] = dict(reader.fields)

        def value(name: str) -> Any:
            return fields[name].contents() if name in fields else None

        kind = value("general.architecture")
        context = value(f"{kind}.context_length")
        template = value("tokenizer.chat_template")
        special = {name: value(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos")}
    except Exception as error:  # of many kinds: the file is cut or its header damaged
        raise ModelError(f"{path} can't be read ({type(error).__name__}: {error}); copy it again") from error
    types = ", ".join(sorted({name for name, _, _ in tensors}))
    size = sum(size for _, _, size in tensors)
    yield f"file          {path}"
    yield f"architecture  {kind} (GGUF), not safetensors"
    yield f"parameters    {sum(n for _, n, _ in tensors) / 1e6:,.1f} M, {size / 1024**3:.2f} GiB ({types})"
    yield f"context       {context} tokens"
    yield f"special       ids: bos {special['bos']}, eos {special['eos']}"
    if template:
        yield f"template      chat template of {len(template)} characters: {template[:100]!r}"
    else:
        yield "template      no chat template (plain transcript)"
    yield "engines       none as it is: 'proctor models import FILE OUT' makes a folder of it, which all serve"
    yield f"weights hash  {file_hash(path)}"
