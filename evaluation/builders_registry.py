"""Exam builders by name. A builder is one file and one line here; it is imported when it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from serving.named import lookup

if TYPE_CHECKING:
    from evaluation.protocol import ExamBuilder

BUILDERS: dict[str, str] = {
    "lm_examiner": "evaluation.lm_examiner.build:LMExaminerBuilder",
    "probing": "evaluation.probing.build:Probing",
    "idgen": "evaluation.idgen.build:IDGen",
}


def builder(name: str) -> type[ExamBuilder]:
    """The class of a builder. ValueError for an unknown name."""
    return cast("type[ExamBuilder]", lookup(BUILDERS, name, "builder"))


def build(name: str, options: Mapping[str, Any], *, seed: int) -> ExamBuilder:
    """A builder with its options checked. ValueError names the option, its value and what would be right."""
    from serving.settings import checked_options

    kind = builder(name)
    return kind(checked_options(name, kind.Options, options), seed=seed)
