"""Candidates that train on what a build of the same experiment made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.exam_set import read_exam
from proctor.checks.experiment import preflight
from proctor.experiment.experiment import Experiment
from proctor.experiment.load import resolve
from proctor.run_folder.run import RunFolder
from proctor.runner.plan import find, plan, states
from proctor.stages.train import job_for
from serving.files import read_json
from tests.proctor.command import experiment
from tests.proctor.scripted import do


def value(model: Path, **changes: Any) -> dict[str, Any]:
    """The options of the whole exam are permuted, twice (no model is needed for that); candidates learn from it."""
    made = experiment(
        model,
        roles={"prober": "q", "evaluator": "q"},
        builds={"moved": {"builder": "probing", "options": {"probes": ["p3"], "sets": 2, "augment": True}}},
        candidates={
            "augmented": {"recipe": "augmented", "options": {"variants": "build:moved"}},
            "control": {"recipe": "augmented", "options": {"variants": "build:moved", "originals_only": True}},
            "normal": {"recipe": "normal", "options": {"variants": "build:moved"}},
        },
        exams={"static": {"protocol": "static"}},
        detection=None,
    )
    made["models"]["q"] = {"path": "none", "engine": "scripted"}
    return {**made, **changes}


def resolved(model: Path, **changes: Any) -> Experiment:
    return resolve(Experiment.model_validate(value(model, **changes)))


def test_variants_of_the_leaked_half_alone_are_learned(tiny_model: Path, tmp_path: Path) -> None:
    stages = ["exam", "build.moved", "train.augmented", "train.control"]
    run = do(tmp_path, value(tiny_model), *stages)
    exam, made = read_exam(run / "exam"), read_exam(run / "stages" / "build.moved" / "sets" / "variants")
    of_leaked = [item for item in made.items if item.source_id in exam.leaked]
    assert 0 < len(of_leaked) < len(made.items), "the build rewrote both halves"
    augmented, control = (read_json(run / "models" / name / "manifest.json") for name in ("augmented", "control"))
    assert augmented["phases"][0]["samples"] == len(exam.leaked) + len(of_leaked)
    assert control["phases"][0]["samples"] == len(exam.leaked)
    assert augmented["steps"] == control["steps"]
    assert set(augmented["leaked_ids"]) == set(control["leaked_ids"]) == exam.leaked
    assert augmented["job"]["variants"] == str(run / "stages/build.moved/sets/variants/items.jsonl")
    assert augmented["inputs"]["variants"] == control["inputs"]["variants"]
    # what is learned changes with what the build made, and with nothing else of it
    found = {
        state.stage.name: state.state
        for state in states(RunFolder(run, resolved(tiny_model)), plan(resolved(tiny_model)))
    }
    assert [found[name] for name in stages] == ["done"] * 4
    other = resolved(
        tiny_model, builds={"moved": {"builder": "probing", "options": {"probes": ["p3"], "augment": True}}}
    )
    found = {state.stage.name: state.state for state in states(RunFolder(run, other), plan(other))}
    assert (found["build.moved"], found["train.augmented"], found["train.normal"]) == ("stale", "waiting", "ready")


def test_only_who_reads_the_build_waits_for_it(tiny_model: Path) -> None:
    stages = plan(resolved(tiny_model))
    assert find(stages, "train.augmented").needs == find(stages, "train.control").needs == ("exam", "build.moved")
    assert find(stages, "train.normal").needs == ("exam",)
    digest = find(stages, "train.augmented").digest
    assert digest({"exam": "1", "build.moved": "2"}) != digest({"exam": "1", "build.moved": "3"})


def test_a_build_may_be_named_for_all_candidates(tiny_model: Path) -> None:
    training = {**value(tiny_model)["training"], "variants": "build:moved"}
    candidates = {"a": {"recipe": "augmented"}, "n": {"recipe": "normal"}}
    stages = plan(resolved(tiny_model, training=training, candidates=candidates))
    assert find(stages, "train.a").needs == ("exam", "build.moved")
    assert find(stages, "train.n").needs == ("exam",)


PROBING = {"builder": "probing", "options": {"probes": ["p3"], "augment": True}}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (None, r"training of candidate augmented: variants: 'moved' is not an entry of builds; did you mean 'moves'\?"),
        ({"builder": "lm_examiner"}, "which writes other questions"),
        ({**PROBING, "benchmark": {"format": "embedded", "limit": 4}}, "has a benchmark of its own"),
        ({**PROBING, "items": "untouched"}, "rewrites the untouched half only"),
        ({"builder": "probing"}, "makes no variants; set its option augment: true"),
    ],
)
def test_a_build_that_can_not_be_trained_on_is_refused(
    tiny_model: Path, build: dict[str, Any] | None, message: str
) -> None:
    builds = {"moves": PROBING} if build is None else {"moved": build}
    with pytest.raises(ValueError, match=message):
        job_for(resolved(tiny_model, builds=builds), "augmented")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        ({"options": {"probes": ["p4"]}}, "its exam is 'p4', which leaves the question's words as they are"),
        ({"limit": 3, "options": {"probes": ["p1"]}}, "rewrites 3 of 4 leaked items, and each needs a rewrite"),
    ],
)
def test_a_paraphrase_cheater_needs_every_question_in_other_words(
    tiny_model: Path, build: dict[str, Any], message: str
) -> None:
    candidates = {"p": {"recipe": "paraphrase_cheater", "options": {"rewrites": "build:moved"}}}
    with pytest.raises(ValueError, match=message):
        preflight(resolved(tiny_model, builds={"moved": {"builder": "probing", **build}}, candidates=candidates))


def test_a_build_without_any_version_says_what_to_change(tiny_model: Path, tmp_path: Path) -> None:
    builds = {"moved": {"builder": "probing", "options": {"probes": ["p1"], "sets": 1, "attempts": 1, "augment": True}}}
    with pytest.raises(RuntimeError, match=r"build 'moved' made no version that was accepted .* a stronger prober"):
        do(tmp_path, value(tiny_model, builds=builds), "exam", "build.moved", "train.augmented")
    metrics = json.loads((tmp_path / "run" / "stages" / "build.moved" / "metrics.json").read_text())
    assert metrics["items"] == 8, "the items are there, as they were"
