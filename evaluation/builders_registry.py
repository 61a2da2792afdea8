"""Exam builders by name. A builder is one file and one line here; it is imported when it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from evaluation.protocol import ExamBuilder

BUILDERS: dict[str, str] = {
    "lm_examiner": "evaluation.lm_examiner.build:LMExaminerBuilder",
    "probing": "evaluation.probing.build:Probing",
    "idgen": "evaluation.idgen.build:IDGen",
}


def builder(name: str) -> type[ExamBuilder]:
    """The class of a builder. ValueError for an unknown name."""
    if name not in BUILDERS:
        raise ValueError(f"there is no builder {name!r}; there are: {', '.join(BUILDERS)}")
    module, _, attribute = BUILDERS[name].partition(":")
    return cast("type[ExamBuilder]", getattr(import_module(module), attribute))


def build(name: str, options: Mapping[str, Any], *, seed: int) -> ExamBuilder:
    """A builder with its options checked. ValueError names the option, its value and what would be right."""
    from evaluation.registry import checked_options

    kind = builder(name)
    return kind(checked_options(name, kind, options), seed=seed)
