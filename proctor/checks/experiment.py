"""Everything that can be known to be wrong before anything is written: models, files, options, the exam itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from evaluation import registry as protocols
from evaluation.exam_set import FrozenExam
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import others, protocol_for, seeds_stage
from proctor.runner.plan import plan
from proctor.stages import build, detect
from proctor.stages.base import Stage
from proctor.stages.freeze import draw_exam
from proctor.stages.prefilter import filter_for
from proctor.stages.train import given_settings, job_for
from proctor.stages.training_inputs import builds_read, check_seeds
from serving.engines.common import context_length
from serving.model.adapters import check_servable, read_adapter
from serving.model.fingerprint import ModelError, identity_files, resolve_model
from serving.model.folder import check_complete, safetensors_header
from serving.model.hashes import rehash
from serving.model.spec import ModelSpec
from serving.role_engines import check_mode
from training.presets import tell_of_reset


class Checked(NamedTuple):
    """The experiment's exam, each exam's items (its own, or the experiment's; none yet of a build), and the stages."""

    exam: FrozenExam
    items: dict[str, FrozenExam]
    stages: list[Stage]


def preflight(experiment: Experiment) -> Checked:
    """Checks the whole experiment. ValueError with the first fault: what, where, and what would be right."""
    check_mode(experiment.mode)
    check_models(experiment)
    exam = draw_exam(experiment)
    items = {}
    for name in experiment.builds:
        seeds = exam if seeds_stage(experiment, name) else build.draw_seeds(experiment, name)
        build.check(experiment, name, seeds)
    for name, config in experiment.exams.items():
        if config.build is not None:  # its items are not written yet: only the options can be checked
            _check_protocol(experiment, name)
            continue
        items[name] = exam if config.benchmark is None else draw_exam(experiment, name)
        pool = items[name].exemplars
        if config.prefilter:
            filter_for(experiment, name)
        try:
            protocol = protocols.build(config.protocol, config.options, seed=experiment.seed, exemplars=pool)
            experiment.role_specs(protocol.roles[1:])
            for dialogue in protocol.dialogues(items[name].part(config.items, config.limit)):
                dialogue.close()
        except ValueError as error:
            raise ValueError(f"exams.{name}: {error}") from error
    for name in experiment.groups:
        found = _check_group(experiment, name, exam)
        if found is not None:
            items[name] = found
    for name, candidate in experiment.candidates.items():
        experiment.spec(name, Path("trained"))
        if candidate.recipe is not None:
            check_training(experiment, name, exam)
    stages = plan(experiment)
    detect.check_exam(experiment, exam)
    for name, candidate in experiment.candidates.items():
        if candidate.recipe is not None:
            tell_of_reset(given_settings(experiment, name))
    return Checked(exam, items, stages)


def _check_protocol(experiment: Experiment, exam: str) -> None:
    """ValueError if an exam's options are wrong, or a role is nobody's."""
    config = experiment.exams[exam]
    if config.prefilter:
        filter_for(experiment, exam)
    try:
        protocol = protocols.build(config.protocol, config.options, seed=experiment.seed)
        experiment.role_specs(protocol.roles[1:])
    except ValueError as error:
        raise ValueError(f"exams.{exam}: {error}") from error


def _check_group(experiment: Experiment, name: str, exam: FrozenExam) -> FrozenExam | None:
    """A group's items, None where there are none yet. ValueError if its options, models or items are wrong."""
    config = experiment.groups[name]
    protocol = protocol_for(experiment, name)
    others(experiment, name, protocol)
    if config.build is not None or protocol.assignments() is not None:
        return None
    found = exam if config.benchmark is None else draw_exam(experiment, name)
    try:
        for dialogue in protocol.dialogues(found.part(config.items, config.limit)):
            dialogue.close()
    except ValueError as error:
        raise ValueError(f"groups.{name}: {error}") from error
    return found


def check_models(experiment: Experiment) -> None:
    """Every model that the experiment uses, by its name in ``models``."""
    for name in used_models(experiment):
        check_model(experiment.models[name], f"models.{name}")


def read_again(experiment: Experiment) -> Iterator[str]:
    """Reads every file of the models that the experiment uses, whatever its dates say: a line per model, and one per
    file that is not what was hashed before."""
    for name in used_models(experiment):
        check_model(experiment.models[name], f"models.{name}")
        files = identity_files(experiment.models[name])
        wrong = rehash(files)
        yield f"rehash {name}: {len(files)} files read, {len(wrong)} not as they were hashed before"
        for path in wrong:
            yield (
                f"    warning: {path} has other content than its cached hash, under the same times; answers filed "
                "under that hash may be another model's. It is corrected: 'proctor run' does again what rests on it"
            )


def used_models(experiment: Experiment) -> list[str]:
    """Names of the entries of ``models`` that something uses."""
    used = {experiment.base, *experiment.roles.values()}
    used |= {model for config in experiment.builds.values() for model in config.roles.values()}
    if experiment.detection is not None and experiment.detection.reference is not None:
        used.add(experiment.detection.reference)
    used |= {candidate.model for candidate in experiment.candidates.values() if candidate.model is not None}
    return sorted(used)


def check_model(spec: ModelSpec, where: str) -> None:
    """ModelError (a ValueError) that begins with ``where`` if the model can't be used."""
    if spec.engine == "scripted":
        return
    try:
        folder = resolve_model(spec)
        check_complete(folder, allow_pickle=spec.allow_pickle)
        context_length(spec, folder)
        if spec.adapter:
            adapter = Path(spec.adapter).expanduser()
            (check_servable if spec.engine in ("vllm", "server") else read_adapter)(adapter)
            safetensors_header(adapter / "adapter_model.safetensors")
        if spec.chat_template not in (None, "none") and not Path(str(spec.chat_template)).expanduser().is_file():
            raise ModelError(f"chat_template file {spec.chat_template} does not exist; give a Jinja file, or 'none'")
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error


def check_training(experiment: Experiment, candidate: str, exam: FrozenExam) -> None:
    """ValueError if the candidate's recipe, settings or data are wrong."""
    from training.config import FILE_FORMS
    from training.corpora import read_chat, read_corpus
    from training.recipe_traits import traits

    job = job_for(experiment, candidate)
    try:
        read_chat(Path(job.chat), job.chat_rows, job.chat_skip)
        read_corpus(Path(job.corpus))
        check_seeds(experiment, job, exam)
        for key in traits(job.recipe).files:
            path = getattr(job, key)
            if path is not None and key not in builds_read(job) and not Path(path).is_file():
                raise ValueError(f"{key} {path} does not exist; it holds {FILE_FORMS[key]}")
    except ValueError as error:
        raise ValueError(f"candidate {candidate}: {error}") from error
