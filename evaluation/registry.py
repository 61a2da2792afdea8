"""Protocols of one model or a group, builders and analyses by name: one line here each, imported when first used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from serving.named import lookup

if TYPE_CHECKING:
    from evaluation.analysis import Analysis
    from evaluation.items import Item
    from evaluation.protocol import ExamBuilder, ExamProtocol, GroupProtocol

PROTOCOLS = {
    "static": "evaluation.static:Static",
    "kieval": "evaluation.kieval.interview:KIEval",
    "mt_bench": "evaluation.judges.mt_bench:MTBench",
    "pairwise": "evaluation.judges.pairwise:Pairwise",
    "lm_examiner": "evaluation.lm_examiner.exam:LMExaminer",
    "question_levels": "evaluation.lm_examiner.question_levels:QuestionLevels",
    "probing.calibrate": "evaluation.probing.calibrate:ProbingCalibrate",
    "idgen": "evaluation.idgen.exam:IDGenExam",
}
GROUPS = {
    "ranking": "evaluation.lm_examiner.ranking_exam:Ranking",
    "peer_examination": "evaluation.lm_examiner.peer_examination:PeerExamination",
    "style_bias": "evaluation.lm_examiner.style_bias:StyleBias",
}
"""Those that examine several models together."""
BUILDERS = {
    "lm_examiner": "evaluation.lm_examiner.build:LMExaminerBuilder",
    "probing": "evaluation.probing.build:Probing",
    "idgen": "evaluation.idgen.build:IDGen",
}
ANALYSES = {
    "probing": "evaluation.probing.analysis:ProbingAnalysis",
    "items": "evaluation.item_analysis.analysis:ItemAnalysis",
    "question_map": "evaluation.lm_examiner.question_map:QuestionMap",
}
HEADLINED = ("static", "kieval")
"""The protocols with columns of their own in the contamination table, in their order."""


def protocols() -> tuple[str, ...]:
    """The names of all protocols."""
    return tuple(PROTOCOLS)


def protocol(name: str) -> type[ExamProtocol]:
    """The class of a protocol. ValueError for an unknown name."""
    return cast("type[ExamProtocol]", _found(PROTOCOLS, name, "protocol", GROUPS, "groups"))


def group_protocol(name: str) -> type[GroupProtocol]:
    """The class of a group's protocol. ValueError for an unknown name."""
    return cast("type[GroupProtocol]", _found(GROUPS, name, "group protocol", PROTOCOLS, "exams"))


def builder(name: str) -> type[ExamBuilder]:
    """The class of a builder. ValueError for an unknown name."""
    return cast("type[ExamBuilder]", lookup(BUILDERS, name, "builder"))


def analysis(name: str) -> type[Analysis]:
    """The class of an analysis. ValueError for an unknown name."""
    return cast("type[Analysis]", lookup(ANALYSES, name, "analysis"))


def _found(table: Mapping[str, str], name: str, what: str, other: Mapping[str, str], place: str) -> Any:
    return lookup(table, name, what, mend=f"it belongs under '{place}'" if name in other else "")


def build(name: str, options: Mapping[str, Any], *, seed: int, exemplars: Sequence[Item] = ()) -> ExamProtocol:
    """A protocol with its options checked. ValueError names the option, its value and what would be right."""
    from serving.settings import checked_options

    kind = protocol(name)
    return kind(checked_options(name, kind.Options, options), seed=seed, exemplars=exemplars)


def build_group(name: str, options: Mapping[str, Any], *, candidates: Sequence[str], seed: int) -> GroupProtocol:
    """A group's protocol for these models, its options checked. ValueError as of ``build``, or for its models."""
    from serving.settings import checked_options

    kind = group_protocol(name)
    return kind(checked_options(name, kind.Options, options), candidates=candidates, seed=seed)


def build_builder(name: str, options: Mapping[str, Any], *, seed: int) -> ExamBuilder:
    """A builder with its options checked. ValueError as of ``build``."""
    from serving.settings import checked_options

    kind = builder(name)
    return kind(checked_options(name, kind.Options, options), seed=seed)


def build_analysis(kind: str, options: Mapping[str, Any], *, where: str) -> Analysis:
    """An analysis with its options checked. ValueError names the option, its value and what would be right."""
    from serving.settings import validate

    made = analysis(kind)
    return made(validate(made.Options, dict(options), where=where))
