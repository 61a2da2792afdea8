"""estimate: what a run will ask of its models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor.commands.runs import ExperimentFile, Override


def estimate(
    experiment: ExperimentFile,
    overrides: Override = [],  # noqa: B006 - typer reads the default, nobody changes it
    items: Annotated[int, typer.Option(min=2, help="Items of each exam to sample with the real models.")] = 8,
    sample: Annotated[bool, typer.Option(help="Measure a sample; without it, calls only.")] = True,
    run: Annotated[Path | None, typer.Option("--run", help="Show what this finished run measured beside it.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the figures to this JSON file, too.")] = None,
) -> None:
    """Estimate calls, tokens, time and memory of an experiment, without training, from a rehearsal and a sample."""
    from proctor.atomic import write_json
    from proctor.estimate import as_json, measured, table
    from proctor.estimate import estimate as estimated
    from proctor.experiment import load_experiment
    from proctor.preflight import preflight
    from proctor.runfolder import open_run

    loaded = load_experiment(experiment, overrides)
    after = None if run is None else measured(open_run(run))
    preflight(loaded)
    before = estimated(loaded, items=items if sample else None)
    table(before, after)
    if any(exam.prefilter for exam in loaded.exams.values()):
        print("note: the prefilter is not in it, and its exam is counted as if every item were kept")
    for name, group in loaded.groups.items():
        if group.protocol == "peer_examination":
            print(f"note: group {name} is not in it: what peers ask depends on the questions that they write")
    if any(candidate.recipe for candidate in loaded.candidates.values()):
        print("note: training is not in it; trained candidates are taken to answer as their base does")
    for name in loaded.builds:
        print(
            f"note: build {name} is counted as if every first reply of its models could be used: retries come on top,"
        )
        print("      and an exam that comes out smaller is asked less")
    unsampled = [name for name, stage in before.items() if sample and stage.seconds is None]
    if unsampled:
        print(f"note: calls only of {', '.join(unsampled)}: the sample's build made no item for them")
    if out is not None:
        write_json(out, as_json(before))
