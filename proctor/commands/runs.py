"""run, status, report, check, stage: what works on an experiment or a run folder."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evaluation.show.terminal_text import harmless
from proctor.runner.interruption import Interruption

if TYPE_CHECKING:
    from proctor.experiment.experiment import Experiment
    from proctor.run_folder.run import RunFolder

Override = Annotated[list[str], typer.Option("-s", "--set", help="Override a key: -s key.sub=value (repeatable).")]
Share = Annotated[
    bool, typer.Option("--share", envvar="PROCTOR_SHARE", help="Let others of this machine read the run folder.")
]
Out = Annotated[Path | None, typer.Option("--out", help="Run folder; runs/NAME by default.")]
ExperimentFile = Annotated[Path, typer.Argument(metavar="EXPERIMENT", help="Experiment file (YAML).")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")]


def run(
    experiment: ExperimentFile,
    overrides: Override = [],  # noqa: B006 - typer reads the default, nobody changes it
    only: Annotated[str | None, typer.Option(help="Only this stage.")] = None,
    limit: Annotated[int | None, typer.Option(help="Only so many items of the benchmark.")] = None,
    out: Out = None,
    gpus: Annotated[str | None, typer.Option(help="Devices to share out: independent stages side by side.")] = None,
    share: Share = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, list the stages, run nothing.")] = False,
) -> None:
    """Run an experiment, or what is missing of it."""
    from proctor.checks.experiment import check_models, preflight
    from proctor.experiment.load import load_experiment
    from proctor.run_folder.environment import write_environment
    from proctor.run_folder.run import RunFolder, check_free, create
    from proctor.run_folder.stage import StageFolder
    from proctor.runner.local import mend, run_all
    from proctor.runner.plan import find, plan, states
    from proctor.runner.several_gpus import check_devices, read_devices, run_side_by_side
    from serving.files import output_folder

    began = time.monotonic()
    changes = [*overrides, *([f"benchmark.limit={limit}"] if limit is not None else [])]
    loaded = load_experiment(experiment, changes)
    _name_variables(loaded)
    folder = out or Path("runs") / loaded.name
    check_free(folder, loaded.name)
    check_models(loaded)
    stages = plan(loaded)
    devices = None if gpus is None else read_devices(gpus)
    if devices is not None:
        check_devices(stages, devices)
    if only is not None:
        find(stages, only)
    opened = RunFolder(folder, loaded)
    if not dry_run and any(opened.stage(stage.name).damaged() for stage in stages):
        with StageFolder(folder).lock():
            for line in mend(opened):
                print(harmless(line), flush=True)
    former = states(opened, stages)
    if not dry_run and all(state.state == "done" for state in former):
        print(f"nothing to do: all {len(former)} stages of {loaded.name} are done ({time.monotonic() - began:.1f} s)")
        _show_report(folder)
        return
    for state in former:
        if state.stage.name == only and state.state == "waiting" and not dry_run:
            raise ValueError(f"stage {only} needs {', '.join(state.stage.needs)}, and not all of them are done")
        if state.stage.name == only and state.state == "done":
            print(f"nothing to do: stage {only} is done")
            return
    exam = preflight(loaded).exam
    if dry_run:
        print(f"{loaded.name}: {len(exam.items)} items, {len(exam.leaked)} leak; mode {loaded.mode}; folder {folder}")
        for state in former:
            print(f"  {state.stage.name:28} {state.state}")
        return
    signal.signal(signal.SIGTERM, _as_interrupt)
    signal.signal(signal.SIGUSR1, _as_interrupt)
    output_folder(folder, share=share)
    with StageFolder(folder).lock():  # one runner per run folder: a second one would change the experiment under it
        made = create(folder, loaded)
        write_environment(made.path, loaded)
        if devices is None:
            run_all(made, only=only)
        else:
            run_side_by_side(made, devices, only=only)
    if only is None:
        _show_report(folder)


def _name_variables(loaded: Experiment) -> None:
    from proctor.experiment.environment_references import variables

    if loaded.references:
        print(f"environment variables read: {', '.join(variables(loaded.references))}")


def _show_report(run: Path) -> None:
    """The table, and where the page is."""
    from proctor.report.terminal import print_table

    print_table(run / "report" / "summary.json")
    print(f"report: {run / 'report' / 'index.html'}")


def _as_interrupt(*_: object) -> None:
    """Once: ``timeout`` and batch systems send it to the command and to its whole group, and a second one must not cut
    short the wait for the stage's checkpoint."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    raise Interruption


