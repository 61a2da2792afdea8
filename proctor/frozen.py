"""The exam of an experiment, drawn once and frozen: items, who leaked, exemplars."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaluation import benchmarks
from evaluation.benchmarks.splits import draw, members
from evaluation.items import Item
from proctor.atomic import read_jsonl, write_jsonl
from proctor.experiment import Experiment
from proctor.experiment_sections import BenchmarkConfig

WITH_DEV = ("embedded", "mmlu", "ceval")
"""Formats whose own path has a split dev, made for exemplars."""


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


def draw_exam(experiment: Experiment, exam: str | None = None, *, build: str | None = None) -> FrozenExam:
    """Loads the benchmark and draws the exam: a pure function of the files and the seed.

    exam: name of an exam or group with its own benchmark; build: of a build with its own seeds; None: the experiment's
    """
    own = exam is None and build is None
    config, where = experiment.benchmark, "benchmark"
    if exam is not None:
        config, where = experiment.benchmark_of(exam), f"{experiment.place(exam)}.benchmark"
    elif build is not None:
        config, where = experiment.builds[build].benchmark or config, f"builds.{build}.benchmark"
    found = read_benchmark(config)
    items = found.items
    if config.limit is not None:
        if config.limit > len(items):
            raise ValueError(f"{where}.limit is {config.limit}, but the benchmark has {len(items)} items")
        items = draw(items, config.limit, experiment.seed)
    leaked = frozenset(members(items, experiment.leaked_items, experiment.seed) if own else ())
    sharing = [
        config
        for name, config in experiment.exams.items()
        if (name == exam if exam is not None else config.build == build and config.benchmark is None)
    ]
    if any(e.options.get("shots") for e in sharing):
        pool, lacking = exemplar_pool(config, items), list[str]()
    else:
        pool, lacking = pool_if_any(config, items)
    notes = (*found.notes(), *lacking)
    return FrozenExam(items, leaked, pool, notes, halved=own)


def read_benchmark(config: BenchmarkConfig) -> benchmarks.Benchmark:
    """All of a benchmark's items, and what is amiss with them."""
    return benchmarks.read(
        config.format, _path(config.path), split=config.split, duplicates=config.duplicates, columns=config.columns
    )


def exemplar_pool(config: BenchmarkConfig, items: Sequence[Item]) -> list[Item]:
    """Where few-shot examples are drawn from, without the examined items; empty if there is no place to look.

    A single file is no place: its other items may be examined too. ValueError if the pool can't be read.
    """
    own = _path(config.path)
    single = own is not None and own.is_file() and own.suffix.lower() != ".zip"
    if config.exemplars is None and (config.format not in WITH_DEV or single):
        return []
    path = config.path if config.exemplars is None else config.exemplars
    split = config.exemplar_split or ("dev" if config.exemplars is None else None)
    kind = config.exemplar_format or config.format
    columns = config.columns if kind == config.format else None
    pool = benchmarks.load(kind, _path(path), split=split, duplicates="report", columns=columns)
    if any(item.split == "test" for item in pool):
        raise ValueError(
            f"exemplars {path}: the split is test; exemplars come from a train or dev split, never from the test split"
        )
    asked = {item.id for item in items}
    return [item for item in pool if item.id not in asked]


def pool_if_any(config: BenchmarkConfig, items: Sequence[Item]) -> tuple[list[Item], list[str]]:
    """The pool and notes on it: where nobody named one and the benchmark's own can't be had, that is no error."""
    try:
        return exemplar_pool(config, items), []
    except ValueError as error:
        if config.exemplars is not None or config.exemplar_split is not None:
            raise
        return [], [f"no exemplars: {error}"]


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


def _path(value: str | None) -> Path | None:
    return None if value is None else Path(value).expanduser()
