"""build: models write an exam, without an experiment file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def build(
    builder: Annotated[str, typer.Argument(metavar="BUILDER", help="See 'proctor list builders'.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the exam.")],
    model: Annotated[
        list[str], typer.Option("--model", help="ROLE=DIR, or DIR for every role without its own (repeatable).")
    ] = [],  # noqa: B006
    benchmark: Annotated[Path | None, typer.Option(help="Benchmark whose items are the seeds.")] = None,
    format: Annotated[str | None, typer.Option(help="See 'proctor list benchmarks'; jsonl where left out.")] = None,
    split: Annotated[str | None, typer.Option(help="Split of the benchmark.")] = None,
    columns: Annotated[str | None, typer.Option(help="Column map (format table), as YAML: {question: q}.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many seeds, drawn with the seed.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of everything that is drawn.")] = 0,
    engine: Annotated[str, typer.Option(help="auto, vllm, transformers or scripted.")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    duplicates: Annotated[str, typer.Option(help="error, or report and leave out.")] = "error",
    schedule: Annotated[str, typer.Option(help="lockstep, batch-invariant or fast.")] = "lockstep",
    option: Annotated[list[str], typer.Option("-o", "--option", help="Option of the builder: key=value (YAML).")] = [],  # noqa: B006
) -> None:
    """Let models write an exam: items.jsonl (a benchmark file), records.jsonl and metrics.json in --out."""
    from evaluation import benchmarks, builders
    from evaluation.benchmarks.splits import draw
    from proctor.adhoc import once
    from proctor.atomic import read_json
    from proctor.building import build_exam, check_weights, describe
    from proctor.commands.options import benchmark_config, checked_schedule, key_values, model_spec, one_of, readable
    from proctor.frozen import FrozenExam
    from proctor.preflight import check_model
    from serving.fingerprint import model_identity

    one_of("--duplicates", duplicates, ("error", "report"))
    mode = checked_schedule(schedule)
    options = key_values(option)
    made = builders.build(builder, options, seed=seed)
    models = {}
    for role, path in playing(made.roles, model).items():
        models[role] = model_spec(path, engine=engine, dtype=dtype, score_dtype=dtype)
        check_model(models[role], f"--model {role}={path}")
    check_weights(made, models)
    items = []
    if made.seeds:
        kind = format or ("embedded" if benchmark is None else "jsonl")
        config = benchmark_config(kind, benchmark, columns=columns, split=split)
        items = readable(
            lambda: benchmarks.load(
                kind,
                benchmark,
                split=split,
                duplicates=duplicates,  # type: ignore[arg-type]
                columns=config.columns,
            ),
            benchmark,
        )
        if limit is not None:
            if limit > len(items):
                raise ValueError(f"--limit is {limit}, but the benchmark has {len(items)} items")
            items = draw(items, limit, seed)
    elif benchmark is not None or format is not None or limit is not None:
        raise ValueError(f"builder {builder} takes no seeds; leave --benchmark, --format and --limit out")
    for dialogue in made.dialogues(items):
        dialogue.close()
    inputs: dict[str, Any] = {
        "builder": builder,
        "version": made.version,
        "options": options,
        "seeds": [item.id for item in items],
        "models": {role: model_identity(spec) for role, spec in models.items()},
        "seed": seed,
        "schedule": schedule,
        "prompts": made.prompt_hashes(),
    }

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

    if not once(out, inputs, body):
        print("nothing to do: done already")
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
