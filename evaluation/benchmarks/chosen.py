"""A benchmark as an experiment chooses it: its files, its items and its pool of exemplars."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from evaluation import benchmarks
from evaluation.items import Item
from serving.model.fingerprint import file_hash
from serving.settings import Strict


def read_benchmark(config: BenchmarkConfig) -> benchmarks.Benchmark:
    """All of a benchmark's items, and what is amiss with them."""
    return benchmarks.read(
        config.format, _path(config.path), split=config.split, duplicates=config.duplicates, columns=config.columns
    )


def exemplar_pool(config: BenchmarkConfig, items: Sequence[Item]) -> list[Item]:
    """Where few-shot examples are drawn from, without the examined items; empty if there is no place to look.

    A single file is no place: its other items may be examined too. Examined items in the pool (the same id) are left
    out with a warning; copies in another form are left out of each item's own exemplars (``splits.copies_of``).
    ValueError if the pool can't be read.
    """
    own = _path(config.path)
    single = own is not None and own.is_file() and own.suffix.lower() != ".zip"
    if config.exemplars is None and (benchmarks.dev_split(config.format) is None or single):
        return []
    path = config.path if config.exemplars is None else config.exemplars
    split = config.exemplar_split or (benchmarks.dev_split(config.format) if config.exemplars is None else None)
    kind = config.exemplar_format or config.format
    columns = config.columns if kind == config.format else None
    pool = benchmarks.load(kind, _path(path), split=split, duplicates="report", columns=columns)
    if any(item.split == "test" for item in pool):
        raise ValueError(
            f"exemplars {path}: the split is test; exemplars come from a train or dev split, never from the test split"
        )
    asked = {item.id for item in items}
    kept = [item for item in pool if item.id not in asked]
    if len(kept) < len(pool):
        logging.getLogger(__name__).warning(
            "%d of %d exemplars are examined items and are left out", len(pool) - len(kept), len(pool)
        )
    return kept


def pool_if_any(config: BenchmarkConfig, items: Sequence[Item]) -> tuple[list[Item], list[str]]:
    """The pool and notes on it: where nobody named one and the benchmark's own can't be had, that is no error."""
    try:
        return exemplar_pool(config, items), []
    except ValueError as error:
        if config.exemplars is not None or config.exemplar_split is not None:
            raise
        return [], [f"no exemplars: {error}"]


def _path(value: str | None) -> Path | None:
    return None if value is None else Path(value).expanduser()


def benchmark_files(config: BenchmarkConfig) -> dict[str, str]:
    """Hashes of what a benchmark is read from."""
    files = {
        key: source_hash(Path(value).expanduser())
        for key, value in (("path", config.path), ("exemplars", config.exemplars))
        if value is not None
    }
    return files or package_hash()


def source_hash(path: Path) -> str:
    """Hash of a benchmark's file, or of every file in its folder."""
    import hashlib

    if not path.exists():
        raise ValueError(f"benchmark path {path} does not exist")
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    lines = [f"{file.relative_to(path) if path.is_dir() else file.name}\0{file_hash(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def package_hash() -> dict[str, str]:
    """Hashes of the embedded exam."""
    import evaluation

    folder = Path(evaluation.__file__).parent / "data"
    return {file.name: file_hash(file) for file in sorted(folder.glob("*.jsonl"))}


class BenchmarkConfig(Strict):
    """Where the items come from.

    format, path, split: see ``proctor list benchmarks``; ``embedded`` is the project's own exam and takes no path
    columns: which column is what, for format ``table`` (docs/benchmarks.md)
    limit: that many items, drawn with the seed (None: all)
    duplicates: rows that stand twice are an error, or reported and left out
    exemplars, exemplar_split: the pool of few-shot examples: a path (None: the benchmark's own, where the format has a
        dev split), and the split in it (None: dev of the own path, all of another)
    exemplar_format: format of ``exemplars``, where it isn't the benchmark's (``jsonl``: what a build wrote)
    """

    format: str = "embedded"
    path: str | None = None
    split: str | None = None
    columns: dict[str, Any] | None = None
    limit: int | None = Field(default=None, ge=2)
    duplicates: Literal["error", "report"] = "error"
    exemplars: str | None = None
    exemplar_split: str | None = None
    exemplar_format: str | None = None

    @model_validator(mode="after")
    def _a_format_of_some_file(self) -> BenchmarkConfig:
        if self.exemplar_format is not None and self.exemplars is None:
            raise ValueError("exemplar_format is the format of 'exemplars'; name that path, too")
        return self

    @model_serializer(mode="wrap")
    def _said_where_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without the key where it is not given: the inputs of exams frozen before it existed stay as they were."""
        found: dict[str, Any] = handler(self)
        if found.get("exemplar_format") is None:
            found.pop("exemplar_format", None)
        return found
