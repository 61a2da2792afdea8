"""``proctor models import``: a GGUF file or a model folder becomes a safetensors folder of our own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from serving.embedded_model import gguf_to_folder
from serving.fingerprint import ModelError, check_model_folder


def import_model(source: Path, out: Path) -> Path:
    """Writes ``out`` whole or not at all. ModelError if the source can't be read or ``out`` exists."""
    if out.exists():
        raise ModelError(f"{out} exists already; choose another folder")
    if source.is_file():
        return gguf_to_folder(source, out)
    check_model_folder(source)
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    partial.mkdir(parents=True)
    try:
        for path in sorted(source.iterdir()):
            if path.is_file() and path.suffix in (".safetensors", ".json", ".jinja", ".model", ".txt"):
                shutil.copyfile(path, partial / path.name)
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return out
