"""Stage ``detect.<candidate>``: evidence of leakage in the candidate's token probabilities (``base``: the control)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from detection.audit import exam_texts
from detection.inputs import TO_COME, Inputs, build, check_apart
from detection.run_detectors import SET_TESTS, Examined, detect
from detection.text.texts import TextFormat
from evaluation.exam_set import FrozenExam, read_exam
from evaluation.run_exam import Report
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import CONTROL
from proctor.experiment.sections import DetectionConfig
from proctor.run_folder.run import RunFolder
from proctor.stages.base import Stage
from serving.files import write_json
from serving.model.fingerprint import model_identity, served_as
from serving.model.spec import ModelSpec


def subject(experiment: Experiment, candidate: str, folder: Path) -> ModelSpec:
    """The model under examination: a candidate, or the untouched base (``base``)."""
    if candidate == CONTROL and CONTROL not in experiment.candidates:
        return experiment.models[experiment.base].resolved()
    return experiment.spec(candidate, folder)


def stage(experiment: Experiment, candidate: str) -> Stage:
    config = experiment.detection
    assert config is not None
    spec = subject(experiment, candidate, Path("trained"))
    inputs = inputs_of(experiment, candidate, spec)
    # The exam's exemplars, which are the non-members where no file is named, are not drawn yet.
    build(inputs, inputs.context(None if config.non_members else TO_COME))
    known = experiment.candidates.get(candidate)
    trained = known is not None and known.recipe is not None
    return Stage(
        name=f"detect.{candidate}",
        needs=("exam", f"train.{candidate}") if trained else ("exam",),
        version=4,
        config={
            **inputs.identity(),
            "formats": list(config.formats),
            "leak_format": experiment.leak_format,
            "mode": experiment.mode,
            "seed": experiment.seed,
            "serve": served_as(spec),
            "model": None if trained else model_identity(spec),
        },
        body=lambda run, folder, report: _detect(run, folder, report, candidate),
        gpus=max(spec.tensor_parallel, inputs.reference.tensor_parallel if inputs.reference else 0),
    )


def inputs_of(experiment: Experiment, candidate: str, spec: ModelSpec) -> Inputs:
    """What the experiment's ``detection`` says, for one candidate: in ConStat's file, it is the row of its name."""
    config = experiment.detection
    assert config is not None
    options: dict[str, dict[str, Any]] = dict(config.options)
    if "constat" in config.set_tests:
        own = options.get("constat", {})
        if not own.keys() & {"model", "accuracy", "reference_accuracy"}:
            options["constat"] = {**own, "model": candidate}
    return Inputs(
        methods=config.methods,
        set_tests=config.set_tests,
        options=options,
        model=spec,
        reference=None if config.reference is None else experiment.models[config.reference].resolved(),
        corpus=_path(config.corpus),
        non_members=_path(config.non_members),
        members=_path(config.members),
        benchmark=config.benchmark_name,
        long_texts=config.long_texts,
        seed=experiment.seed,
    )


def examined(experiment: Experiment, exam: FrozenExam, how: TextFormat, inputs: Inputs) -> Examined:
    """The exam's items in one format. ValueError if a known text is one of them."""
    texts = exam_texts(exam.items, exam.leaked, how, experiment.leak_format)
    pool = None
    if inputs.non_members is None:
        of_items = {text.text.strip() for text in texts}
        spelled = exam_texts(exam.exemplars, (), how, experiment.leak_format)
        pool = [text.text for text in spelled if text.text.strip() not in of_items]
    context = inputs.context(pool)
    if pool is None:
        check_apart(texts, context.non_members, "non-member", inputs.non_members)
    check_apart(texts, context.members, "member", inputs.members)
    return Examined(texts=texts, context=context)


def check_exam(experiment: Experiment, exam: FrozenExam) -> None:
    """ValueError if a method of detection needs known texts that neither a file nor the exam's exemplars give, or that
    are items of the exam."""
    if experiment.detection is None:
        return
    spec = experiment.models[experiment.base].resolved()
    inputs = inputs_of(experiment, CONTROL, spec)
    for how in experiment.detection.formats:
        build(inputs, examined(experiment, exam, how, inputs).context)


def _detect(run: RunFolder, folder: Path, report: Report, candidate: str) -> list[str]:
    experiment = run.experiment
    config: DetectionConfig | None = experiment.detection
    assert config is not None
    exam = read_exam(run.stage("exam").path)
    inputs = inputs_of(experiment, candidate, subject(experiment, candidate, run.candidate_model(candidate)))
    sets = {folder / how: examined(experiment, exam, how, inputs) for how in config.formats}
    ledger = run.ledger(f"detect.{candidate}")
    usage = detect(sets, inputs, mode=experiment.schedule, ledger_folder=ledger, report=report)
    write_json(folder / "usage.json", usage)
    # the headline's, where every stage has them
    names = ["records.jsonl", "metrics.json", *([SET_TESTS] if config.set_tests else [])]
    for name in names:
        (folder / name).write_bytes((folder / config.formats[0] / name).read_bytes())
    return [*names, *(f"{place.name}/{name}" for place, one in sets.items() for name in one.files(inputs))]


def _path(value: str | None) -> Path | None:
    return None if value is None else Path(value).expanduser()
