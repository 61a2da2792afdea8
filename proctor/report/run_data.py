"""What a report reads of a run: its records, metrics and training logs, from the folder alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.exam_set import read_exam
from evaluation.items import Item
from evaluation.show.plate import COLOURS, LINES, MARKERS, Style
from proctor.report.summary import contains, exam_of, finished, records
from proctor.run_folder import places
from proctor.run_folder.run import RunFolder
from serving.files import read_json, read_jsonl


class Plotted(NamedTuple):
    """One stage's data for a figure; suffix of the figure's file and of its heading, where several stages have any."""

    suffix: str
    heading: str
    data: Any


class Evidence:
    """One run, and the summary that was made of it."""

    def __init__(self, run: RunFolder, summary: dict[str, Any]) -> None:
        self.run = run
        self.summary = summary
        self.notes: dict[str, None] = {}
        """What could not be shown, in sentences, in the order in which it came up."""

    def side(self, file: Path) -> dict[str, Any]:
        """A JSON object that is no output of a stage (cost, environment); {} with a note where it is damaged."""
        try:
            return read_json(file)
        except (ValueError, OSError, RecursionError):
            self.notes[f"{file.relative_to(self.run.path)} is damaged and left out."] = None
            return {}

    @property
    def candidates(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self.summary["candidates"]
        return found

    def style(self, name: str) -> Style:
        place = list(self.candidates).index(name)
        return Style(
            COLOURS[place % len(COLOURS)],
            MARKERS[place % len(MARKERS)],
            LINES[(place // len(COLOURS)) % len(LINES)],
        )

    def figures(self, protocol: str, candidate: str) -> dict[str, dict[str, Any]]:
        """A candidate's figures per half, of the first exam with a protocol; {} if it has none."""
        exam = exam_of(self.run.experiment, protocol)
        exams: dict[str, dict[str, dict[str, Any]]] = self.candidates[candidate]["exams"]
        return exams.get(exam, {}) if exam else {}

    @cached_property
    def detected(self) -> dict[str, list[dict[str, Any]]]:
        """The detectors' records per candidate that was audited."""
        found = {name: records(self.run, f"detect.{name}") for name in self.candidates}
        return {name: rows for name, rows in found.items() if rows is not None}

    def items(self, exam: str) -> dict[str, Item]:
        """The frozen items of an exam, by id; {} where they are not frozen yet."""
        folder = places.folder_for(self.run, exam)
        return {item.id: item for item in read_exam(folder).items} if (folder / "items.jsonl").is_file() else {}

    def rows(self, stage: str) -> Iterator[dict[str, Any]]:
        """A stage's records, one at a time: a run may have 100,000."""
        file = self.run.stage(stage).path / "records.jsonl"
        if file.is_file() and contains(self.run.experiment, stage) and finished(self.run, stage):
            with file.open(encoding="utf-8") as stream:
                for line in stream:
                    if line.strip():
                        yield json.loads(line)

    def stages(self) -> list[Path]:
        """The folders of stages that the experiment contains, in the order of their names."""
        return [
            folder
            for folder in sorted((self.run.path / "stages").glob("*"))
            if folder.name.startswith("train.") or contains(self.run.experiment, folder.name)
        ]

    def metrics(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every finished stage's metrics.json."""
        for folder in self.stages():
            if finished(self.run, folder.name):
                yield folder.name, read_json(folder / "metrics.json")

    def plotted(self, key: str) -> list[Plotted]:
        """Data for figures that stages worked out: ``key`` of each ``plots.json`` that has it."""
        found = []
        for folder in self.stages():
            data = read_json(folder / "plots.json").get(key) if finished(self.run, folder.name) else None
            if data:
                found.append((folder.name.partition(".")[2], data))
        if len(found) == 1:
            return [Plotted("", "", found[0][1])]
        return [Plotted(f".{name}", f": {name}", data) for name, data in found]

    def prefiltered(self, exam: str) -> list[dict[str, Any]] | None:
        """The evaluator's own answers, where the exam has a prefilter."""
        file = self.run.stage(f"prefilter.{exam}").path / "records.jsonl"
        return read_jsonl(file) if file.is_file() else None
