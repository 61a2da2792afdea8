"""A corpus that stands for the training data: a file of text or a folder of them, read block by block.

Plain text, or JSON lines with a key ``text`` (``.jsonl``, ``.json``), each also compressed (``.gz``, ``.bz2``, ``.xz``,
``.zst``); or Parquet with a column ``text``.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

BLOCK = 1 << 16
"""Characters read at a time."""
TEXT, LINES, PARQUET = (".txt", ".text", ".md"), (".jsonl", ".json"), (".parquet",)
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_HYPHENS = "-\u2010\u00ad"


@dataclass(frozen=True, slots=True)
class Block:
    """document: the file's path within the corpus; of JSON lines and Parquet with ``:`` and the line or row, from 1
    goes_on: whether it is the next part of the document of the block before (plain text only)"""

    document: str
    text: str
    goes_on: bool = False


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
        and _suffix(file) in TEXT + LINES + PARQUET
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if not found:
        kinds = ", ".join(TEXT + LINES)
        raise ValueError(
            f"corpus folder {path} has no text files; what is read are {kinds}, each also with "
            f"{', '.join(COMPRESSED)}, and {', '.join(PARQUET)}"
        )
    return found


def check_corpus(path: str | Path) -> None:
    """Reads the beginning of every file. ValueError for what ``corpus_blocks`` would refuse there, and for no text."""
    beginnings = [next(corpus_blocks(file), "").strip() for file in corpus_files(path)]
    if not any(beginnings):
        raise ValueError(f"corpus {path} has no text; name a file that has, or leave it out")


def corpus_blocks(path: str | Path) -> Iterator[str]:
    """The texts of ``corpus_parts``."""
    return (block.text for block in corpus_parts(path))


def corpus_parts(path: str | Path) -> Iterator[Block]:
    """The corpus in order: a document of JSON lines or Parquet at a time, plain text cut at the end of a line (not
    after a hyphen), or before a word in a line longer than a block. ValueError, naming the file, for what is not UTF-8
    text, and with the line or row for what has no string ``text``."""
    path = Path(path).expanduser()
    for file in corpus_files(path):
        name = str(file.relative_to(path)) if path.is_dir() else file.name
        try:
            if _suffix(file) in PARQUET:
                yield from _rows(file, name)
                continue
            with _opened(file) as stream:
                if _suffix(file) in LINES:
                    yield from _documents(file, name, stream)
                else:
                    for number, text in enumerate(_cut(stream)):
                        yield Block(name, text, goes_on=number > 0)
        except UnicodeDecodeError as error:
            raise ValueError(f"{file}: not UTF-8 text ({error.reason}); convert it, or leave it out") from error
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise ValueError(f"{file}: can't be read: {error}") from error


def _suffix(file: Path) -> str:
    return (file.with_suffix("") if file.suffix.lower() in COMPRESSED else file).suffix.lower()


def _opened(file: Path) -> IO[str]:
    match file.suffix.lower():
        case ".gz":
            return gzip.open(file, "rt", encoding="utf-8", newline="")
        case ".bz2":
            return bz2.open(file, "rt", encoding="utf-8", newline="")
        case ".xz":
            return lzma.open(file, "rt", encoding="utf-8", newline="")
        case ".zst":
            import pyarrow

            raw = pyarrow.CompressedInputStream(pyarrow.OSFile(str(file)), "zstd")
            return io.TextIOWrapper(cast(Any, io.BufferedReader(cast(Any, raw))), encoding="utf-8", newline="")
    return file.open(encoding="utf-8", newline="")


def _documents(file: Path, name: str, stream: IO[str]) -> Iterator[Block]:
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
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()  # half of a surrogate pair is no character
        yield Block(f"{name}:{number}", text)


def _rows(file: Path, name: str) -> Iterator[Block]:
    import pyarrow
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(file)
    except pyarrow.ArrowException as error:
        raise ValueError(f"{file}: can't be read as Parquet: {error}") from error
    with opened:
        columns = opened.schema_arrow.names
        if "text" not in columns:
            raise ValueError(f"{file}: no column 'text'; its columns are {', '.join(columns) or 'none'}")
        number = 0
        for batch in opened.iter_batches(batch_size=1024, columns=["text"]):
            for text in batch.column(0).to_pylist():
                number += 1
                if not isinstance(text, str):
                    raise ValueError(f"{file}:{number}: no string in the column 'text'")
                yield Block(f"{name}:{number}", text)


def _cut(stream: IO[str]) -> Iterator[str]:
    rest = stream.read(BLOCK)
    while piece := stream.read(BLOCK):  # the last block is whole: cut only where there is more
        at = _line_end(rest) or max(0, rest.rfind(" ")) or _before_last_character(rest)
        yield rest[:at]
        rest = rest[at:] + piece
    if rest:
        yield rest


def _line_end(text: str) -> int:
    """Behind the last line end without a hyphen before it, where a word may go on; 0 where there is none."""
    at = len(text)
    while at := text.rfind("\n", 0, at) + 1:
        if not text[max(0, at - 9) : at].rstrip().endswith(tuple(_HYPHENS)):
            return at
        at -= 1
    return 0


def _before_last_character(text: str) -> int:
    """Before the last character and its combining marks, which may go on in the next block; all for a single one."""
    at = len(text) - 1
    while at > 0 and unicodedata.category(text[at]).startswith("M"):
        at -= 1
    return at or len(text)
