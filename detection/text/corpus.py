"""A corpus that stands for the training data: a file of text or a folder of them, read block by block.

Plain text, or JSON lines with a key ``text`` (``.jsonl``, ``.json``), each also compressed (``.gz``).
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

BLOCK = 1 << 16
"""Characters read at a time."""
TEXT, LINES = (".txt", ".text", ".md"), (".jsonl", ".json")


def corpus_files(path: str | Path) -> list[Path]:
    """The file itself, or a folder's text files at any depth, sorted by path; what is hidden or of another kind is left
    out. ValueError where there is nothing to read."""
    path = Path(path).expanduser()
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ValueError(f"corpus {path} does not exist; give a file of text or a folder of them")
    found = sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and _suffix(file) in TEXT + LINES
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if not found:
        kinds = ", ".join(TEXT + LINES)
        raise ValueError(f"corpus folder {path} has no text files; what is read are {kinds}, each also with .gz")
    return found


def check_corpus(path: str | Path) -> None:
    """Reads the beginning of every file. ValueError for what ``corpus_blocks`` would refuse there, and for no text."""
    beginnings = [next(corpus_blocks(file), "").strip() for file in corpus_files(path)]
    if not any(beginnings):
        raise ValueError(f"corpus {path} has no text; name a file that has, or leave it out")


def corpus_blocks(path: str | Path) -> Iterator[str]:
    """The corpus's text in order: a document of JSON lines at a time, plain text cut at the end of a line (or before a
    word, in a line longer than a block). ValueError, naming the file, for what is not UTF-8 text, and with the line for
    what is not an object with a string ``text``."""
    for file in corpus_files(path):
        try:
            opened = gzip.open if file.suffix == ".gz" else open
            with opened(file, "rt", encoding="utf-8", newline="") as stream:
                yield from _documents(file, stream) if _suffix(file) in LINES else _cut(stream)
        except UnicodeDecodeError as error:
            raise ValueError(f"{file}: not UTF-8 text ({error.reason}); convert it, or leave it out") from error
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{file}: can't be read: {error}") from error


def _suffix(file: Path) -> str:
    return (file.with_suffix("") if file.suffix == ".gz" else file).suffix.lower()


def _documents(file: Path, stream: IO[str]) -> Iterator[str]:
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file}:{number}: not JSON: {error}; write one object a line") from error
        text = row.get("text") if isinstance(row, dict) else None
        if not isinstance(text, str):
            raise ValueError(f"{file}:{number}: no string under the key 'text'")
        yield text.encode("utf-8", "replace").decode()  # half of a surrogate pair is no character


def _cut(stream: IO[str]) -> Iterator[str]:
    rest = stream.read(BLOCK)
    while piece := stream.read(BLOCK):  # the last block is whole: cut only where there is more
        at = rest.rfind("\n") + 1 or max(0, rest.rfind(" ")) or len(rest)
        yield rest[:at]
        rest = rest[at:] + piece
    if rest:
        yield rest
