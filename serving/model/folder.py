"""Whether a model folder is whole, told from its files in milliseconds: no weights are read, nothing is loaded.

An interrupted copy, a missing shard, a tokenizer left behind, a pointer file in place of weights: all of it would
otherwise be found by an engine, after minutes, in an engine's words.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
VOCABULARIES = (
    *("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "tekken.json"),
    *("spiece.model", "sentencepiece.bpe.model", "*.tiktoken"),
)
"""Files that hold a tokenizer's vocabulary; one of them is enough."""
_READ = ("generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


_LONGEST_HEADER = 100_000_000
"""Bytes; what the safetensors library reads at most."""


class ModelError(ValueError):
    """A model folder that can't be used; the message says what is wrong and what would be right."""


def refuse_links_out(folder: Path) -> None:
    """ModelError if a link below a folder leads out of it: what it points at would be copied into a folder that people
    pass on. The hub cache's links from a snapshot to its model's blobs are none of these."""
    root = folder.resolve()
    homes = [root]
    if root.parent.name == "snapshots" and root.parent.parent.name.startswith("models--"):
        homes.append(root.parent.parent / "blobs")
    for path in sorted(root.rglob("*")):
        if path.is_symlink() and not any(path.resolve().is_relative_to(home) for home in homes):
            raise ModelError(
                f"{folder / path.relative_to(root)} is a link to {path.resolve()}, outside of its folder; nothing was "
                "copied. Put the file itself there, if it belongs to the model"
            )


def check_model_folder(folder: Path, *, allow_pickle: bool = False) -> list[Path]:
    """Weight files of a model folder (safetensors). ModelError if it is missing, incomplete or pickled."""
    if not folder.exists():
        raise ModelError(f"model folder {folder} does not exist; give a folder with config.json and *.safetensors")
    if not folder.is_dir():
        turn = "'proctor models import FILE OUT' turns a GGUF file into one"
        mend = turn if folder.suffix == ".gguf" else f"give the folder: {folder.parent}"
        raise ModelError(f"{folder} is a file, not a model folder; {mend}")
    if not (folder / "config.json").is_file():
        if (folder / "adapter_config.json").is_file():
            raise ModelError(
                f"{folder} is a PEFT adapter, not a model; give its base model as path and this folder as adapter"
            )
        raise ModelError(f"model folder {folder} has no config.json; give the folder that config.json lies in")
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        pickles = sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern))
        if pickles and allow_pickle:
            return [folder / name for name in pickles]
        if pickles:
            raise ModelError(
                f"model folder {folder} has only pickled weights ({', '.join(pickles[:3])}), which can run code when "
                "loaded; convert them to safetensors, or set allow_pickle: true if you trust their origin"
            )
        raise ModelError(
            f"model folder {folder} has no *.safetensors weights (an interrupted copy?); copy the model again"
        )
    empty = [path.name for path in weights if path.stat().st_size == 0]
    if empty:
        raise ModelError(
            f"model folder {folder}: weights file {empty[0]} is empty (an interrupted copy?); copy it again"
        )
    wanted = set(_placed(folder).values())
    missing = sorted(wanted - {path.name for path in weights})
    if missing:
        raise ModelError(
            f"model folder {folder} lacks {missing[0]} ({len(missing)} of {len(wanted)} shards missing); "
            "copy the model again"
        )
    return weights


def check_complete(folder: Path, *, allow_pickle: bool = False) -> None:
    """All that can be known without loading. ModelError with the first fault: weights files cut or of another kind,
    tensors that their shard lacks, a configuration or tokenizer that is missing or damaged."""
    weights = check_model_folder(folder, allow_pickle=allow_pickle)
    read_config(folder)
    headers = {path.name: safetensors_header(path) for path in weights if path.suffix == ".safetensors"}
    for tensor, shard in _placed(folder).items():
        if tensor not in headers[shard]:
            raise ModelError(
                f"{folder / shard} lacks the tensor {tensor}, which the index says is in it; copy it again"
            )
    if headers and not any(headers.values()):
        raise ModelError(f"model folder {folder}: its weights files hold no tensor; copy the model again")
    if not any(path.stat().st_size for pattern in VOCABULARIES for path in folder.glob(pattern)):
        raise ModelError(
            f"model folder {folder} has no tokenizer (tokenizer.json, tokenizer.model or vocab.json); copy the "
            "tokenizer's files into it from where the model came from"
        )
    for name in _READ:
        if (folder / name).is_file():
            _object(folder / name)


def read_config(folder: Path) -> dict[str, Any]:
    """config.json. ModelError if it is no JSON object, or does not say what kind of model this is."""
    config = _object(folder / "config.json")
    if not isinstance(config.get("model_type"), str):
        raise ModelError(
            f"{folder / 'config.json'} names no model_type, so nothing can load this model; copy it again from where "
            "the model came from"
        )
    return config


def safetensors_header(path: Path) -> dict[str, Any]:
    """Names, types and shapes of the tensors of a file, from its first bytes. ModelError if it is cut or none."""
    size = path.stat().st_size
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > _LONGEST_HEADER:
                raise ValueError
            header: dict[str, Any] = json.loads(stream.read(length)) if length <= size else {}
        header.pop("__metadata__", None)
        end = 8 + length + max((info["data_offsets"][1] for info in header.values()), default=0)
    except (struct.error, ValueError, AttributeError, KeyError, TypeError):
        raise ModelError(f"{path} is not a safetensors file; copy or convert the model again") from None
    if size != end:
        raise ModelError(f"{path} has {size} bytes of {end} (an interrupted copy?); copy the model again")
    return header


def _placed(folder: Path) -> dict[str, str]:
    """By tensor, the shard that the index says it is in; nothing where there is no index."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return {}
    placed = _object(index).get("weight_map")
    if not isinstance(placed, dict) or not all(isinstance(shard, str) for shard in placed.values()):
        raise ModelError(f"{index} has no weight_map; copy the model again")
    return placed


def _object(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{file} is not JSON ({error}); copy the model again") from error
    if not isinstance(value, dict):
        raise ModelError(f"{file} holds no JSON object; copy the model again")
    return value
