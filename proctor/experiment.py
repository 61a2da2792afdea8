"""An experiment file: which models, which exam, who cheats how, and how they are examined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from evaluation.formats import LeakFormat
from serving.cast import Mode
from serving.models import ModelSpec

FILES = ("chat", "corpus", "answers", "rewrites", "variants", "baseline", "taxonomy")
"""Settings of recipes and protocols that name a file."""
STAGES = ("exam", "report", "train", "detect", "prefilter", "build", "group", "analysis", "serve")
"""First words of the names of stages and jobs that are no exam's."""
BUILD = "build:"
"""What stands before the name of a build, where a recipe's setting names one instead of a file."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BenchmarkConfig(Strict):
    """Where the items come from.

    format, path, split: see ``proctor list benchmarks``; ``embedded`` is the project's own exam and takes no path
    columns: which column is what, for format ``table`` (docs/benchmarks.md)
    limit: that many items, drawn with the seed (None: all)
    duplicates: rows that stand twice are an error, or reported and left out
    exemplars, exemplar_split: the pool of few-shot examples: a path of the same format (None: the benchmark's own path,
        where the format has a dev split), and the split in it (None: dev of the own path, all of another)
    """

    format: str = "embedded"
    path: str | None = None
    split: str | None = None
    columns: dict[str, Any] | None = None
    limit: int | None = Field(default=None, ge=2)
    duplicates: Literal["error", "report"] = "error"
    exemplars: str | None = None
    exemplar_split: str | None = None


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


class Sitting(Strict):
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

    @model_validator(mode="after")
    def _halves_of_the_leaked_exam_only(self) -> Sitting:
        if self.benchmark is not None and self.items != "all":
            raise ValueError(f"items is {self.items!r}, but an exam with its own benchmark has no halves; leave it out")
        if self.benchmark is not None and self.build is not None:
            raise ValueError("an exam has either 'benchmark' or 'build'")
        if self.set is not None and self.build is None:
            raise ValueError("'set' names an exam of a build; give 'build' too")
        return self


S = TypeVar("S", bound=Sitting)


class ExamConfig(Sitting):
    """One exam of every candidate.

    prefilter: only items that the evaluator itself answers right (kieval); limit then counts those
    """

    prefilter: bool = False


class GroupConfig(Sitting):
    """One exam of several candidates together: ``ranking``, ``peer_examination`` or ``style_bias``.

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

    kind: ``probing``, ``items`` or ``question_map`` (``proctor list analyses``); options: what that kind takes
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


