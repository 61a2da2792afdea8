"""Analyses of finished exams by kind. One is one file and one line here; it is imported when it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from serving.named import lookup

if TYPE_CHECKING:
    from proctor.analyses.base import Analysis

ANALYSES: dict[str, str] = {
    "probing": "proctor.analyses.probing:ProbingAnalysis",
    "items": "proctor.analyses.items:ItemAnalysis",
    "question_map": "proctor.analyses.question_map:QuestionMap",
}


def kind_of(name: str) -> type[Analysis]:
    """The class of an analysis. ValueError for an unknown name."""
    return cast("type[Analysis]", lookup(ANALYSES, name, "analysis"))


def build(kind: str, options: Mapping[str, Any], *, where: str) -> Analysis:
    """An analysis with its options checked. ValueError names the option, its value and what would be right."""
    from serving.settings import validate

    made = kind_of(kind)
    return made(validate(made.Options, dict(options), where=where))
