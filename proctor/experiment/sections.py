"""The sections of an experiment file: benchmark, candidate, exam, group, build, analysis, detection."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from pydantic import (
    Field,
    field_validator,
    model_validator,
)

from evaluation.benchmarks.chosen import BenchmarkConfig
from serving.named import NAME
from serving.settings import Strict

FILES = ("chat", "corpus", "answers", "rewrites", "variants", "baseline", "taxonomy")
"""Settings of recipes and protocols that name a file."""
STAGES = ("exam", "report", "train", "detect", "prefilter", "build", "group", "analysis", "serve")
"""First words of the names of stages and jobs that are no exam's."""
BUILD = "build:"
"""What stands before the name of a build, where a recipe's setting names one instead of a file."""


class CandidateConfig(Strict):
    """A model to be examined: trained here by a recipe, or an existing one (``model`` names an entry of ``models``).

    origin: the trained candidate whose weights the recipe goes on from (``washed``, ``mt_bench_cheater``)
    options: settings of the recipe that differ from the experiment's ``training``
    serve: how a trained candidate is served (a ModelSpec without path); the base's spec where it says nothing
    """

    recipe: str | None = None
    model: str | None = None
    origin: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    serve: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_of(self) -> CandidateConfig:
        if (self.recipe is None) == (self.model is None):
            raise ValueError("a candidate has either 'recipe' (trained here) or 'model' (an entry of models)")
        if self.model is not None and (self.options or self.serve or self.origin):
            raise ValueError(
                "'origin', 'options' and 'serve' belong to a trained candidate; set them in models for an existing one"
            )
        return self


class SittingConfig(Strict):
    """A protocol on items, before candidates.

    items: which half is examined; limit: items per half, the first of the frozen order
    benchmark: other items than the experiment's, which nobody leaks: all of them are examined
    build: an entry of ``builds``: its exam is sat; set: another of the exams that the build made
    candidates: who sits it (None: all)
    wave: dialogues that advance together (None: resolved once, from the number of items and max_num_seqs)
    """

    protocol: str
    items: Literal["all", "leaked", "untouched"] = "all"
    limit: int | None = Field(default=None, ge=1)
    benchmark: BenchmarkConfig | None = None
    build: str | None = None
    set: str | None = Field(default=None, pattern=NAME)
    candidates: tuple[str, ...] | None = None
    wave: int | None = Field(default=None, ge=1)
    options: dict[str, Any] = Field(default_factory=dict)

    def inputs(self) -> dict[str, Any]:
        """What of it a stage's digest holds: where a file lies is no input, its content is in the prompts' hashes."""
        return self.model_dump(mode="json", exclude={"candidates": True, "benchmark": True, "options": {*FILES}})

    @model_validator(mode="after")
    def _halves_of_the_leaked_exam_only(self) -> SittingConfig:
        if self.benchmark is not None and self.items != "all":
            raise ValueError(f"items is {self.items!r}, but an exam with its own benchmark has no halves; leave it out")
        if self.benchmark is not None and self.build is not None:
            raise ValueError("an exam has either 'benchmark' or 'build'")
        if self.set is not None and self.build is None:
            raise ValueError("'set' names an exam of a build; give 'build' too")
        return self


S = TypeVar("S", bound=SittingConfig)


class ExamConfig(SittingConfig):
    """One exam of every candidate.

    prefilter: only items that the evaluator itself answers right (kieval); limit then counts those
    """

    prefilter: bool = False


class GroupConfig(SittingConfig):
    """One exam of several candidates together (see ``proctor list groups``).

    Whoever else takes part (the examiner of a ranking) is in the experiment's ``roles``.
    """


class BuildConfig(Strict):
    """An exam that models write, once for all candidates (see ``proctor list builders``).

    benchmark: where the seeds come from (None: the experiment's own exam; a built item is in the half of its seed)
    items: which half the seeds are of; limit: seeds per half
    roles: which entry of ``models`` plays the builder's roles, where it isn't the experiment's ``roles``
    wave: dialogues that advance together
    """

    builder: str
    benchmark: BenchmarkConfig | None = None
    items: Literal["all", "leaked", "untouched"] = "all"
    limit: int | None = Field(default=None, ge=1)
    roles: dict[str, str] = Field(default_factory=dict)
    wave: int | None = Field(default=None, ge=1)
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _halves_of_the_leaked_exam_only(self) -> BuildConfig:
        if self.benchmark is not None and self.items != "all":
            raise ValueError(f"items is {self.items!r}, but seeds of an own benchmark have no halves; leave it out")
        return self


class AnalysisConfig(Strict):
    """Figures over finished exams, for the report (docs/experiments.md).

    kind: see ``proctor list analyses``; options: what that kind takes
    """

    kind: str
    options: dict[str, Any] = Field(default_factory=dict)


class DetectionConfig(Strict):
    """methods, set_tests: see ``proctor list detectors``; formats: which strings are examined (the first: the headline)
    candidates: who is examined (None: all); the base is always examined, as the control
    options: by method or test, what differs from its defaults
    reference: entry of ``models`` that the candidates are compared with
    corpus: a text or JSONL file, or a folder of them
    non_members, members: files of texts ({"text": ...} per line); where no non-members are named, they are the exam's
        exemplars (never its items), in the format that is examined
    benchmark_name: how the benchmark is called when a model is asked about it by name
    long_texts: of a text longer than the context, ``truncate`` scores the end, ``window`` all of it, in windows
    """

    methods: tuple[str, ...] = ("loss", "zlib", "min_k", "min_k_plus_plus")
    set_tests: tuple[str, ...] = ()
    formats: tuple[Literal["as_trained", "neutral"], ...] = Field(default=("as_trained", "neutral"), min_length=1)
    candidates: tuple[str, ...] | None = None
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    reference: str | None = None
    corpus: str | None = None
    non_members: str | None = None
    members: str | None = None
    benchmark_name: str = ""
    long_texts: Literal["truncate", "window"] = "truncate"

    @field_validator("formats")
    @classmethod
    def _once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise ValueError("name each format once")
        return value
