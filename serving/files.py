"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar


def write_text(path: Path, text: str) -> None:
    """Lone surrogates in model text are kept as escapes; line ends as they are."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: Path, data: bytes) -> None:
    """Writes beside ``path``, syncs and renames."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Indented JSON; NaN is refused, for no other language reads it."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """One row per line, keys in their own order."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows))


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of ours. ValueError names the file and the line of a damaged one."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line:
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise ValueError(
                    f"{path}, line {number} is damaged ({error}); if Proctor wrote it, remove it and run again"
                ) from None
    return rows


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of ours; {} if the file is missing. ValueError names a damaged one."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); remove it and run again") from None
    return value if isinstance(value, dict) else {}


T = TypeVar("T")


def readable(load: Callable[[], T], name: object) -> T:
    """What ``load`` reads; ValueError that names the file where the system can't read it."""
    try:
        return load()
    except OSError as error:
        raise ValueError(f"{error.filename or name}: can't be read: {error.strerror or error}") from error
