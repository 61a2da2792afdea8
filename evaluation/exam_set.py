"""The frozen exam: its items, who leaked, its exemplars, and how they lie in a folder."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from evaluation.benchmarks.reading import json_values
from evaluation.items import Item
from serving.files import read_jsonl, write_jsonl


@dataclass(frozen=True)
class FrozenExam:
    """items: in frozen order; leaked: ids of the members; exemplars: the few-shot pool; notes: what was left out;
    halved: whether there are halves (False: nobody leaks these items)."""

    items: list[Item]
    leaked: frozenset[str]
    exemplars: list[Item]
    notes: tuple[str, ...] = ()
    halved: bool = True

    def part(self, which: str, limit: int | None = None) -> list[Item]:
        """Items of the half ``leaked`` or ``untouched``, or of both (``all``): ``limit`` of each half."""
        parts: dict[str, list[Item]] = {}
        for item in self.items:
            parts.setdefault(self.half(item.id), []).append(item)
        wanted = list(parts) if which == "all" else [which]
        chosen = {item.id for half in wanted for item in parts.get(half, [])[:limit]}
        return [item for item in self.items if item.id in chosen]

    def half(self, item_id: str) -> str:
        """``leaked``, ``untouched``, or ``all`` in an exam without halves."""
        return ("leaked" if item_id in self.leaked else "untouched") if self.halved else "all"

    def kept(self, ids: Collection[str]) -> FrozenExam:
        """The exam with these items only."""
        return replace(self, items=[item for item in self.items if item.id in ids])


def write_exam(exam: FrozenExam, folder: Path) -> list[str]:
    """Writes items.jsonl, leaked.jsonl (where there are halves) and exemplars.jsonl; returns their names."""
    write_jsonl(folder / "items.jsonl", [item.to_json() for item in exam.items])
    write_jsonl(folder / "exemplars.jsonl", [item.to_json() for item in exam.exemplars])
    if not exam.halved:
        return ["items.jsonl", "exemplars.jsonl"]
    write_jsonl(folder / "leaked.jsonl", [{"item_id": item.id} for item in exam.items if item.id in exam.leaked])
    return ["items.jsonl", "leaked.jsonl", "exemplars.jsonl"]


def read_exam(folder: Path) -> FrozenExam:
    def items(name: str) -> list[Item]:
        return [Item.from_json(row) for row in read_jsonl(folder / name)]

    file = folder / "leaked.jsonl"
    leaked = frozenset(row["item_id"] for row in read_jsonl(file)) if file.is_file() else frozenset()
    return FrozenExam(items("items.jsonl"), leaked, items("exemplars.jsonl"), halved=file.is_file())


def read_items(path: Path) -> tuple[Item, ...]:
    """Exam items of a JSON Lines file (``Item.to_json``). ValueError with file and line for anything else."""
    items = []
    for place, row in json_values(path):
        try:
            items.append(Item.from_json(row))
        except (TypeError, KeyError) as problem:
            raise place.error(f"not an exam item ({problem}); rows are written by Item.to_json") from None
    if not items:
        raise ValueError(f"{path} holds no exam items")
    return tuple(items)
