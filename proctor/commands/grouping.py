"""A group of models examined together, ad hoc."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.benchmarks.chosen import BenchmarkConfig
from serving.model.spec import ModelSpec


class Serving(NamedTuple):
    """How the models are served: all alike. max_length, for models that share a GPU share its memory, too."""

    engine: str
    dtype: str
    max_length: int | None
    schedule: str


def examine_group(
    protocol: str,
    candidates: Mapping[str, str],
    others: Mapping[str, str],
    option: Sequence[str],
    serving: Serving,
    *,
    seed: int,
    out: Path,
    benchmark: BenchmarkConfig | None = None,
    limit: int | None = None,
) -> dict[str, Any]:
    """Records, metrics and figures in ``out``, as ``proctor evaluate`` does; the metrics, also of an earlier call.

    candidates: model paths by name; others: by the protocol's other roles; option: ``key=value``
    benchmark, limit: whose items, and how many are drawn; None: the protocol makes its own
    """
    from evaluation.protocol import Held
    from evaluation.registry import build_group
    from evaluation.run_exam import draw_group
    from evaluation.show.terminal import print_tables
    from proctor.commands.inputs import inputs_of, read_items
    from proctor.commands.options import checked_schedule, key_values
    from proctor.run_folder.single import examine_once

    options = key_values(option)
    exam = build_group(protocol, options, candidates=list(candidates), seed=seed)
    models = _specs({**candidates, **others}, serving)
    items = read_items(benchmark, drawn=limit, seed=seed) if benchmark is not None else exam.assignments() or []
    mode = checked_schedule(serving.schedule)
    inputs = inputs_of(
        exam, models, options=options, seed=seed, schedule=serving.schedule, protocol=protocol, items=items
    )

    def figures(folder: Path, metrics: dict[str, Any]) -> list[str]:
        return [f"figures/{name}" for name in draw_group(exam, metrics, folder / "figures")]

    metrics = examine_once(out, exam, items, models=models, mode=mode, inputs=inputs, further=figures)
    print_tables(type(exam), protocol, Held(options=options, metrics=metrics))
    return metrics


def _specs(paths: Mapping[str, str], serving: Serving) -> dict[str, ModelSpec]:
    from proctor.checks.experiment import check_model
    from proctor.commands.options import model_spec

    settings = {"engine": serving.engine, "dtype": serving.dtype, "score_dtype": serving.dtype}
    specs = {}
    for name, path in paths.items():
        specs[name] = model_spec(path, **settings, max_length=serving.max_length)
        check_model(specs[name], f"{name}={path}")
    return specs
