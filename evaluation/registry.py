"""Exam protocols by name, of one model or a group. A protocol is one file and one line here; it is imported when it is
first used."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from evaluation.items import Item
    from evaluation.protocol import ExamBuilder, ExamProtocol, GroupProtocol

    WithOptions = type[ExamProtocol] | type[GroupProtocol] | type[ExamBuilder]

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


def protocols() -> tuple[str, ...]:
    """The names of all protocols."""
    return tuple(PROTOCOLS)


def protocol(name: str) -> type[ExamProtocol]:
    """The class of a protocol. ValueError for an unknown name."""
    return cast("type[ExamProtocol]", _named(PROTOCOLS, name, "protocol", GROUPS, "groups"))


def group_protocol(name: str) -> type[GroupProtocol]:
    """The class of a group's protocol. ValueError for an unknown name."""
    return cast("type[GroupProtocol]", _named(GROUPS, name, "group protocol", PROTOCOLS, "exams"))


def _named(table: Mapping[str, str], name: str, what: str, other: Mapping[str, str], place: str) -> Any:
    if name not in table:
        mend = f"it belongs under '{place}'" if name in other else f"there are: {', '.join(table)}"
        raise ValueError(f"there is no {what} {name!r}; {mend}")
    module, _, attribute = table[name].partition(":")
    return getattr(import_module(module), attribute)


def build(name: str, options: Mapping[str, Any], *, seed: int, exemplars: Sequence[Item] = ()) -> ExamProtocol:
    """A protocol with its options checked. ValueError names the option, its value and what would be right."""
    kind = protocol(name)
    return kind(checked_options(name, kind, options), seed=seed, exemplars=exemplars)


def build_group(name: str, options: Mapping[str, Any], *, candidates: Sequence[str], seed: int) -> GroupProtocol:
    """A group's protocol for these models, its options checked. ValueError as of ``build``, or for its models."""
    kind = group_protocol(name)
    return kind(checked_options(name, kind, options), candidates=candidates, seed=seed)


def checked_options(name: str, kind: WithOptions, options: Mapping[str, Any]) -> Any:
    """The ``Options`` of a protocol. ValueError names the option, its value and what would be right."""
    from pydantic import ValidationError

    try:
        return kind.Options.model_validate(dict(options))
    except ValidationError as error:
        raise ValueError("; ".join(_fault(name, kind, fault) for fault in error.errors())) from error


def _fault(name: str, kind: WithOptions, fault: Mapping[str, Any]) -> str:
    where = ".".join([name, *map(str, fault["loc"])])
    if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
        known = list(kind.Options.model_fields)
        near = difflib.get_close_matches(str(fault["loc"][0]), known, n=1, cutoff=0.5)
        return f"{where}: unknown option; " + (f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}")
    return f"{where}: {fault['msg']} (it is {fault['input']!r})"
