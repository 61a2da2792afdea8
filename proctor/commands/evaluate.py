"""``proctor evaluate``: one model, one protocol, ad hoc."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from evaluation.show.terminal_text import harmless
from proctor.commands.options import Columns, Dtype, Duplicates, Engine, Options, Out, Schedule, Seed, Split


def _show(path: Path) -> None:
    for key, value in json.loads(path.read_text(encoding="utf-8")).items():
        if not isinstance(value, dict | list) or key.endswith("interval"):
            print(harmless(f"  {key}: {value}"))


def evaluate(
    candidate: Annotated[str, typer.Option(help="Model folder (or 'embedded').")],
    out: Out,
    protocol: Annotated[str, typer.Option(help="See 'proctor list protocols'.")] = "static",
    benchmark: Annotated[Path | None, typer.Option(help="Benchmark file or folder.")] = None,
    format: Annotated[str, typer.Option(help="See 'proctor list benchmarks'.")] = "jsonl",
    split: Split = None,
    mode: Annotated[str | None, typer.Option(help="static: letter, cloze or generate.")] = None,
    shots: Annotated[int | None, typer.Option(help="static: few-shot exemplars.")] = None,
    text_format: Annotated[str | None, typer.Option(help="static: plain or chat.")] = None,
    exemplars: Annotated[
        Path | None, typer.Option(help="Pool of exemplars (the benchmark's own dev split if left out).")
    ] = None,
    exemplar_split: Annotated[str | None, typer.Option(help="Split of the exemplars.")] = None,
    exemplar_format: Annotated[
        str | None, typer.Option(help="Their format, where it isn't --format (jsonl: what a build wrote).")
    ] = None,
    interactor: Annotated[str | None, typer.Option(help="Model that asks (kieval).")] = None,
    evaluator: Annotated[
        str | None, typer.Option(help="Model that judges (kieval, mt_bench, pairwise, idgen).")
    ] = None,
    examiner: Annotated[str | None, typer.Option(help="Model that marks (lm_examiner).")] = None,
    columns: Columns = None,
    limit: Annotated[int | None, typer.Option(help="Only the first N items (build and rank draw theirs).")] = None,
    seed: Seed = 0,
    engine: Engine = "auto",
    dtype: Dtype = "auto",
    duplicates: Duplicates = "error",
    schedule: Schedule = "lockstep",
    option: Options = [],  # noqa: B006
) -> None:
    """Examine one model with one protocol: records.jsonl and metrics.json in --out."""
    from evaluation import registry as protocols
    from evaluation.benchmarks import dev_split
    from evaluation.benchmarks.chosen import exemplar_pool
    from proctor.checks.experiment import check_model
    from proctor.commands.inputs import inputs_of, read_items
    from proctor.commands.options import benchmark_config, checked_schedule, key_values, model_spec, one_of
    from proctor.run_folder.single import examine_once
    from serving.files import readable

    given = {"mode": mode, "shots": shots, "text_format": text_format}
    options = {key: value for key, value in given.items() if value is not None} | key_values(option)
    kind = protocols.protocol(protocol)
    names = {
        "candidate": candidate,
        "interactor": interactor,
        "evaluator": evaluator or interactor,
        "examiner": examiner,
    }
    models = {}
    for role in kind.roles:
        name = names.get(role)
        if name is None:
            raise ValueError(f"protocol {protocol} needs a model for the role {role}: give --{role} DIR")
        models[role] = model_spec(name, engine=engine, dtype=dtype, score_dtype=dtype)
        check_model(models[role], f"--{role}")
    one_of("--duplicates", duplicates, ("error", "report"))
    keeping = checked_schedule(schedule)
    config = benchmark_config(
        format,
        benchmark,
        columns=columns,
        split=split,
        duplicates=duplicates,
        exemplars=None if exemplars is None else str(exemplars),
        exemplar_split=exemplar_split,
        exemplar_format=exemplar_format,
    )
    items = read_items(config, limit=limit)
    pool = []
    if options.get("shots"):
        if exemplars is None and dev_split(format) is None:
            raise ValueError(
                f"--shots {options['shots']} needs exemplars: give --exemplars FILE (never the examined items)"
            )
        pool = readable(lambda: exemplar_pool(config, items), exemplars or benchmark)
    exam = protocols.build(protocol, options, seed=seed, exemplars=pool)
    inputs = inputs_of(
        exam, models, options=options, seed=seed, schedule=schedule, protocol=protocol, items=items, exemplars=pool
    )
    examine_once(out, exam, items, models=models, mode=keeping, inputs=inputs)
    _show(out / "metrics.json")
    print(f"records: {out / 'records.jsonl'}")