def status(run: RunPath) -> None:
    """Show where each stage of a run stands, and its SLURM job where it has one."""
    from proctor.cluster.status import standing
    from proctor.run_folder.run import open_run

    for line in standing(open_run(run)):
        print(harmless(line))


def report(runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")]) -> None:
    """Write the report of a run again, from its folder alone, and print its table. A run may be unfinished."""
    from proctor.report.present import expected, finished
    from proctor.report.write import write_report
    from proctor.run_folder.environment import add_self_tests
    from proctor.run_folder.run import open_run
    from proctor.run_folder.stage import StageFolder

    for opened in [open_run(run) for run in runs]:
        missing = [name for name in expected(opened) if not finished(opened, name)]
        with StageFolder(opened.stage("report").path).lock():
            add_self_tests(opened.path, opened.experiment)
            write_report(opened, opened.stage("report").path, outdated=_outdated(opened))
        _show_report(opened.path)
        for stage_name, files in opened.damaged.items():
            print(
                f"warning: {stage_name} is left out: {', '.join(files)} changed after it was done; 'proctor run' with "
                "its experiment does it again"
            )
        if missing:
            print(f"not finished: {', '.join(missing)}; run 'proctor run' with its experiment to complete it")


def _outdated(opened: RunFolder) -> list[str]:
    """Stages whose inputs changed since; none where that can't be told: the models or files are not on this machine."""
    from proctor.runner.plan import plan, states

    try:
        found = states(opened, plan(opened.experiment))
    except (ValueError, OSError):
        return []
    return [state.stage.name for state in found if state.state == "stale" and state.stage.name != "report"]


def check(
    experiment: Annotated[Path | None, typer.Argument(metavar="EXPERIMENT", help="Experiment file (YAML).")] = None,
    overrides: Override = [],  # noqa: B006
    benchmark: Annotated[Path | None, typer.Option(help="Check this benchmark instead of an experiment.")] = None,
    format: Annotated[str | None, typer.Option(help="Its format: see 'proctor list benchmarks'.")] = None,
    split: Annotated[str | None, typer.Option(help="Its split.")] = None,
    columns: Annotated[str | None, typer.Option(help="Its column map (format table), as YAML: {question: q}.")] = None,
    duplicates: Annotated[str, typer.Option(help="Items that stand twice: error, or report.")] = "error",
    rehash: Annotated[bool, typer.Option("--rehash", help="Read all weights again, whatever their dates say.")] = False,
    self_test: Annotated[
        bool, typer.Option(envvar="PROCTOR_SELF_TEST", help="Load each model once and measure it (minutes, once).")
    ] = True,
) -> None:
    """Check an experiment, or a benchmark alone: what would be asked, and how this machine serves the models."""
    from proctor.checks.experiment import preflight, read_again
    from proctor.checks.preview import preview, preview_benchmark
    from proctor.experiment.load import load_experiment

    if (experiment is None) == (format is None):
        raise ValueError("give an experiment file, or a benchmark with --format (and --benchmark); not both, not none")
    alone = {"--benchmark": benchmark, "--split": split, "--columns": columns}
    if rehash and experiment is None:
        raise ValueError("--rehash reads the weights of an experiment's models; give an experiment file")
    if experiment is None:
        from evaluation.benchmarks.chosen import pool_if_any, read_benchmark
        from proctor.commands.options import benchmark_config, one_of

        if overrides:
            raise ValueError(f"-s {overrides[0]}: a benchmark alone has no keys to set; give an experiment file")
        one_of("--duplicates", duplicates, ("error", "report"))
        config = benchmark_config(format or "", benchmark, split=split, columns=columns, duplicates=duplicates)
        found = read_benchmark(config)
        lines = preview_benchmark(config, found, *pool_if_any(config, found.items))
    elif any(value is not None for value in alone.values()):
        given = next(name for name, value in alone.items() if value is not None)
        raise ValueError(f"{given} belongs to a benchmark alone; set its key in {experiment}, e.g. -s benchmark.path=P")
    else:
        loaded = load_experiment(experiment, overrides)
        _name_variables(loaded)
        if rehash:
            for line in read_again(loaded):
                print(harmless(line), flush=True)
        lines = preview(loaded, preflight(loaded))
    for line in lines:
        print(harmless(line))
    if self_test and experiment is not None:
        from proctor.run_folder.environment import self_tests

        for line in self_tests(loaded):
            print(harmless(line), flush=True)


def stage(
    run: RunPath,
    name: Annotated[str, typer.Argument(metavar="STAGE")],
    digest: Annotated[str | None, typer.Option(help="What its inputs must be (given by runners).")] = None,
    shard: Annotated[str | None, typer.Option(help="Only this part of an exam: I/N, counted from 0.")] = None,
    merge: Annotated[int | None, typer.Option(help="Make its outputs from that many shards.", min=2)] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for another process that has the stage.")] = False,
) -> None:
    """Do one stage of a run in this process (what runners and jobs call). SIGUSR1 interrupts it: exit code 75."""
    import os

    from proctor.run_folder.run import open_run
    from proctor.runner.interruption import stop_on_usr1
    from proctor.runner.one_stage import do_shard, do_stage, end_with_runner, follow

    end_with_runner()
    with stop_on_usr1():
        if os.environ.get("SLURM_NODEID", "0") != "0":
            follow(open_run(run), name)
        elif shard is not None:
            index, count = _shard(shard)
            if not do_shard(open_run(run), name, index, count, digest=digest, wait=wait):
                print(f"shard {shard} of stage {name} is done already")
        elif not do_stage(open_run(run), name, digest=digest, merge=merge, wait=wait):
            print(f"stage {name} is done already")


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit()):
        raise ValueError(f"--shard {text!r} is not of the form I/N, e.g. 0/4")
    return int(index), int(count)


