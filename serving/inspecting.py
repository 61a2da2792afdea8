"""``proctor models inspect``: what a model folder holds and what it takes to serve it; the model is not loaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from serving.engines.common import context_length, end_ids, load_tokenizer
from serving.model.adapters import check_servable, read_adapter
from serving.model.fingerprint import (
    ModelError,
    device_name,
    file_hash,
    fingerprint,
    resolve_model,
    weights_hash,
    weights_of_adapter,
)
from serving.model.folder import WIDTHS, check_complete, check_model_folder, read_config, safetensors_header
from serving.model.spec import ModelSpec
from serving.records import Message
from serving.rendering import render

GIB = 1024**3


def inspect_model(name: str) -> Iterator[str]:
    """Lines of text, of a model folder, an adapter folder or a GGUF file. ModelError if it can't be used."""
    try:
        yield from _inspect(name)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError) as error:
        # a field of another kind than anybody thought of; OSError and ValueError have messages of their own
        raise ModelError(f"{name} can't be inspected ({type(error).__name__}: {error}); copy it again") from error


def _inspect(name: str) -> Iterator[str]:
    spec = ModelSpec(path=name, engine="transformers")
    folder = resolve_model(spec)
    if folder.is_file() and folder.suffix == ".gguf":
        yield from inspect_gguf(folder)
        return
    if (folder / "adapter_config.json").is_file() and not (folder / "config.json").is_file():
        yield from inspect_adapter(folder)
        return
    check_complete(folder)
    weights = check_model_folder(folder)
    config = read_config(folder)
    text = config.get("text_config") or config
    tensors = [info for path in weights for info in safetensors_header(path).values()]
    count = sum(product(info["shape"]) for info in tensors)
    size = sum(product(info["shape"]) * WIDTHS.get(info["dtype"], 2) for info in tensors)
    context = context_length(spec, folder)
    dtypes = ", ".join(sorted({info["dtype"] for info in tensors}))
    yield f"folder        {folder}"
    yield f"architecture  {', '.join(config.get('architectures') or [config.get('model_type', '?')])}"
    yield f"parameters    {count / 1e6:,.1f} M in {len(weights)} safetensors files ({dtypes})"
    yield f"context       {context} tokens"
    per_token = 0
    layers = text.get("num_hidden_layers") or text.get("n_layer")
    heads = text.get("num_key_value_heads") or text.get("num_attention_heads") or text.get("n_head")
    if layers and heads:
        width = text.get("head_dim") or text.get("hidden_size", text.get("n_embd", 0)) // (
            text.get("num_attention_heads") or text.get("n_head")
        )
        heads = max(heads) if isinstance(heads, list) else heads  # some models have one number per layer
        per_token = 2 * layers * heads * width * 2
        full = per_token * context / GIB
        yield f"cache         {per_token / 1024:.1f} KiB per token in 16 bit; {full:.2f} GiB for one full context"
    for gpus in (1, 2, 4, 8):
        if gpus == 1 or size / gpus > GIB:
            one, all_of_it = size / gpus / GIB, (size + per_token * context) / gpus / GIB
            yield f"weights       {one:.2f} GiB per GPU on {gpus} (as stored), {all_of_it:.2f} with one full context"
    tokenizer = load_tokenizer(spec, folder)
    ends = [tokenizer.convert_ids_to_tokens(i) for i in end_ids(folder, tokenizer)]
    yield f"special       bos {tokenizer.bos_token!r}, eos {ends}, pad {tokenizer.pad_token!r}"
    ids = render(tokenizer, (Message(role="user", content="Hello"),))
    kind = "chat template" if getattr(tokenizer, "chat_template", None) else "no chat template (plain transcript)"
    yield f"template      {kind}; <user> Hello renders to {len(ids)} ids:"
    yield f"              {list(ids)}"
    yield f"              {tokenizer.decode(ids)!r}"
    if quantized := config.get("quantization_config"):
        yield f"quantized     {quantized.get('quant_method', '?') if isinstance(quantized, dict) else quantized}"
    yield f"merged        {'no: an adapter lies beside it' if (folder / 'adapter_config.json').is_file() else 'yes'}"
    yield f"engines       transformers (generation and scores); {_vllm_knows(config.get('architectures') or [])}"
    served = ModelSpec(path=name).resolved()
    yield f"weights hash  {weights_hash(folder)}"
    yield f"fingerprint   {fingerprint(served, mode='lockstep', device=device_name())} ({served.engine}, lockstep)"


def _vllm_knows(architectures: list[str]) -> str:
    """Whether the installed vLLM has code for it: read from its registry's text, since importing it takes 10 s."""
    spec = importlib.util.find_spec("vllm")
    if spec is None or not spec.submodule_search_locations:
        return "vllm is not installed"
    registry = Path(spec.submodule_search_locations[0]) / "model_executor" / "models" / "registry.py"
    if not registry.is_file():
        return "vllm, if it knows the architecture"
    known = registry.read_text(encoding="utf-8", errors="replace")
    found = [name for name in architectures if f'"{name}"' in known]
    return "vllm" if found else "vllm only through its transformers backend, if at all (not in its registry)"


def product(shape: list[int]) -> int:
    result = 1
    for size in shape:
        result *= size
    return result


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
