"""The self-tests of an experiment's models: run by ``proctor check``, kept in every run's environment.json."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from proctor.experiment import Experiment
from serving.models import ModelSpec


def self_tests(experiment: Experiment) -> Iterator[str]:
    """Measures each model once and says what came out. A model that can't be loaded is a ValueError or EngineError."""
    from serving import self_test

    if os.environ.get("PROCTOR_DEVICE"):
        yield "self-tests left out: PROCTOR_DEVICE declares another machine's device; run 'proctor check' there"
        return
    for name, spec in to_measure(experiment):
        if spec.engine == "server":
            yield f"self-test of {name}: left out, it is served elsewhere (check it with engine: vllm)"
            continue
        notes: list[str] = []
        figures = self_test.measure(spec, mode=experiment.schedule, say=notes.append)
        when = f"{figures['seconds']:.0f} s" if notes else "measured before"
        yield f"self-test of {name} ({spec.engine}, {figures['device']}; {when}):"
        for line in self_test.lines(figures):
            yield f"    {line}"
        for warning in self_test.warnings(figures):
            yield f"    warning: {warning}"


def measured(experiment: Experiment) -> dict[str, Any]:
    """By model, the figures that ``proctor check`` has measured on this machine; a model without any is left out."""
    from serving import self_test

    found = {}
    for name, spec in to_measure(experiment):
        if spec.engine != "server":
            figures = self_test.find(self_test.key_of(spec, experiment.schedule))
            if figures is not None:
                found[name] = {**figures, "warnings": self_test.warnings(figures)}
    return found


def to_measure(experiment: Experiment) -> list[tuple[str, ModelSpec]]:
    """The models that the experiment uses, but no scripted one."""
    used = {experiment.base, *experiment.roles.values()}
    used |= {candidate.model for candidate in experiment.candidates.values() if candidate.model is not None}
    if experiment.detection is not None and experiment.detection.reference is not None:
        used.add(experiment.detection.reference)
    found = [(name, experiment.models[name].resolved()) for name in sorted(used)]
    return [(name, spec) for name, spec in found if spec.engine != "scripted"]
