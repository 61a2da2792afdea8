"""Stages ``exam`` and ``exam.<exam>``: draw the exam, or one exam's (or group's) own items, and freeze them."""

from __future__ import annotations

from pathlib import Path

from evaluation.benchmarks.chosen import benchmark_files, exemplar_pool, pool_if_any, read_benchmark
from evaluation.benchmarks.splits import draw, members
from evaluation.exam_set import FrozenExam, write_exam
from evaluation.run_exam import Report
from proctor.experiment.experiment import Experiment
from proctor.run_folder.run import RunFolder
from proctor.stages.base import Stage


def stage(experiment: Experiment, exam: str | None = None) -> Stage:
    config = experiment.benchmark if exam is None else experiment.benchmark_of(exam)
    return Stage(
        name="exam" if exam is None else f"exam.{exam}",
        needs=(),
        version=2,
        config={
            "benchmark": config.model_dump(mode="json", exclude={"path", "exemplars"}),
            "files": benchmark_files(config),
            "seed": experiment.seed,
            # said only where it is not the default: exams that were frozen before stay as they are
            **({"leaked_items": experiment.leaked_items} if exam is None and experiment.leaked_items != "half" else {}),
        },
        body=lambda run, folder, report: _freeze(run, folder, report, exam),
    )


def _freeze(run: RunFolder, folder: Path, report: Report, name: str | None) -> list[str]:
    exam = draw_exam(run.experiment, name)
    for note in exam.notes:
        print(note)
    names = write_exam(exam, folder)
    print(f"{len(exam.items)} items, {len(exam.leaked)} of them leak; {len(exam.exemplars)} exemplars")
    report(len(exam.items), len(exam.items), "frozen")
    return names


def draw_exam(experiment: Experiment, exam: str | None = None, *, build: str | None = None) -> FrozenExam:
    """Loads the benchmark and draws the exam: a pure function of the files and the seed.

    exam: name of an exam or group with its own benchmark; build: of a build with its own seeds; None: the experiment's
    """
    own = exam is None and build is None
    config, where = experiment.benchmark, "benchmark"
    if exam is not None:
        config, where = experiment.benchmark_of(exam), f"{experiment.place(exam)}.benchmark"
    elif build is not None:
        config, where = experiment.builds[build].benchmark or config, f"builds.{build}.benchmark"
    found = read_benchmark(config)
    items = found.items
    if config.limit is not None:
        if config.limit > len(items):
            raise ValueError(f"{where}.limit is {config.limit}, but the benchmark has {len(items)} items")
        items = draw(items, config.limit, experiment.seed)
    leaked = frozenset(members(items, experiment.leaked_items, experiment.seed) if own else ())
    sharing = [
        config
        for name, config in experiment.exams.items()
        if (name == exam if exam is not None else config.build == build and config.benchmark is None)
    ]
    if any(e.options.get("shots") for e in sharing):
        pool, lacking = exemplar_pool(config, items), list[str]()
    else:
        pool, lacking = pool_if_any(config, items)
    notes = (*found.notes(), *lacking)
    return FrozenExam(items, leaked, pool, notes, halved=own)
