"""Analyses of finished exams by kind. One is one file and one line here; it is imported when it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from proctor.analyses.base import Analysis

ANALYSES: dict[str, str] = {
    "probing": "proctor.analyses.probing:ProbingAnalysis",
    "items": "proctor.analyses.items:ItemAnalysis",
    "question_map": "proctor.analyses.question_map:QuestionMap",
}


def kind_of(name: str) -> type[Analysis]:
    """The class of an analysis. ValueError for an unknown name."""
    if name not in ANALYSES:
        raise ValueError(f"there is no analysis {name!r}; there are: {', '.join(ANALYSES)}")
    module, _, attribute = ANALYSES[name].partition(":")
    return cast("type[Analysis]", getattr(import_module(module), attribute))


def build(kind: str, options: Mapping[str, Any], *, where: str) -> Analysis:
    """An analysis with its options checked. ValueError names the option, its value and what would be right."""
    from serving.settings import validate

    made = kind_of(kind)
    return made(validate(made.Options, dict(options), where=where))
