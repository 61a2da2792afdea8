"""rank, peer: one exam of several models together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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

    metrics = examine_group(
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
    show_ranking(metrics)
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
    show_peer(examine_group("peer_examination", models, {}, option, serving, seed=seed, out=out), list(models))
    print(f"figures: {out / 'figures'}; records: {out / 'records.jsonl'}")


def show_ranking(metrics: dict[str, Any]) -> None:
    """The table of a finished ranking."""
    strengths = metrics["bradley_terry"]
    calls = metrics["calls"]
    print(f"{metrics['n']} questions, {calls['comparisons']} comparisons, {calls['verdicts']} verdicts")
    print(f"  {'candidate':24} {'win rate':>8}  Bradley-Terry [95%]")
    for name, value in sorted(metrics["win_rates"]["mean"].items(), key=lambda row: -(row[1] or 0.0)):
        strength, interval = strengths["strengths"][name], strengths["intervals"][name]
        bounds = "" if interval is None else " [{:.2f}, {:.2f}]".format(*interval)
        print(f"  {name:24} {number(value):>8}  {number(strength)}{bounds}")
    if strengths["reason"]:
        print(f"no Bradley-Terry strengths: {strengths['reason']}")
    print(f"inconsistency of the examiner: {number(metrics['inconsistency'])}")


def show_peer(metrics: dict[str, Any], models: list[str]) -> None:
    """The table of a finished peer examination."""
    print(f"{metrics['n']} questions of {metrics['asked']}, full marks in %")
    print("  " + " ".join(f"{name:>14}" for name in ["", *models, "AVG", "AVG_weight"]))
    for name in models:
        row = [metrics["full_marks"][name][examiner] for examiner in models]
        cells = [*row, metrics["AVG"][name], metrics["AVG_weight"][name]]
        print("  " + " ".join([f"{name:>14}", *(f"{number(cell, 1):>14}" for cell in cells)]))
    combined = metrics["pairwise"]["combined"]
    for name in models:
        mean, vote = combined["by_mean"]["mean"][name], combined["by_vote"]["mean"][name]
        print(f"  {name}: win rate by mean {number(mean)}, by vote {number(vote)}")
    for line in metrics["notices"]:
        print(f"notice: {line}")


def number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
