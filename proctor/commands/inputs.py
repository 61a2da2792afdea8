"""What an ad hoc verb's flags mean: models, items, and the digest of all that goes in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from evaluation import benchmarks
from evaluation.benchmarks.splits import draw
from evaluation.items import Item
from proctor.commands.options import benchmark_config
from serving.files import readable
from serving.model.fingerprint import model_identity
from serving.model.spec import ModelSpec

if TYPE_CHECKING:
    from evaluation.benchmarks.chosen import BenchmarkConfig


def read_items(
    config: BenchmarkConfig, *, limit: int | None = None, drawn: int | None = None, seed: int = 0
) -> list[Item]:
    """A benchmark's items: the first ``limit`` of them, or ``drawn`` of them, drawn with the seed.

    ValueError for a file that can't be read, or fewer items than are to be drawn.
    """
    path = None if config.path is None else Path(config.path)
    items = readable(
        lambda: benchmarks.load(
            config.format,
            path,
            split=config.split,
            limit=limit,
            duplicates=config.duplicates,
            columns=config.columns,
        ),
        path,
    )
    if drawn is None:
        return items
    if drawn > len(items):
        raise ValueError(f"--limit is {drawn}, but the benchmark has {len(items)} items")
    return draw(items, drawn, seed)


def benchmark_given(
    format: str | None,
    path: Path | None,
    *,
    split: str | None = None,
    columns: str | None = None,
    duplicates: Literal["error", "report"] | str = "error",
) -> BenchmarkConfig:
    """Without a format, a path is of format jsonl, and no path means the embedded exam."""
    kind = format or ("embedded" if path is None else "jsonl")
    return benchmark_config(kind, path, columns=columns, split=split, duplicates=duplicates)


class Versioned(Protocol):
    """A protocol or a builder: what decides, besides its options, what it computes."""

    @property
    def version(self) -> int: ...

    def prompt_hashes(self) -> dict[str, str]: ...


def inputs_of(
    made: Versioned,
    models: Mapping[str, ModelSpec],
    *,
    options: Mapping[str, Any],
    seed: int,
    schedule: str,
    **named: str | Sequence[Item],
) -> dict[str, Any]:
    """All that decides a call's result, for ``proctor.run_folder.single.once``.

    named: its name; items, seeds, exemplars (by id)
    """
    return {
        "version": made.version,
        "options": dict(options),
        "models": {role: model_identity(spec) for role, spec in models.items()},
        "seed": seed,
        "schedule": schedule,
        "prompts": made.prompt_hashes(),
        **{key: value if isinstance(value, str) else [item.id for item in value] for key, value in named.items()},
    }
