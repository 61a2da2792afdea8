"""What a report reads of a run, from the folder alone. The records of every exam are read once, and of each only what
comparisons go by is kept: a run may have 100,000."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from evaluation import registry
from evaluation.protocol import Held
from evaluation.show.plate import Style, styles
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import CONTROL
from proctor.report.item_score import Scored, scored
from proctor.report.present import Rows, contains, finished, has_halves, records
from proctor.run_folder.run import RunFolder
from serving.files import read_json

Each = Callable[[str, str, Rows], None]
"""Called with exam, candidate and records while they are at hand."""


class Sitting(NamedTuple):
    """What is kept of one candidate's exam.

    halves: figures of the leaked and untouched items, or of all; scored: a number per item
    counts: what the protocol wants counted; retries: verdicts that were asked for again
    """

    halves: dict[str, dict[str, Any]]
    scored: list[Scored]
    counts: Counter[str]
    retries: int


class RunData:
    """One run, as a report or a comparison reads it. sittings: by exam, then by candidate, where they are finished"""

    def __init__(self, run: RunFolder, each: Each = lambda exam, candidate, rows: None) -> None:
        self.run = run
        self.notes: dict[str, None] = {}
        """What could not be shown, in sentences, in the order in which it came up."""
        self.experiment = run.experiment
        self.names = [*self.experiment.candidates]
        if CONTROL not in self.names and self.experiment.detection is not None:
            self.names.append(CONTROL)
        self.styles: dict[str, Style] = styles(self.names)
        self.sittings: dict[str, dict[str, Sitting]] = {}
        for exam in self.experiment.exams:
            self.sittings[exam] = {}
            for candidate in self.names:
                rows = records(run, f"{exam}.{candidate}")
                if rows is not None:
                    self.sittings[exam][candidate] = _sitting(self.experiment, exam, rows)
                    each(exam, candidate, rows)

    def side(self, file: Path) -> dict[str, Any]:
        """A JSON object that is no output of a stage (cost, environment); {} with a note where it is damaged."""
        try:
            return read_json(file)
        except (ValueError, OSError, RecursionError):
            self.notes[f"{file.relative_to(self.run.path)} is damaged and left out."] = None
            return {}

    def scored(self, exam: str | None, candidate: str | None) -> list[Scored] | None:
        """A number per item of one candidate's exam; None where it has not sat it."""
        sitting = self.sittings.get(exam or "", {}).get(candidate or "")
        return None if sitting is None else sitting.scored

    @cached_property
    def detected(self) -> dict[str, Rows]:
        """The detectors' records per candidate that was audited."""
        found = {name: records(self.run, f"detect.{name}") for name in dict.fromkeys([*self.names, CONTROL])}
        return {name: rows for name, rows in found.items() if rows is not None}

    def rows(self, stage: str) -> Iterator[dict[str, Any]]:
        """The records of a stage that is no exam's, one at a time."""
        file = self.run.stage(stage).path / "records.jsonl"
        if file.is_file() and contains(self.experiment, stage) and finished(self.run, stage):
            with file.open(encoding="utf-8") as stream:
                for line in stream:
                    if line.strip():
                        yield json.loads(line)

    def stages(self) -> list[Path]:
        """The folders of finished stages that the experiment contains, in the order of their names."""
        return [
            folder
            for folder in sorted((self.run.path / "stages").glob("*"))
            if (folder.name.startswith("train.") or contains(self.experiment, folder.name))
            and finished(self.run, folder.name)
        ]

    @cached_property
    def kinds(self) -> list[tuple[Any, dict[str, Held]]]:
        """Every protocol, group, builder and analysis of which something is finished, with what is, by name."""
        found: dict[Any, dict[str, Held]] = {}
        for exam, sat in self.sittings.items():
            config = self.experiment.exams[exam]
            if sat:
                held = Held(
                    options=config.options,
                    metrics={name: sitting.halves for name, sitting in sat.items()},
                    items=repr([config.benchmark, config.build, config.set, config.items, config.limit]),
                    counts=sum((sitting.counts for sitting in sat.values()), Counter()),
                )
                found.setdefault(registry.protocol(config.protocol), {})[exam] = held
        made: list[tuple[str, Any, Any]] = [
            (f"group.{name}", registry.group_protocol(c.protocol), c) for name, c in self.experiment.groups.items()
        ]
        made += [(f"build.{name}", registry.builder(c.builder), c) for name, c in self.experiment.builds.items()]
        made += [(f"analysis.{name}", registry.analysis(c.kind), c) for name, c in self.experiment.analyses.items()]
        for stage, kind, given in made:
            if finished(self.run, stage):
                metrics, plots = (
                    read_json(self.run.stage(stage).path / file) for file in ("metrics.json", "plots.json")
                )
                key = getattr(kind, "figure", None)
                if key is None or key in metrics:  # else a former analysis of this name left it
                    held = Held(options=given.options, metrics=metrics, plots=plots)
                    found.setdefault(kind, {})[stage.partition(".")[2]] = held
        return list(found.items())

    def hooked(self, hook: str) -> Iterator[tuple[Any, dict[str, Held]]]:
        """The hook of each kind that has it, and what is finished of that kind."""
        for kind, held in self.kinds:
            if (found := getattr(kind, hook, None)) is not None:
                yield found, held


def _sitting(experiment: Experiment, exam: str, rows: Rows) -> Sitting:
    config = experiment.exams[exam]
    protocol = registry.build(config.protocol, config.options, seed=experiment.seed)
    names = ("leaked", "untouched") if has_halves(config) else tuple(dict.fromkeys(row["half"] for row in rows))
    halves = {half: protocol.summarise([row for row in rows if row["half"] == half]) for half in names}
    counts: Counter[str] = Counter()
    count = getattr(protocol, "counts", lambda row: Counter[str]())
    for row in rows:
        counts.update(count(row))
    return Sitting(halves, scored(protocol, rows), counts, sum(map(_retries, rows)))


def _retries(record: Mapping[str, Any]) -> int:
    turns = [one for one in [*record.get("rounds", []), *record.get("turns", [])] if isinstance(one, Mapping)]
    return sum(max(0, n - 1) for one in turns if isinstance(n := one.get("attempts"), int))


def items_of(run: RunFolder, exam: str) -> Mapping[str, Any]:
    """The frozen items of an exam, by id; {} where they are not frozen yet."""
    from evaluation.exam_set import read_exam

    folder = run.items_folder(exam)
    return {item.id: item for item in read_exam(folder).items} if (folder / "items.jsonl").is_file() else {}
