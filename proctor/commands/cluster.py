"""submit, cancel: experiments on a SLURM cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proctor.commands.runs import ExperimentFile, Out, Override, RunPath, Share


def submit(
    experiment: ExperimentFile,
    profile: Annotated[Path, typer.Option(help="The cluster's profile (YAML); see slurm/profiles/.")],
    overrides: Override = [],  # noqa: B006 - typer reads the default, nobody changes it
    out: Out = None,
    share: Share = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write and print the scripts, submit nothing.")] = False,
) -> None:
    """Submit what is missing of an experiment, and not queued yet, as SLURM jobs."""
    import os

    from proctor.checks.experiment import preflight
    from proctor.cluster.fit import check_environment, check_fit, check_space
    from proctor.cluster.jobs import active_jobs
    from proctor.cluster.serve_jobs import serve_intents
    from proctor.cluster.submit import (
        check_names,
        check_unchanged,
        intents,
        missing_servers,
        placement,
        planned,
        serve_jobs,
        write_scripts,
    )
    from proctor.cluster.submit import submit as send
    from proctor.experiment.load import load_experiment
    from proctor.run_folder.environment import write_environment
    from proctor.run_folder.run import RunFolder, check_free, create
    from proctor.run_folder.stage import StageFolder
    from serving.files import output_folder
    from slurm.profile import read_profile
    from slurm.submitter import available

    site = read_profile(profile)
    if site.device:
        os.environ.setdefault("PROCTOR_DEVICE", site.device)
    loaded = load_experiment(experiment, overrides)
    folder = (out or Path("runs") / loaded.name).resolve()
    check_free(folder, loaded.name)
    stages = preflight(loaded).stages
    check_names(stages, site)
    for stage in stages:
        placement(stage, site)
    serve_jobs(RunFolder(folder, loaded), stages, site)
    for note in check_fit(loaded, site):
        print(note)
    if not dry_run:
        check_environment(site, stages)
        check_space(folder, loaded)
    output_folder(folder, share=share or site.share)
    with StageFolder(folder).lock():  # one submission at a time, and none beside a local run
        active = active_jobs(folder) if not dry_run or available() else {}
        check_unchanged(active, {**intents(stages), **serve_intents(RunFolder(folder, loaded))}, folder)
        made = create(folder, loaded)
        write_environment(made.path)
        plans = planned(made, stages, site, active)
        servers = missing_servers(made, plans, site, active)
        scripts = write_scripts(made, plans, site, servers)
        if dry_run:
            for name, file in scripts.items():
                print(f"##### {name}: {file}\n{file.read_text(encoding='utf-8')}")
            return
        ids = send(made, plans, scripts, active, servers)
    if not ids:
        queued = sum(plan.action == "queued" for plan in plans)
        print(f"nothing to submit: {len(plans) - queued} stages are done, {queued} are queued or running")
        return
    for job in servers:
        print(f"  {job.name:28} {job.name} is job {ids[job.name]}")
    for plan in plans:
        given = ", ".join(f"{job.name} is job {ids[job.name]}" for job in plan.jobs)
        print(f"  {plan.state.stage.name:28} {given or plan.action}")
    print(f"follow them: proctor status {folder}")


def cancel(
    run: RunPath,
    stage: Annotated[
        str | None, typer.Option(help="Only this stage and those that come after it; or a job serve.MODEL alone.")
    ] = None,
) -> None:
    """Cancel the SLURM jobs of a run. What they have computed is kept; submit again to go on."""
    from proctor.cluster.jobs import SHARDS, active_jobs
    from proctor.cluster.serve_jobs import served_together
    from proctor.run_folder.run import open_run
    from proctor.runner.plan import find, plan
    from slurm import submitter

    opened = open_run(run)
    stages = plan(opened.experiment)
    chosen = {one.name for one in stages}
    if stage is not None and stage in served_together(opened):
        chosen = {stage}
    elif stage is not None:
        chosen = {find(stages, stage).name}
        for one in stages:
            if chosen & set(one.needs):
                chosen.add(one.name)
    active = active_jobs(opened.path)
    ended = {name: one.job for name, one in active.items() if stage is None or name.removesuffix(SHARDS) in chosen}
    if not ended:
        print("nothing to cancel: no job of this run is queued or running")
        return
    submitter.cancel(list(ended.values()))
    print(f"cancelled {len(ended)}: " + ", ".join(f"{name} (job {job})" for name, job in ended.items()))
