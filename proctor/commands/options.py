"""Command-line values to settings, with errors that say what would be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

if TYPE_CHECKING:
    from evaluation.benchmarks.chosen import BenchmarkConfig
    from serving.model.spec import ModelSpec
    from serving.role_engines import Mode


def key_values(pairs: Sequence[str]) -> dict[str, Any]:
    """``key.sub=value`` pairs as nested dictionaries, in the grammar of an experiment's ``-s`` (OmegaConf's)."""
    from proctor.experiment.yaml_file import overridden

    return overridden(pairs)


def model_spec(path: str, **settings: Any) -> ModelSpec:
    """A model named on the command line."""
    from serving.model.spec import ModelSpec
    from serving.settings import validate

    return validate(ModelSpec, {"path": path, **settings}, where=f"model {path}").resolved()


def refuse_reserved(settings: Mapping[str, Any], reserved: Mapping[str, str], flag: str = "-s") -> None:
    """ValueError if a setting is one that the command sets itself; ``reserved`` says what to do instead."""
    for key, mend in reserved.items():
        if key in settings:
            raise ValueError(f"{flag} {key}=... can't be set: {mend}")


def one_of(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(known)}")


def checked_schedule(value: str) -> Mode:
    """``--schedule`` as a mode. ValueError for an unknown one, and for one that this machine can't keep."""
    from serving import role_engines as casting

    one_of("--schedule", value, get_args(casting.Mode))
    casting.check_mode(value)
    return cast("Mode", value)


def names(text: str) -> tuple[str, ...]:
    """``a, b`` as ("a", "b")."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def benchmark_config(format: str, path: Path | None, *, columns: str | None = None, **settings: Any) -> BenchmarkConfig:
    """A benchmark named on the command line. columns: a YAML mapping."""
    from evaluation.benchmarks.chosen import BenchmarkConfig
    from proctor.experiment.yaml_file import plain
    from serving.settings import validate

    if columns is not None:
        settings["columns"] = plain(columns, f"--columns {columns!r}")
    values = {"format": format, "path": None if path is None else str(path), **settings}
    return validate(BenchmarkConfig, values, where="the benchmark")


Out = Annotated[Path, typer.Option("--out", help="Folder for the results.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of everything that is drawn.")]
Engine = Annotated[str, typer.Option(help="auto, vllm, transformers or scripted.")]
Dtype = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
Schedule = Annotated[str, typer.Option(help="lockstep, batch-invariant or fast.")]
Length = Annotated[int | None, typer.Option(min=64, help="Context in tokens (the models' own if left out).")]
Options = Annotated[list[str], typer.Option("-o", "--option", help="Protocol option key=value (YAML value).")]
Format = Annotated[str | None, typer.Option(help="See 'proctor list benchmarks'; jsonl where left out.")]
Split = Annotated[str | None, typer.Option(help="Split of the benchmark.")]
Columns = Annotated[str | None, typer.Option(help="Column map (format table), as YAML: {question: q}.")]
Duplicates = Annotated[str, typer.Option(help="error, or report and leave out.")]
Drawn = Annotated[int | None, typer.Option("--limit", min=1, help="Only so many items, drawn with the seed.")]
Candidates = Annotated[list[str], typer.Option("--candidate", help="NAME=DIR of a model (repeatable).")]
