"""rank, peer: one exam of several models together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor.commands.options import (
    Candidates,
    Drawn,
    Dtype,
    Engine,
    Format,
    Length,
    Options,
    Out,
    Schedule,
    Seed,
    Split,
)


def rank(
    candidate: Candidates,
    examiner: Annotated[str, typer.Option(help="Model that compares their answers.")],
    out: Out,
    benchmark: Annotated[
        Path | None, typer.Option(help="Benchmark file or folder (the embedded exam if none).")
    ] = None,
    format: Format = None,
    split: Split = None,
    limit: Drawn = None,
    seed: Seed = 0,
    engine: Engine = "auto",
    dtype: Dtype = "auto",
    max_length: Length = None,
    schedule: Schedule = "lockstep",
    option: Options = [],  # noqa: B006
) -> None:
    """Rank models by comparison of their answers: win rates, Bradley-Terry, the examiner's inconsistency."""
    from proctor.commands.grouping import Serving, examine_group
    from proctor.commands.inputs import benchmark_given
    from serving.named import named_values

    examine_group(
        "ranking",
        named_values(candidate, "--candidate", form="NAME=DIR", strict=True),
        {"examiner": examiner},
        option,
        Serving(engine, dtype, max_length, schedule),
        benchmark=benchmark_given(format, benchmark, split=split),
        limit=limit,
        seed=seed,
        out=out,
    )
    print(f"figures: {out / 'figures'}; records: {out / 'records.jsonl'}")


def peer(
    candidate: Candidates,
    out: Out,
    seed: Seed = 0,
    engine: Engine = "auto",
    dtype: Dtype = "auto",
    max_length: Length = None,
    schedule: Schedule = "lockstep",
    option: Options = [],  # noqa: B006
) -> None:
    """Let models examine each other: full marks by examiner, AVG, AVG_weight, win rates by mean and by vote."""
    from proctor.commands.grouping import Serving, examine_group
    from serving.named import named_values

    models = named_values(candidate, "--candidate", form="NAME=DIR", strict=True)
    serving = Serving(engine, dtype, max_length, schedule)
    examine_group("peer_examination", models, {}, option, serving, seed=seed, out=out)
    print(f"figures: {out / 'figures'}; records: {out / 'records.jsonl'}")
