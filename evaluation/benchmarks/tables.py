"""Tables of rows from local files: JSON, CSV, Parquet, Arrow, and the folders that Hugging Face's libraries write.

A path is one file, a ``Dataset`` or ``DatasetDict`` written by ``save_to_disk``, or a folder (a snapshot of a data set
repository among them) whose files are found below it. What a name tells is noted, never guessed: the split by the file
(``test-00000-of-00001.parquet``) or the folder it stands in (``test/0000.parquet``, a ``DatasetDict``'s key), the
configuration by the nearest folder that has a name of its own (``ARC-Challenge``, a subject of MMLU, a task of BBH).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluation.benchmarks.arrow import arrow_rows
from evaluation.benchmarks.reading import Place, Row, decode, first_line, json_rows, read_bytes, split_of

ARROW = (".parquet", ".arrow")
JSON = (".jsonl", ".json")
CSV = (".csv", ".tsv")

_NOT_ROWS = {"dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json"}
_DEEPEST = 8
# Folders that say nothing about what is in them: of a repository's cache, of a version, of a hash.
_PLUMBING = re.compile(r"data|default|snapshots|[0-9a-f]{16,64}|\d+\.\d+\.\d+")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_SPLIT_END = re.compile(r"(?:^|[-_.])(?:train|dev|val|valid|validation|test)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsFile:
    """A file of rows.

    split: what its name or folder tells, "" if neither does
    config: the name of the nearest folder that has one of its own, "" if there is none
    """

    file: Path
    split: str
    config: str

    @property
    def name(self) -> str:
        """What the file is about: its name without split and shard, or ``config`` where nothing else is left."""
        if self.file.suffix.lower() == ".arrow":
            return self.config
        stem = _SPLIT_END.sub("", _SHARD.sub("", self.file.stem))
        return self.config if not stem or stem.isdigit() or _PLUMBING.fullmatch(stem) else stem

    def rows(self) -> Iterator[Row]:
        """The rows, read as they are asked for. ValueError names file and line (or row) of what can't be read."""
        suffix = self.file.suffix.lower()
        if suffix in ARROW:
            return arrow_rows(self.file)
        return _headed_rows(self.file) if suffix in CSV else json_rows(self.file)


def tables_of(path: Path, kinds: Sequence[Sequence[str]] = (ARROW, JSON), *, or_else: str = "") -> list[RowsFile]:
    """The tables at a path, by name.

    kinds: groups of suffixes that are read; of a folder only the first group of which it has a file, since a
        publisher's folder may hold the same rows twice
    or_else: what else the caller looked for in a folder, for the error

    ValueError if there is no such path, a file of another kind, or nothing of these kinds in the folder.
    """
    suffixes = [suffix for kind in kinds for suffix in kind]
    wanted = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
    if path.is_file():
        if path.suffix.lower() not in suffixes:
            raise ValueError(f"{path} is no file of rows for this format; its name must end in {wanted}")
        told = split_of(path.name) or (_split_folder(path.parent) if path.suffix.lower() in ARROW else "")
        return [RowsFile(file=path, split=told, config=_config(path.parent))]
    if not path.is_dir():
        raise ValueError(f"there is no file or folder {path}")
    found = [table for table in _below(path, path, suffixes) if table.file.name not in _NOT_ROWS]
    for kind in kinds:
        tables = [table for table in found if table.file.suffix.lower() in kind]
        if tables:
            return tables
    inside = sorted(entry.name for entry in path.iterdir())[:8]
    raise ValueError(f"folder {path} has no file {or_else}ending in {wanted}; it has: {', '.join(inside) or 'nothing'}")


def of_split(
    tables: Sequence[RowsFile], split: str | None, *, default: str, where: Path, twins: Collection[str] = ()
) -> list[RowsFile]:
    """The tables of one split; a table that doesn't tell its split is taken as the one asked for.

    default: read where none is asked for and the tables tell several; a single one is read whatever it is
    twins: names of one and the same split, e.g. dev and val

    The tables say the asked split's name. ValueError if there is no such split, or several and no default.
    """
    told = sorted({table.split for table in tables if table.split})
    if split is None and len(told) < 2:
        return list(tables)
    wanted = default if split is None else split
    chosen = [table for table in tables if table.split == wanted or {table.split, wanted} <= set(twins)]
    if split is not None:
        chosen = chosen or [table for table in tables if not table.split]
    if not chosen:
        said = f"has no split {wanted!r}; it has: {', '.join(told)}"
        raise ValueError(f"{where} {said}" if split else f"{where} has the splits {', '.join(told)}; name one as split")
    return [replace(table, split=wanted) for table in chosen]