class Experiment(Strict):
    """The whole of an experiment.

    base: entry of ``models`` that the candidates are trained from, and the control of detection
    roles: which entry of ``models`` plays interactor, evaluator, ...
    leaked_items: which items leak: a seeded random ``half`` (the other is the control), ``all``, or the items of the
        split of that name
    training: settings of every recipe (see ``proctor list recipes``)
    mode: auto is lockstep, until batch-invariant kernels have been proved on this machine
    max_failure_rate: share of an exam's items without a result above which the stage fails
    """

    name: str = Field(pattern=NAME)
    seed: int = Field(default=0, ge=0, lt=2**31)
    mode: Literal["auto", "lockstep", "batch-invariant", "fast"] = "auto"
    models: dict[str, ModelSpec]
    base: str
    roles: dict[str, str] = Field(default_factory=dict)
    benchmark: BenchmarkConfig = BenchmarkConfig()
    leak_format: LeakFormat = "answer_text"
    leaked_items: str = "half"
    training: dict[str, Any] = Field(default_factory=dict)
    candidates: dict[str, CandidateConfig]
    builds: dict[str, BuildConfig] = Field(default_factory=dict)
    exams: dict[str, ExamConfig] = Field(default_factory=dict)
    groups: dict[str, GroupConfig] = Field(default_factory=dict)
    analyses: dict[str, AnalysisConfig] = Field(default_factory=dict)
    detection: DetectionConfig | None = DetectionConfig()
    max_failure_rate: float = Field(default=0.05, ge=0.0, le=1.0)

    @model_validator(mode="after")
    def _names(self) -> Experiment:
        import re

        tables: dict[str, Mapping[str, Any]] = {
            "models": self.models,
            "candidates": self.candidates,
            "builds": self.builds,
            "exams": self.exams,
            "groups": self.groups,
            "analyses": self.analyses,
        }
        for kind, names in tables.items():
            for name in names:
                if not re.fullmatch(NAME, name):
                    raise ValueError(f"{kind}: the name {name!r} may hold letters, digits, '_', '-' and '.' only")
        for name in self.exams:
            # "exam.x" would be taken for the stage that freezes the items of the exam "x"
            if name.partition(".")[0] in STAGES:
                raise ValueError(f"exams: {name!r} is the name of a stage; choose another")
        for name in self.groups:
            if name in self.exams:  # both would freeze their own items in "exam.x"
                raise ValueError(f"groups: {name!r} is the name of an exam; choose another")
        served = [name for name, spec in self.models.items() if spec.engine == "server"]
        if served and self.mode == "lockstep":
            raise ValueError(
                f"mode is 'lockstep', but model {served[0]!r} is on a server, whose answers can depend on who else "
                "asks; use mode: auto (fast, then)"
            )
        control = self.candidates.get("base")
        if control is not None and (control.recipe is not None or control.model != self.base):
            raise ValueError(
                f"candidates: 'base' is the control and must be {{model: {self.base}}}; rename the candidate"
            )
        if not self.candidates:
            raise ValueError("candidates: name at least one")
        for role, model in {"base": self.base, **{f"roles.{r}": m for r, m in self.roles.items()}}.items():
            known(role, model, self.models, "models")
        for name, candidate in self.candidates.items():
            if candidate.model is not None:
                known(f"candidates.{name}.model", candidate.model, self.models, "models")
            if candidate.origin is not None:
                known(f"candidates.{name}.origin", candidate.origin, self.candidates, "candidates")
                if self.candidates[candidate.origin].recipe is None:
                    raise ValueError(
                        f"candidates.{name}.origin: {candidate.origin!r} is not trained here, so nobody knows what it "
                        "has seen; name a candidate with a recipe"
                    )
        self.in_training_order()
        for name in (*self.exams, *self.groups):
            where, sitting = self.place(name), self.sitting(name)
            for candidate_name in sitting.candidates or ():
                known(f"{where}.candidates", candidate_name, self.candidates, "candidates")
            if sitting.build is not None:
                known(f"{where}.build", sitting.build, self.builds, "builds")
        for name, build in self.builds.items():
            for role, model in build.roles.items():
                known(f"builds.{name}.roles.{role}", model, self.models, "models")
        if self.detection is not None and self.detection.reference is not None:
            known("detection.reference", self.detection.reference, self.models, "models")
        for candidate_name in (self.detection.candidates if self.detection else None) or ():
            known("detection.candidates", candidate_name, self.candidates, "candidates")
        return self

    def in_training_order(self) -> list[str]:
        """Trained candidates, each after its origin, else in the file's order. ValueError for a circle of origins."""
        ordered: dict[str, None] = {}

        def add(name: str, above: tuple[str, ...]) -> None:
            if name in above:
                raise ValueError(f"candidates: origins go round in a circle: {' <- '.join((*above, name))}")
            origin = self.candidates[name].origin
            if origin is not None:
                add(origin, (*above, name))
            ordered.setdefault(name)

        for name, candidate in self.candidates.items():
            if candidate.recipe is not None:
                add(name, ())
        return list(ordered)

    @property
    def schedule(self) -> Mode:
        """The mode that the scheduler runs in: ``auto`` is lockstep, but fast where a model is on a server."""
        if self.mode != "auto":
            return self.mode
        return "fast" if any(spec.engine == "server" for spec in self.models.values()) else "lockstep"

    def sitting(self, name: str) -> Sitting:
        """The exam or the group of that name."""
        return self.exams[name] if name in self.exams else self.groups[name]

    def place(self, name: str) -> str:
        """Where an exam or a group stands in the file."""
        return f"{'exams' if name in self.exams else 'groups'}.{name}"

    def members(self, group: str) -> tuple[str, ...]:
        """The candidates of a group."""
        chosen = self.groups[group].candidates
        return tuple(self.candidates) if chosen is None else chosen

    def benchmark_of(self, exam: str) -> BenchmarkConfig:
        """Where the items of an exam or a group come from."""
        return self.sitting(exam).benchmark or self.benchmark

    def spec(self, candidate: str, folder: Path) -> ModelSpec:
        """How a candidate is served; ``folder`` is where a trained one lies."""
        config = self.candidates[candidate]
        if config.model is not None:
            return self.models[config.model].resolved()
        base = self.models[self.base].model_dump(exclude={"path", "revision", "adapter", "endpoint"})
        if base["engine"] == "server":  # the base's server does not serve what was trained from it
            base["engine"] = "auto"
        from proctor.config_file import validate

        settings = {**base, **config.serve, "path": str(folder)}
        return validate(ModelSpec, settings, where=f"candidates.{candidate}.serve").resolved()

    def role_specs(self, roles: Sequence[str]) -> dict[str, ModelSpec]:
        """The models that play the examiner's side in ``roles``. ValueError for a role nobody plays."""
        return self._playing(self.roles, roles)

    def build_specs(self, build: str, roles: Sequence[str]) -> dict[str, ModelSpec]:
        """The models that play ``roles`` in a build: its own entry first. ValueError for a role nobody plays."""
        return self._playing({**self.roles, **self.builds[build].roles}, roles)

    def _playing(self, parts: Mapping[str, str], roles: Sequence[str]) -> dict[str, ModelSpec]:
        missing = [role for role in roles if role not in parts]
        if missing:
            raise ValueError(f"roles: nobody plays {missing[0]!r}; add e.g. 'roles: {{{missing[0]}: MODEL}}'")
        return {role: self.models[parts[role]].resolved() for role in roles}


