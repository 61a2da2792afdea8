"""rank, peer: one exam of several models together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Candidates = Annotated[list[str], typer.Option("--candidate", help="NAME=DIR of a model (repeatable).")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the results.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of everything that is drawn.")]
Engine = Annotated[str, typer.Option(help="auto, vllm, transformers or scripted.")]
Dtype = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
Schedule = Annotated[str, typer.Option(help="lockstep, batch-invariant or fast.")]
Length = Annotated[int | None, typer.Option(min=64, help="Context in tokens (the models' own if left out).")]
Options = Annotated[list[str], typer.Option("-o", "--option", help="Protocol option key=value (YAML value).")]


def rank(
    candidate: Candidates,
    examiner: Annotated[str, typer.Option(help="Model that compares their answers.")],
    out: Out,
    benchmark: Annotated[
        Path | None, typer.Option(help="Benchmark file or folder (the embedded exam if none).")
    ] = None,
    format: Annotated[str | None, typer.Option(help="See 'proctor list benchmarks'; jsonl if left out.")] = None,
    split: Annotated[str | None, typer.Option(help="Split of the benchmark.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many items, drawn with the seed.")] = None,
    seed: Seed = 0,
    engine: Engine = "auto",
    dtype: Dtype = "auto",
    max_length: Length = None,
    schedule: Schedule = "lockstep",
    option: Options = [],  # noqa: B006
) -> None:
    """Rank models by comparison of their answers: win rates, Bradley-Terry, the examiner's inconsistency."""
    from evaluation import benchmarks
    from evaluation.benchmarks.splits import draw
    from evaluation.protocols import checked_options
    from evaluation.protocols.ranking import EXAMINER, Ranking
    from proctor.commands.options import benchmark_config, key_values, readable
    from proctor.grouping import examine_once, named_models, specs_of

    models = named_models(candidate)
    options = key_values(option)
    made = Ranking(checked_options("ranking", Ranking, options), candidates=list(models), seed=seed)
    specs = specs_of({**models, EXAMINER: examiner}, engine=engine, dtype=dtype, max_length=max_length)
    kind = format or ("embedded" if benchmark is None else "jsonl")
    benchmark_config(kind, benchmark, split=split)
    items = readable(lambda: benchmarks.load(kind, benchmark, split=split), benchmark)
    if limit is not None:
        if limit > len(items):
            raise ValueError(f"--limit is {limit}, but the benchmark has {len(items)} items")
        items = draw(items, limit, seed)
    metrics = examine_once(made, items, specs, options=options, seed=seed, schedule=schedule, out=out)
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
    from evaluation.protocols import checked_options
    from evaluation.protocols.peer_examination import PeerExamination
    from proctor.commands.options import key_values
    from proctor.grouping import examine_once, named_models, specs_of

    models = named_models(candidate)
    options = key_values(option)
    made = PeerExamination(
        checked_options("peer_examination", PeerExamination, options), candidates=list(models), seed=seed
    )
    specs = specs_of(models, engine=engine, dtype=dtype, max_length=max_length)
    metrics = examine_once(made, made.assignments(), specs, options=options, seed=seed, schedule=schedule, out=out)
    show_peer(metrics, list(models))
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
