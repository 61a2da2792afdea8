"""The exam of an experiment, drawn once and frozen: items, who leaked, exemplars."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation import benchmarks
from evaluation.benchmarks.splits import draw, halves
from evaluation.items import Item
from proctor.atomic import read_jsonl, write_jsonl
from proctor.experiment import Experiment


@dataclass(frozen=True)
class FrozenExam:
    """items: in frozen order; leaked: ids of the members; exemplars: the few-shot pool; notes: what was left out."""

    items: list[Item]
    leaked: frozenset[str]
    exemplars: list[Item]
    notes: tuple[str, ...] = ()

    def part(self, which: str, limit: int | None = None) -> list[Item]:
        """Items of the half ``leaked`` or ``untouched``, or of both (``all``): ``limit`` of each half."""
        halves_ = {
            "leaked": [item for item in self.items if item.id in self.leaked],
            "untouched": [item for item in self.items if item.id not in self.leaked],
        }
        wanted = ("leaked", "untouched") if which == "all" else (which,)
        chosen = {item.id for half in wanted for item in halves_[half][:limit]}
        return [item for item in self.items if item.id in chosen]

    def half(self, item_id: str) -> str:
        return "leaked" if item_id in self.leaked else "untouched"


def draw_exam(experiment: Experiment) -> FrozenExam:
    """Loads the benchmark and draws the exam: a pure function of the files and the seed."""
    config = experiment.benchmark
    found = benchmarks.read(config.format, _path(config.path), split=config.split, duplicates=config.duplicates)
    items = found.items
    if config.limit is not None:
        if config.limit > len(items):
            raise ValueError(f"benchmark.limit is {config.limit}, but the benchmark has {len(items)} items")
        items = draw(items, config.limit, experiment.seed)
    leaked, _ = halves(items, experiment.seed)
    pool: list[Item] = []
    if config.exemplars is not None or config.format == "embedded":
        pool = benchmarks.load(config.format, _path(config.exemplars), split=config.exemplar_split, duplicates="report")
        asked = {item.id for item in items}
        pool = [item for item in pool if item.id not in asked]
    return FrozenExam(items, frozenset(leaked), pool, (*found.duplicates, *found.repeated_options))


def write_exam(exam: FrozenExam, folder: Path) -> list[str]:
    """Writes items.jsonl, leaked.jsonl and exemplars.jsonl; returns their names."""
    write_jsonl(folder / "items.jsonl", [item.to_json() for item in exam.items])
    write_jsonl(folder / "leaked.jsonl", [{"item_id": item.id} for item in exam.items if item.id in exam.leaked])
    write_jsonl(folder / "exemplars.jsonl", [item.to_json() for item in exam.exemplars])
    return ["items.jsonl", "leaked.jsonl", "exemplars.jsonl"]


def read_exam(folder: Path) -> FrozenExam:
    def items(name: str) -> list[Item]:
        return [Item.from_json(row) for row in read_jsonl(folder / name)]

    leaked: list[dict[str, Any]] = read_jsonl(folder / "leaked.jsonl")
    return FrozenExam(items("items.jsonl"), frozenset(row["item_id"] for row in leaked), items("exemplars.jsonl"))


def _path(value: str | None) -> Path | None:
    return None if value is None else Path(value).expanduser()
