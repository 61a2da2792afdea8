"""An experiment file: which models, which exam, who cheats how, and how they are examined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from evaluation.benchmarks.chosen import BenchmarkConfig
from evaluation.formats import LeakFormat
from proctor.experiment.environment_references import Reference
from proctor.experiment.sections import (
    STAGES,
    AnalysisConfig,
    BuildConfig,
    CandidateConfig,
    DetectionConfig,
    ExamConfig,
    GroupConfig,
    SittingConfig,
)
from serving.model.spec import ModelSpec
from serving.named import NAME, known
from serving.role_engines import Mode
from serving.settings import Strict


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
    base: str = Field(
        description="an entry of models that candidates are trained from and compared with (any, if nothing is trained)"
    )
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
    _references: tuple[Reference, ...] = PrivateAttr(default=())

    @property
    def references(self) -> tuple[Reference, ...]:
        """Where its file read the environment."""
        return self._references

    def reading(self, references: tuple[Reference, ...]) -> Experiment:
        """The experiment, whose file read the environment there."""
        self._references = references
        return self

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

    def sitting(self, name: str) -> SittingConfig:
        """The exam or the group of that name."""
        return self.exams[name] if name in self.exams else self.groups[name]

    def items_stage(self, name: str) -> str:
        """The stage that freezes the items of an exam or a group."""
        config = self.sitting(name)
        if config.build is not None:
            return f"build.{config.build}"
        return "exam" if config.benchmark is None else f"exam.{name}"

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
        from serving.settings import validate

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
            mend = ", ".join(f"{role}: MODEL" for role in missing)
            raise ValueError(f"roles: nobody plays {' or '.join(map(repr, missing))}; add 'roles: {{{mend}}}'")
        return {role: self.models[parts[role]].resolved() for role in roles}
