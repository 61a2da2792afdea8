"""Whether a model folder is whole, told from its files in milliseconds: no weights are read, nothing is loaded.

An interrupted copy, a missing shard, a tokenizer left behind, a pointer file in place of weights: all of it would
otherwise be found by an engine, after minutes, in an engine's words.
"""

from __future__ import annotations

import json
import math
import stat
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


_LARGEST_JSON = 256 * 1024**2
WIDTHS = {
    **{"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1},
    **{"I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1},
}
"""Bytes of a value, by safetensors' name of its type."""
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
    if folder.is_dir():
        _check_plain(folder)
    else:
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
            read_object(folder / name)


def read_config(folder: Path) -> dict[str, Any]:
    """config.json. ModelError if it is no JSON object, or does not say what kind of model this is."""
    config = read_object(folder / "config.json")
    if not isinstance(config.get("model_type"), str):
        raise ModelError(
            f"{folder / 'config.json'} names no model_type, so nothing can load this model; copy it again from where "
            "the model came from"
        )
    _check_numbers(folder / "config.json", config)
    _check_kernels(folder / "config.json", config)
    return config


_MOST = {
    **dict.fromkeys(("num_hidden_layers", "n_layer"), 10_000),
    **dict.fromkeys(("num_attention_heads", "n_head", "num_key_value_heads", "head_dim"), 100_000),
    **dict.fromkeys(("hidden_size", "n_embd", "intermediate_size", "vocab_size"), 100_000_000),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 2**31),
}
"""Numbers of a configuration and what none of any model exceeds: an engine would reserve memory for them unasked."""


def _check_numbers(file: Path, config: dict[str, Any]) -> None:
    text = config.get("text_config")
    if text is not None and not isinstance(text, dict):
        raise ModelError(f"{file}: text_config is no object; copy the model again")
    for part in (config, text or {}):
        for name, most in _MOST.items():
            value = part.get(name)
            for one in value if isinstance(value, list) else [value]:
                good = isinstance(one, int) and not isinstance(one, bool) and 1 <= one <= most
                if one is not None and not good:
                    raise ModelError(f"{file}: {name} is {str(one)[:40]!r}; it must be a whole number from 1 to {most}")
    named = config.get("architectures")
    if named is not None and not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
        raise ModelError(f"{file}: architectures must be a list of names; copy the model again")


def _check_kernels(file: Path, config: dict[str, Any]) -> None:
    """An attention implementation with a ``/`` is a package of the hub that transformers would load and run."""
    for name, value in config.items():
        if "attn_implementation" in name and "/" in str(value):
            raise ModelError(
                f"{file}: {name} is {str(value)[:80]!r}, code from the hub; remove the key, or name eager, sdpa or "
                "flash_attention_2"
            )
        if isinstance(value, dict):
            _check_kernels(file, value)


def _check_plain(folder: Path) -> None:
    """ModelError for a named pipe, a device or a socket: reading one can last for ever."""
    for path in folder.iterdir():
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:  # a link to nothing is missed where it is needed
            continue
        except OSError as error:
            raise ModelError(f"{path} can't be read ({error.strerror}); remove it") from error
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise ModelError(f"{path} is no plain file but a pipe, a device or a socket; remove it")


def _check_tensor(info: dict[str, Any]) -> None:
    """ValueError for what is no description of a tensor, or whose shape and place do not fit each other."""
    begin, end = info["data_offsets"]
    shape = info["shape"]
    if not isinstance(info["dtype"], str) or not all(type(size) is int and size >= 0 for size in (*shape, begin, end)):
        raise ValueError
    size = WIDTHS.get(info["dtype"])
    if size is not None and math.prod(shape) * size != end - begin:
        raise ValueError


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
        for info in header.values():
            _check_tensor(info)
    except (struct.error, ValueError, AttributeError, KeyError, TypeError, IndexError, RecursionError):
        raise ModelError(f"{path} is not a safetensors file; copy or convert the model again") from None
    if size != end:
        raise ModelError(f"{path} has {size} bytes of {end} (an interrupted copy?); copy the model again")
    return header


def _placed(folder: Path) -> dict[str, str]:
    """By tensor, the shard that the index says it is in; nothing where there is no index."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return {}
    placed = read_object(index).get("weight_map")
    if not isinstance(placed, dict) or not all(isinstance(shard, str) for shard in placed.values()):
        raise ModelError(f"{index} has no weight_map; copy the model again")
    return placed


def read_object(file: Path) -> dict[str, Any]:
    """The JSON object of a model folder's file. ModelError if it is none, or absurdly large."""
    try:
        if file.stat().st_size > _LARGEST_JSON:
            raise ValueError(f"it has {file.stat().st_size:,} bytes")
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{file} is not JSON ({error}); copy the model again") from error
    if not isinstance(value, dict):
        raise ModelError(f"{file} holds no JSON object; copy the model again")
    return value