def _below(folder: Path, root: Path, suffixes: Sequence[str], split: str = "", depth: int = 0) -> Iterator[RowsFile]:
    """Every table in the folder and below. A saved data set is read by its own list of files."""
    if depth > _DEEPEST:
        raise ValueError(f"{root} has folders more than {_DEEPEST} deep; name the folder that holds the files")
    if (folder / "dataset_dict.json").is_file():
        for name in _listed(folder / "dataset_dict.json", "splits"):
            if not (folder / name / "state.json").is_file():
                raise ValueError(
                    f"{folder}: dataset_dict.json names the split {name!r}, but {name}/state.json is missing"
                )
            yield from _saved(folder / name, split_of(name) or name)
    elif (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file():
        yield from _saved(folder, split)
    else:
        for entry in sorted(folder.iterdir()):
            if entry.is_dir() and not entry.name.startswith((".", "__")):
                yield from _below(entry, root, suffixes, _split_folder(entry) or split, depth + 1)
            elif entry.suffix.lower() in suffixes and not entry.name.startswith("."):
                yield RowsFile(file=entry, split=split_of(entry.name) or split, config=_config(folder))


def _saved(folder: Path, split: str) -> Iterator[RowsFile]:
    """The shards of a ``Dataset`` that ``save_to_disk`` wrote."""
    state = _object(folder / "state.json")
    told = split or split_of(str(state.get("_split") or "")) or split_of(folder.name)
    for name in _listed(folder / "state.json", "_data_files", "filename"):
        if not (folder / name).is_file():
            raise ValueError(f"{folder}: state.json names the file {name!r}, which is missing; copy the folder again")
        yield RowsFile(file=folder / name, split=told, config=_config(folder))


def _listed(file: Path, key: str, inner: str | None = None) -> list[str]:
    """The plain file names that a description lists under ``key``."""
    names = _object(file).get(key)
    if inner and isinstance(names, list):
        names = [entry.get(inner) if isinstance(entry, dict) else None for entry in names]
    if not isinstance(names, list) or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise ValueError(f"{file}: {key!r} must list names inside this folder; write the data set again")
    return names


def _object(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(decode(read_bytes(file), str(file)))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{file}: not valid JSON ({error}); write the data set again") from error
    if not isinstance(value, dict):
        raise ValueError(f"{file} must hold a JSON object; write the data set again")
    return value


def _headed_rows(file: Path) -> Iterator[Row]:
    yield from headed_csv(read_bytes(file), str(file))


def headed_csv(data: bytes, file: str) -> Iterator[Row]:
    """The records of a CSV text under its header. ValueError for a name that repeats, or a record of another length.

    The delimiter is the comma, semicolon, tab or bar that the header has most cells by, or the one that a first line
    ``sep=;`` names, as spreadsheet programs write it.
    """
    text = decode(data, file)
    stated = _SEPARATOR.match(text)
    body = text[stated.end() :] if stated else text
    delimiter = stated[1] if stated else _delimiter(first_line(body))
    reader = csv.reader(io.StringIO(body, newline=""), strict=True, delimiter=delimiter)
    header: list[str] = []
    line = offset = 1 + bool(stated)
    try:
        for record in reader:
            place = Place(file=file, line=line)
            line = reader.line_num + offset
            if not record:
                continue
            if not header:
                header = [name.strip() for name in record]
                twice = sorted(name for name, count in Counter(header).items() if count > 1)
                if twice:
                    raise place.error(f"the header has the column {twice[0]!r} twice; each needs its own name")
                continue
            if len(record) != len(header):
                named = {",": "", ";": " (by semicolons)", "\t": " (by tabs)", "|": " (by bars)"}.get(delimiter, "")
                raise place.error(
                    f"there are {len(record)} columns{named}; the header names {len(header)}: {', '.join(header)}",
                    min(len(record), len(header)) + (len(record) > len(header)),
                )
            yield Row(place=place, fields=dict(zip(header, record, strict=True)))
    except csv.Error as error:
        raise Place(file=file, line=line).error(f"not valid CSV: {error}") from error


_SEPARATOR = re.compile(r"[\r\n]*\"?sep=([;,|\t])\"?\r?\n", re.IGNORECASE)


def _delimiter(header: str) -> str:
    """The mark that a header has most cells by; the comma, if no other has more."""
    counts: dict[str, int] = {}
    for mark in (",", ";", "\t", "|"):
        try:
            counts[mark] = len(next(csv.reader([header], delimiter=mark), []))
        except csv.Error:
            counts[mark] = 0
    return max(counts, key=lambda mark: counts[mark])


def _split_folder(folder: Path) -> str:
    """The split that a folder is named after, "" if it has another name."""
    name = folder.name.lower()
    return split_of(name) if _SPLIT_END.fullmatch(name) else ""


def _config(folder: Path) -> str:
    names = (part.name for part in (folder.absolute(), *folder.absolute().parents))
    return next((n for n in names if n and not _PLUMBING.fullmatch(n) and not _SPLIT_END.fullmatch(n)), "")
