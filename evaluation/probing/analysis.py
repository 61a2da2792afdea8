"""Meta probing (MPA): accuracy before and after the rewriting, churn, abilities, contamination, per candidate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from evaluation import registry
from evaluation.analysis import Experiment, Run, exam_stages
from evaluation.probing import plots as drawn
from evaluation.probing.inputs import Sat, compared, read_metrics, set_number
from evaluation.probing.report import EVERYTHING
from evaluation.probing.version import SETS
from evaluation.protocol import Held
from evaluation.show.table import Cell, Table, figure
from serving.files import read_jsonl

CELLS = {"both": "OT/PT", "only_before": "OT/PF", "only_after": "OF/PT", "neither": "OF/PF"}


class ProbingOptions(BaseModel):
    """build: the build whose sets were sat; vanilla: the exam of the items as published
    exams: exams of the build (None: all of its static exams that are held as the vanilla one is, with the same options)
    calibration: the stage that calibrated the build's judge, ``EXAM.CANDIDATE`` of protocol probing.calibrate
    candidates: who is compared (None: all that sat everything)
    clean, contaminated: whose resistance and fidelity are told (contaminated None: every other trained candidate)
    sizes: billions of parameters by candidate, for slopes and size groups
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    build: str
    vanilla: str
    exams: tuple[str, ...] | None = None
    calibration: str | None = None
    candidates: tuple[str, ...] | None = None
    clean: str | None = None
    contaminated: tuple[str, ...] | None = None
    sizes: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default_factory=dict)


