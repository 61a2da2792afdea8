"""build: models write an exam, without an experiment file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.commands.options import Columns, Drawn, Dtype, Duplicates, Engine, Format, Schedule, Seed, Split


def build(
    builder: Annotated[str, typer.Argument(metavar="BUILDER", help="See 'proctor list builders'.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the exam.")],
    model: Annotated[
        list[str], typer.Option("--model", help="ROLE=DIR, or DIR for every role without its own (repeatable).")
    ] = [],  # noqa: B006
    benchmark: Annotated[Path | None, typer.Option(help="Benchmark whose items are the seeds.")] = None,
    format: Format = None,
    split: Split = None,
    columns: Columns = None,
    limit: Drawn = None,
    seed: Seed = 0,
    engine: Engine = "auto",
    dtype: Dtype = "auto",
    duplicates: Duplicates = "error",
    schedule: Schedule = "lockstep",
    option: Annotated[list[str], typer.Option("-o", "--option", help="Option of the builder: key=value (YAML).")] = [],  # noqa: B006
) -> None:
    """Let models write an exam: items.jsonl (a benchmark file), records.jsonl and metrics.json in --out."""
    from evaluation import registry as builders
    from evaluation.exam_set import FrozenExam
    from evaluation.items import Item
    from evaluation.run_builder import build_exam, check_weights, describe
    from proctor.checks.experiment import check_model
    from proctor.commands.inputs import benchmark_given, inputs_of, read_items
    from proctor.commands.options import checked_schedule, key_values, model_spec, one_of
    from proctor.run_folder.single import once
    from serving.files import read_json

    one_of("--duplicates", duplicates, ("error", "report"))
    mode = checked_schedule(schedule)
    options = key_values(option)
    made = builders.build_builder(builder, options, seed=seed)
    models = {}
    for role, path in playing(made.roles, model).items():
        models[role] = model_spec(path, engine=engine, dtype=dtype, score_dtype=dtype)
        check_model(models[role], f"--model {role}={path}")
    check_weights(made, models)
    items: list[Item] = []
    if made.seeds:
        given = benchmark_given(format, benchmark, split=split, columns=columns, duplicates=duplicates)
        items = read_items(given, drawn=limit, seed=seed)
    elif benchmark is not None or format is not None or limit is not None:
        raise ValueError(f"builder {builder} takes no seeds; leave --benchmark, --format and --limit out")
    for dialogue in made.dialogues(items):
        dialogue.close()
    inputs = inputs_of(made, models, options=options, seed=seed, schedule=schedule, builder=builder, seeds=items)

    def body(folder: Path, report: Any) -> list[str]:
        return build_exam(
            made,
            FrozenExam(items, frozenset(), [], halved=False),
            items,
            models=models,
            mode=mode,
            folder=folder,
            ledger_folder=folder / "ledger",
            wave=None,
            report=report,
        )

    once(out, inputs, body)
    for line in describe(read_json(out / "metrics.json")):
        print(line)
    print(f"exam: {out / 'items.jsonl'}")


def playing(roles: tuple[str, ...], given: list[str]) -> dict[str, str]:
    """Model paths by role, from ``ROLE=DIR`` and at most one bare ``DIR`` that plays every other role.

    ValueError for a role that doesn't exist, stands twice, or that nobody plays.
    """
    named: dict[str, str] = {}
    rest: list[str] = []
    for value in given:
        role, sign, path = value.partition("=")
        if not sign or (role not in roles and ("/" in role or Path(value).exists())):
            rest.append(value)
            continue
        if role not in roles:
            raise ValueError(f"--model {value}: there is no role {role!r}; there are: {', '.join(roles)}")
        if role in named:
            raise ValueError(f"--model {value}: the role {role!r} is played by {named[role]} already")
        named[role] = path
    if len(rest) > 1:
        raise ValueError(f"--model {rest[1]}: {rest[0]} plays every role without its own already; give ROLE=DIR")
    missing = [role for role in roles if role not in named]
    if missing and not rest:
        raise ValueError(f"nobody plays {missing[0]!r}; give --model {missing[0]}=DIR, or --model DIR for all roles")
    return {role: named.get(role) or rest[0] for role in roles}
