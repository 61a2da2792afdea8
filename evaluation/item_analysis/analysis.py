"""Item analysis of an exam: difficulty, discrimination, the two-parameter fit; and whether it beats another exam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from evaluation.analysis import Experiment, Run, exam_stages
from evaluation.item_analysis import plots as drawn
from evaluation.item_analysis.classical import CUTS, LABELS, check_cuts
from evaluation.item_analysis.matrix import Matrix, to_csv
from evaluation.protocol import Held
from evaluation.run_builder import authors
from evaluation.show.table import Cell, Table, figure
from serving.files import write_text


class ItemOptions(BaseModel):
    """exam: that is analysed; against: another exam, with which it is compared as a whole
    candidates: whose results count (None: all that sat; those of both exams where there are two)
    score, max_score: the field of the records, where it isn't the protocol's own
    fraction: share of candidates in the high group, and in the low one; cuts: between the labels
    short: items of a short form; fit: whether the two-parameter model is fitted
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    exam: str
    against: str | None = None
    candidates: tuple[str, ...] | None = None
    score: str | None = None
    max_score: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    fraction: float = Field(default=0.27, gt=0, le=0.5)
    cuts: tuple[float, ...] = CUTS
    short: int | None = Field(default=None, ge=1)
    fit: bool = True
    resamples: int = Field(default=1000, ge=0, le=100_000)


class ItemAnalysis:
    """The figures of ``proctor analyse``, over the exams of one experiment."""

    name: ClassVar[str] = "items"
    version: ClassVar[int] = 2
    Options: ClassVar[type[BaseModel]] = ItemOptions
    figure: ClassVar[str] = "set"

    def __init__(self, options: ItemOptions) -> None:
        self.options = options

    def needs(self, experiment: Experiment) -> list[str]:
        check_cuts(self.options.cuts)
        stages = self._stages(experiment)
        return list(dict.fromkeys(stage for exam in stages.values() for stage in exam.values()))

    def identity(self) -> dict[str, Any]:
        return {}

    def compute(self, run: Run, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        from evaluation.item_analysis import report
        from evaluation.item_analysis.matrix import from_records

        given, seed = self.options, run.experiment.seed
        tables = {
            exam: from_records(
                {name: run.stage(stage).path / "records.jsonl" for name, stage in stages.items()},
                given.score,
                given.max_score,
            )
            for exam, stages in self._stages(run.experiment).items()
        }
        table = tables[given.exam]
        if given.short is not None and given.short > len(table.items):
            raise ValueError(f"short is {given.short}, but there are {len(table.items)} items")
        settings = report.ItemAnalysisSettings(
            fraction=given.fraction,
            cuts=given.cuts,
            short=given.short,
            fit=given.fit,
            resamples=given.resamples,
            seed=seed,
        )
        wrote = [name for name in authors(run.experiment, given.exam) if name in table.candidates]
        found = report.analyse(
            table,
            settings,
            marked=dict.fromkeys(wrote, "wrote the exam it sat"),
            against=None if given.against is None else tables[given.against],
        )
        write_tables(found.rows, table, folder)
        curves = {key: found.curves[key] for key in ("theta", "characteristic", "abilities")} if found.curves else None
        return found.metrics, {"item_curves": curves} if curves else {}

    @staticmethod
    def tables(held: Mapping[str, Held]) -> list[Table]:
        return [_table(name, ItemOptions.model_validate(one.options), one.metrics) for name, one in held.items()]

    plots = staticmethod(drawn.plots)

    def _stages(self, experiment: Experiment) -> dict[str, dict[str, str]]:
        """By exam the stages by candidate; with two exams those candidates only that sat both."""
        given = self.options
        if given.against == given.exam:
            raise ValueError(f"against: {given.against!r} is the exam that is analysed; name another, or leave it out")
        found = {given.exam: exam_stages(experiment, given.exam, where="exam")}
        if given.against is not None:
            found[given.against] = exam_stages(experiment, given.against, where="against")
        common = [name for name in found[given.exam] if all(name in exam for exam in found.values())]
        if given.candidates is not None:
            lacking = [name for name in given.candidates if name not in common]
            if lacking:
                raise ValueError(f"candidates: {lacking[0]!r} did not sit {' and '.join(found)}")
            common = [name for name in common if name in given.candidates]
        if not common:
            raise ValueError(f"no candidate sits {' and '.join(found)}")
        return {exam: {name: stages[name] for name in common} for exam, stages in found.items()}


def _table(name: str, given: ItemOptions, metrics: Mapping[str, Any]) -> Table:
    rows = [[Cell(given.exam), *_set(metrics["set"]), *_items(metrics)]]
    if other := metrics.get("against"):
        blank = [Cell("-")] * (2 + len(LABELS))
        rows.append([Cell(str(given.against)), *_set(other["set"]), *blank])
        variance, apart = other["variance"], other["separability"]["difference"]
        row = [Cell("-")] * 2 + [figure(_minus(metrics["set"]["mean"], other["set"]["mean"]), None, 1, 1)]
        row += [figure(variance["difference"], variance["interval"], 1, 2), figure(apart, None, 1, 2), Cell("-")]
        discrimination = figure(other["discrimination"]["difference"], other["discrimination"]["interval"], 1, 3)
        difference = f"{given.exam} minus {given.against}"
        rows.append([Cell(difference), *row, discrimination, *[Cell("-")] * len(LABELS)])
    header = (
        *("exam", "candidates", "items", "mean (0-100)", "variance", "separability"),
        *("difficulty", "discrimination", *LABELS),
    )
    warned = " ".join(f"Warning: {line}." for line in metrics["warnings"])
    if chance := metrics["by_chance"]:
        low, high = chance["interval"]
        warned += f" Noise has a mean discrimination of {chance['mean']:.3f} [{low:.3f}, {high:.3f}]."
    marked = " ".join(f"{who} {what}." for who, what in metrics.get("marked", {}).items())
    return Table(
        f"analysis_{name}",
        "How well the items separate the candidates: variance of the candidates' means (0-100, over candidates), "
        "share of pairs told apart, mean difficulty (maximum minus mean score) and discrimination (high minus low "
        f"group, share of the maximum), and how many items have which label. {warned} {marked}".strip(),
        header,
        rows,
        title=f"Analysis {name}",
    )


def write_tables(rows: Sequence[Mapping[str, Any]], table: Matrix, folder: Path) -> None:
    """items.csv and matrix.csv."""
    write_text(folder / "items.csv", drawn.items_csv(rows))
    write_text(folder / "matrix.csv", to_csv(table))


def _set(whole: Mapping[str, Any]) -> list[Cell]:
    return [
        Cell(str(whole["candidates"]), whole["candidates"]),
        Cell(str(whole["items"]), whole["items"]),
        figure(whole["mean"], None, 1, 1),
        figure(whole["variance"], whole["variance_interval"], 1, 2),
        figure(whole["separability"], None, 1, 2),
    ]


def _items(metrics: Mapping[str, Any]) -> list[Cell]:
    counts = metrics["labels"]
    means = [figure(metrics[f"{key}_mean"], None, 1, 3) for key in ("difficulty", "discrimination")]
    return [*means, *(Cell(str(counts.get(label, 0)), counts.get(label, 0)) for label in LABELS)]


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b