def known(where: str, name: str, table: Mapping[str, Any], kind: str) -> None:
    """ValueError, with the nearest name, if the table has no such entry."""
    import difflib

    if name not in table:
        close = difflib.get_close_matches(name, list(table), n=1)
        mend = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(table)}"
        raise ValueError(f"{where}: {name!r} is not an entry of {kind}; {mend}")


def load_experiment(path: Path, overrides: Sequence[str] = ()) -> Experiment:
    """Reads and validates an experiment file. ValueError says what, where, and what would be right."""
    from proctor.config_file import read_yaml, validate

    return resolve(validate(Experiment, read_yaml(path, overrides), where=str(path)))


def resolve(experiment: Experiment) -> Experiment:
    """Decides what depends on this machine (engines, mode) and on the working directory (paths), so that it is written
    down and the run folder can be used from anywhere."""
    models = {}
    for name, spec in experiment.models.items():
        places = {key: getattr(spec, key) for key in ("path", "adapter", "chat_template", "endpoint")}
        models[name] = spec.resolved().model_copy(update={key: _absolute(value) for key, value in places.items()})
    builds = {
        name: build.model_copy(
            update={
                "benchmark": None if build.benchmark is None else _placed(build.benchmark),
                "options": _with_places(build.options),
            }
        )
        for name, build in experiment.builds.items()
    }
    candidates = {
        name: candidate.model_copy(update={"options": _with_places(candidate.options)})
        for name, candidate in experiment.candidates.items()
    }
    return experiment.model_copy(
        update={
            "models": models,
            "mode": experiment.schedule,
            "benchmark": _placed(experiment.benchmark),
            "training": _with_places(experiment.training),
            "candidates": candidates,
            "builds": builds,
            "exams": {name: _sat_here(exam) for name, exam in experiment.exams.items()},
            "groups": {name: _sat_here(group) for name, group in experiment.groups.items()},
            "analyses": {name: _with_sets(analysis) for name, analysis in experiment.analyses.items()},
            "detection": None if experiment.detection is None else _with_files(experiment.detection),
        }
    )


def _sat_here(config: S) -> S:
    benchmark = None if config.benchmark is None else _placed(config.benchmark)
    return config.model_copy(update={"benchmark": benchmark, "options": _with_places(config.options)})


def _with_files(config: DetectionConfig) -> DetectionConfig:
    from proctor.detection_inputs import with_places

    files = {key: _absolute(getattr(config, key)) for key in ("corpus", "non_members", "members")}
    return config.model_copy(update={**files, "options": with_places(config.options)})


def _with_sets(config: AnalysisConfig) -> AnalysisConfig:
    """The question sets and the encoder that an analysis names, as absolute paths."""
    options = dict(config.options)
    if isinstance(options.get("benchmarks"), Mapping):
        options["benchmarks"] = {
            name: {key: _absolute(value) if key in ("path", "exemplars") else value for key, value in one.items()}
            if isinstance(one, Mapping)
            else one
            for name, one in options["benchmarks"].items()
        }
    if "encoder" in options:
        options["encoder"] = _absolute(options["encoder"])
    return config.model_copy(update={"options": options})


def _placed(benchmark: BenchmarkConfig) -> BenchmarkConfig:
    files = {"path": _absolute(benchmark.path), "exemplars": _absolute(benchmark.exemplars)}
    return benchmark.model_copy(update=files)


def _with_places(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _absolute(value) if key in FILES else value for key, value in settings.items()}


def _absolute(value: str | None) -> str | None:
    """An existing file or folder as an absolute path; anything else (a hub name, ``embedded``, a build) as it is."""
    if not isinstance(value, str) or not value or value.startswith(BUILD):
        return value
    path = Path(value).expanduser()
    return str(path.resolve()) if path.exists() else value