class ProbingAnalysis:
    """The figures of ``proctor probing compare``, over the exams of one experiment."""

    name: ClassVar[str] = "probing"
    version: ClassVar[int] = 2
    Options: ClassVar[type[BaseModel]] = ProbingOptions
    figure: ClassVar[str] = "judge"

    def __init__(self, options: ProbingOptions) -> None:
        self.options = options

    def needs(self, experiment: Experiment) -> list[str]:
        self._contaminated(experiment)
        stages = [stage for exams in self._stages(experiment).values() for stage in exams.values()]
        return list(dict.fromkeys([f"build.{self.options.build}", *stages, *self._calibration(experiment)]))

    def identity(self) -> dict[str, Any]:
        return {}

    def compute(self, run: Run, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        from evaluation.probing.report import ProbingSettings, report

        experiment, given = run.experiment, self.options
        sat = {
            (candidate, *set_number(probe)): _sat(run, candidate, stage)
            for candidate, exams in self._stages(experiment).items()
            for probe, stage in exams.items()
        }
        sittings, described, _ = compared(sat, run.stage(f"build.{given.build}").path, given.sizes)
        judge = [read_metrics(run.stage(s).path, "recall", "probing.calibrate") for s in self._calibration(experiment)]
        metrics = report(
            sittings,
            described,
            ProbingSettings(
                seed=experiment.seed,
                clean=given.clean,
                contaminated=self._contaminated(experiment),
                calibration=judge[0] if judge else None,
            ),
        )
        return metrics, {"probing": plotted(metrics)}

    @staticmethod
    def tables(held: Mapping[str, Held]) -> list[Table]:
        return [_table(name, one.metrics) for name, one in held.items()]

    plots = staticmethod(drawn.plots)

    def _stages(self, experiment: Experiment) -> dict[str, dict[str, str]]:
        """By candidate and set (``vanilla``, ``all``, ``all.set-2``, ...), the stage of the exam."""
        given = self.options
        if given.build not in experiment.builds:
            raise ValueError(f"build: there is no build {given.build!r}; there are: {', '.join(experiment.builds)}")
        config = experiment.builds[given.build]
        if config.builder != "probing":
            raise ValueError(
                f"build: {given.build!r} is of the builder {config.builder!r}; name one of builder probing"
            )
        found: dict[str, dict[str, str]] = {}
        for candidate, stage in exam_stages(experiment, given.vanilla, where="vanilla").items():
            found[candidate] = {"vanilla": stage}
        held = experiment.exams[given.vanilla]
        if held.protocol != "static" or held.build is not None:
            raise ValueError(f"vanilla: {given.vanilla!r} must be a static exam of the items as published")
        options: Any = registry.build_builder(config.builder, config.options, seed=experiment.seed)
        first = options.options.probes[0]
        if given.exams is None:
            chosen = [n for n, e in experiment.exams.items() if e.build == given.build and e.protocol == "static"]
            chosen = [name for name in chosen if experiment.exams[name].options == held.options]
            chosen = [name for name in chosen if _probe(experiment.exams[name].set or first) is not None]
        else:
            chosen = list(given.exams)
        for exam in chosen:
            sat = exam_stages(experiment, exam, where="exams")
            own = experiment.exams[exam]
            if own.protocol != "static" or own.build != given.build:
                raise ValueError(f"exams: {exam!r} is no static exam of the build {given.build!r}")
            if _probe(own.set or first) is None:
                raise ValueError(f"exams: {exam!r} is of the set {own.set!r}, which isn't one rewrite of each item")
            for candidate, stage in sat.items():
                if found.get(candidate, {}).setdefault(own.set or first, stage) != stage:
                    raise ValueError(f"exams: {exam!r} and another are both of the set {own.set or first!r}; name one")
        return self._complete(found, experiment)

    def _complete(self, found: dict[str, dict[str, str]], experiment: Experiment) -> dict[str, dict[str, str]]:
        """Those candidates that are wanted and sat something probed. ValueError if one is named that did not."""
        for name in self.options.candidates or ():
            if len(found.get(name, {})) < 2:
                raise ValueError(f"candidates: {name!r} sat no vanilla and probed exam of this build")
        wanted = self.options.candidates
        kept = {n: row for n, row in found.items() if len(row) > 1 and (wanted is None or n in wanted)}
        if not kept:
            raise ValueError(
                f"no exam of the build {self.options.build!r} is held with the options of {self.options.vanilla!r}; "
                "give both the same options, or name the exams"
            )
        return kept

    def _contaminated(self, experiment: Experiment) -> tuple[str, ...]:
        given = self.options
        there = self._stages(experiment)
        named = [] if given.clean is None else [("clean", given.clean)]
        others = [("contaminated", name) for name in given.contaminated or ()]
        for key, name in [*named, *others, *(("sizes", name) for name in given.sizes)]:
            if name not in there:
                raise ValueError(f"{key}: {name!r} is no candidate compared here; there are: {', '.join(there)}")
        if given.clean is not None and given.clean in (given.contaminated or ()):
            raise ValueError(f"contaminated: {given.clean!r} is the clean one; name another")
        if given.clean is None:
            if given.contaminated:
                raise ValueError("contaminated: say with whom they are compared (clean: NAME)")
            return ()
        if given.contaminated is not None:
            return given.contaminated
        return tuple(n for n in there if n != given.clean and experiment.candidates[n].recipe is not None)

    def _calibration(self, experiment: Experiment) -> list[str]:
        stage = self.options.calibration
        if stage is None:
            return []
        exams = {name: e for name, e in experiment.exams.items() if e.protocol == "probing.calibrate"}
        known = [s for name in exams for s in exam_stages(experiment, name, where="calibration").values()]
        if stage not in known:
            raise ValueError(
                f"calibration: {stage!r} is no probing.calibrate stage; there are: {', '.join(known) or 'none'}"
            )
        judge = experiment.build_specs(self.options.build, ["evaluator"])["evaluator"]
        name = next(n for e in exams for n, s in exam_stages(experiment, e, where="calibration").items() if s == stage)
        model = experiment.candidates[name].model
        measured = None if model is None else experiment.models[model]
        if measured is None or (measured.path, measured.adapter) != (judge.path, judge.adapter):
            raise ValueError(
                f"calibration: {stage!r} measured {name!r}, which is not the judge of the build {self.options.build!r} "
                f"(its evaluator, {judge.path}); name the stage of a candidate {{model: ...}} that is"
            )
        return [stage]


def _sat(run: Run, candidate: str, stage: str) -> Sat:
    file = run.stage(stage).path / "records.jsonl"
    exam = run.items(stage.removesuffix(f".{candidate}"))
    return Sat(file, read_jsonl(file), f"the items of {stage}", {item.id: item for item in exam.items})


def _probe(name: str) -> str | None:
    """The named set of a set's name (``all`` of ``all.set-2``); None for others (``variants``)."""
    probe = re.sub(r"\.set-[1-9]\d*$", "", name)
    return probe if probe in SETS else None


def _table(name: str, metrics: Mapping[str, Any]) -> Table:
    against = (metrics.get("contamination") or {}).get("candidates", {})
    body = []
    for candidate, groups in metrics["candidates"].items():
        for benchmark, figures in groups.items():
            for probe, row in figures["sets"].items():
                body.append([Cell(candidate), Cell(benchmark), Cell(probe), *_cells(row)])
                compared = (
                    against.get(candidate, {}).get(probe) if len(groups) == 1 or benchmark == EVERYTHING else None
                )
                body[-1] += [_spread((compared or {}).get(key)) for key in ("fidelity", "resistance")]
    judge = metrics["judge"]
    said = [f"Judge: recall {judge['recall']:.2f} on broken rewrites."] if judge.get("recall") is not None else []
    said += [f"Warning: {judge['warning']}."] if judge["warning"] else []
    said += [metrics["contamination"]["caution"]] if against else []
    header = (
        *("candidate", "benchmark", "set", "n", "sets", "vanilla %", "probed %", "delta"),
        *("delta without fallbacks", "fallbacks", "changed", "fidelity", "resistance"),
    )
    return Table(
        f"analysis_{name}",
        "Accuracy on the items as published and as rewritten, paired (± standard deviation over sets, 95% interval "
        "of the delta over items, in points). " + " ".join(said),
        header,
        body,
        title=f"Analysis {name}",
    )


def plotted(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The data of the figures: per candidate the change by set, and the 2x2 of its first set (``all`` if there)."""
    deltas: dict[str, Any] = {}
    churn: dict[str, Any] = {}
    shown = ""
    for name, groups in metrics["candidates"].items():
        sets = groups.get(EVERYTHING, next(iter(groups.values())))["sets"]
        deltas[name] = {
            probe: {"difference": row["pooled"]["delta"], "interval": row["pooled"]["delta_interval"]}
            for probe, row in sets.items()
        }
        probe = "all" if "all" in sets else next(iter(sets), None)
        if probe is not None:
            shown = probe
            counts = next(iter(sets[probe]["sets"].values()))["churn"]["counts"]
            churn[name] = {key: counts[cell] for key, cell in CELLS.items()}
    return {"deltas": deltas, "churn": churn, "churn_set": shown}


def _cells(row: Mapping[str, Any]) -> list[Cell]:
    over, pooled = row["over_sets"], row["pooled"]
    without = row.get("without_fallbacks")
    return [
        Cell(str(pooled["n"]), pooled["n"]),
        Cell(str(over["sets"]), over["sets"]),
        _spread(over["vanilla"], 100, 1),
        _spread(over["probed"], 100, 1),
        figure(pooled["delta"], pooled["delta_interval"], 100, 1),
        _spread(without["delta"], 100, 1) if without else Cell("-"),
        _spread(row.get("fallback_rate")),
        _spread(over["changed"]),
    ]


def _spread(value: Mapping[str, Any] | None, scale: float = 1, digits: int = 2) -> Cell:
    """A mean over sets, with its standard deviation where there are several."""
    if value is None or value.get("mean") is None:
        return Cell("-")
    mean = scale * value["mean"]
    text = f"{mean:.{digits}f}" + ("" if value.get("sd") is None else f" ± {scale * value['sd']:.{digits}f}")
    return Cell(text, value["mean"], digits=digits)