def estimate(
    experiment: ExperimentFile,
    overrides: Override = [],  # noqa: B006 - typer reads the default, nobody changes it
    items: Annotated[int, typer.Option(min=2, help="Items of each exam to sample with the real models.")] = 8,
    sample: Annotated[bool, typer.Option(help="Measure a sample; without it, calls only.")] = True,
    run: Annotated[Path | None, typer.Option("--run", help="Show what this finished run measured beside it.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the figures to this JSON file, too.")] = None,
) -> None:
    """Estimate calls, tokens, time and memory of an experiment, without training, from a rehearsal and a sample."""
    from proctor.checks.estimate import as_json, measured, rehearsed, table
    from proctor.checks.estimate import estimate as estimated
    from proctor.checks.experiment import preflight
    from proctor.experiment.load import load_experiment
    from proctor.run_folder.run import open_run
    from serving.files import write_json

    loaded = load_experiment(experiment, overrides)
    after = None if run is None else measured(open_run(run))
    preflight(loaded)
    before = estimated(loaded, items=items if sample else None)
    table(before, after)
    if any(exam.prefilter for exam in loaded.exams.values()):
        print("note: the prefilter is not in it, and its exam is counted as if every item were kept")
    for name, group in loaded.groups.items():
        if not rehearsed(group.protocol):
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


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="Run folder.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Run folder to compare it with.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for comparison.json and .csv, .md, .tex.")] = None,
) -> None:
    """Show paired differences A - B of the candidates and items that two runs share."""
    from detection.run_detectors import clean
    from evaluation.show.terminal import print_rows
    from proctor.report.run_comparison import compare_runs, comparison_table
    from proctor.report.table_files import write_tables
    from proctor.run_folder.run import open_run
    from serving.files import write_json

    if out is not None and out.is_file():
        raise ValueError(f"--out {out} is a file; name a folder")
    a, b = open_run(run_a), open_run(run_b)
    found = clean(compare_runs(a, b))
    table = comparison_table(found)
    rows = [[cell.text + ("*" if cell.significant else "") for cell in row] for row in table.rows]
    print_rows(f"A {run_a}, B {run_b}; {table.caption}", table.header, rows, left=("candidate", "figure"))
    for side, key in (("A", "only_a"), ("B", "only_b")):
        if found[key]:
            print(f"in {side} only: {', '.join(found[key])}")
    for note in found["notes"]:
        print(f"note: {note}")
    if out is not None:
        write_tables([table], out)
        write_json(out / "comparison.json", found)
        print(f"written: {out}")
