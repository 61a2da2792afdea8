"""Benchmarks by format. A format is one file with a function ``rows`` (and ``DEV_SPLIT``, where a split is made for
exemplars) and one line here, imported when it is used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from serving.named import lookup

if TYPE_CHECKING:
    from evaluation.benchmarks.reading import Located
    from evaluation.items import Item

FORMATS = {
    "jsonl": "evaluation.benchmarks.proctor_jsonl:rows",
    "arc": "evaluation.benchmarks.arc:rows",
    "mmlu": "evaluation.benchmarks.mmlu:rows",
    "hellaswag": "evaluation.benchmarks.hellaswag:rows",
    "ceval": "evaluation.benchmarks.ceval:rows",
    "gsm8k": "evaluation.benchmarks.gsm8k:rows",
    "bbh": "evaluation.benchmarks.bbh:rows",
    "mt_bench": "evaluation.benchmarks.mt_bench:rows",
    "self_instruct": "evaluation.benchmarks.self_instruct:rows",
    "table": "evaluation.benchmarks.table:rows",
    "embedded": "evaluation.benchmarks.embedded:rows",
}

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """What was read.

    items: each once, in the order of the files
    duplicates: one line for each row that repeats an earlier item and was left out, naming both places
    repeated_options: one line for each item (kept) that has the same option twice
    padded: one line for each item (kept) of whose options some only filled the row up and were left out
    """

    items: list[Item]
    duplicates: list[str]
    repeated_options: list[str]
    padded: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        """What is amiss, the first of each kind spelt out."""
        found = []
        if self.duplicates:
            found.append(f"{len(self.duplicates)} copies left out: {'; '.join(_first(self.duplicates))}")
        if self.repeated_options:
            shown = "; ".join(_first(self.repeated_options))
            found.append(f"{len(self.repeated_options)} items with repeated options kept: {shown}")
        if self.padded:
            shown = "; ".join(_first(self.padded))
            found.append(f"{len(self.padded)} items without the N/A or null among their options: {shown}")
        return found


def dev_split(format: str) -> str | None:
    """The split of a format's own path that is made for exemplars (``DEV_SPLIT`` of its module), None if there is none.
    ValueError for an unknown format."""
    found: str | None = getattr(
        import_module(lookup(FORMATS, format, "benchmark format").__module__), "DEV_SPLIT", None
    )
    return found


def formats() -> tuple[str, ...]:
    """The names of all formats."""
    return tuple(FORMATS)


def load(
    format: str,
    path: Path | None = None,
    *,
    split: str | None = None,
    limit: int | None = None,
    duplicates: Literal["error", "report"] = "error",
    columns: Mapping[str, Any] | None = None,
) -> list[Item]:
    """The items of a benchmark: ``read(...).items``; with ``report``, what was found amiss is logged as a warning."""
    benchmark = read(format, path, split=split, limit=limit, duplicates=duplicates, columns=columns)
    log = logging.getLogger(__name__)
    for note in benchmark.notes():
        log.warning("%s", note)
    return benchmark.items


def read(
    format: str,
    path: Path | None = None,
    *,
    split: str | None = None,
    limit: int | None = None,
    duplicates: Literal["error", "report"] = "error",
    columns: Mapping[str, Any] | None = None,
) -> Benchmark:
    """A benchmark's items and what was found amiss with them.

    path: file or folder in the publisher's own layout or in Hugging Face's; None for the embedded exam
    split: only this split; a file that doesn't tell its split is taken as the one asked for
    limit: only the first items; the whole file is checked all the same
    duplicates: items that occur twice, and items with one option twice, are an error, or are reported (the published
        MMLU has some of both): later copies are left out, repeated options kept
    columns: format ``table`` only: which column holds what (``evaluation.benchmarks.table``)

    ValueError names file, line and mend of the first malformed row; it also refuses an unknown format or split and an
    empty benchmark.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}; it must be at least 1, or left out for all items")
    if duplicates not in ("error", "report"):
        raise ValueError(f"duplicates is {duplicates!r}; it must be error or report")
    found = list(_rows(format, path, split, columns))
    where = f"benchmark {format} ({path})" if path else f"benchmark {format}"
    if not found:
        raise ValueError(f"{where} has no items; the file is empty")
    wanted = [row for row in found if split in (None, row.item.split)]
    if not wanted:
        there_are = ", ".join(sorted({row.item.split for row in found}))
        raise ValueError(f"{where} has no split {split!r}; it has: {there_are}")

    first: dict[str, Located] = {}
    copies: list[str] = []
    for row in wanted:
        earlier = first.setdefault(row.item.id, row)
        if earlier is not row:
            copies.append(f"{row.place} repeats the item of {earlier.place}")
    repeated = [f"{row.place} has the option {row.repeated!r} twice" for row in first.values() if row.repeated]
    if duplicates == "error" and (copies or repeated):
        raise ValueError(_complaint(where, copies, repeated))
    padded = [f"{row.place} has {row.padding} of them" for row in first.values() if row.padding]
    items = [row.item for row in first.values()]
    return Benchmark(items=items[:limit], duplicates=copies, repeated_options=repeated, padded=padded)


def _rows(format: str, path: Path | None, split: str | None, columns: Mapping[str, Any] | None) -> Iterator[Located]:
    rows: Callable[..., Iterator[Located]] = lookup(FORMATS, format, "benchmark format")
    if path is None and format != "embedded":
        raise ValueError(f"benchmark format {format!r} needs a path")
    if columns is not None and format != "table":
        raise ValueError(
            f"columns were given, but format {format!r} knows its own; leave them out, or use format: table"
        )
    return rows(path, split, columns) if format == "table" else rows(path, split)


def _complaint(where: str, copies: list[str], repeated: list[str]) -> str:
    shown = [*_first(copies), *_first(repeated)]
    return (
        f"{where} has {len(copies)} duplicate items and {len(repeated)} items with repeated options:\n  "
        + "\n  ".join(shown)
        + "\nmend the file, or set duplicates: report (--duplicates report) to go on: copies are left out, items with "
        "repeated options kept"
    )


def _first(lines: list[str]) -> list[str]:
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
