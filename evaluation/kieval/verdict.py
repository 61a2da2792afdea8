"""The evaluator's verdict on one reply: its form, the grammar that enforces the form, and how it is read.

KIEval (arXiv 2402.15043, section 3.3 and Appendix): five aspects and an overall score from 1 (poor) to 4 (strong), each
with a comment that is written before its score, and whether to end the interview, with a reason. A verdict in free text
is read by ``kieval_free_text``.

A structured verdict always parses. Its comments are bounded by a pattern of printable ASCII characters without ``"``
and backslash: each token then spells at least one character, so ``verdict_tokens`` is a true bound for any tokenizer.
(``maxLength`` alone lets raw tabs through xgrammar, and lets one character cost four tokens; pattern and ``maxLength``
together are refused by vLLM.)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from evaluation.asking.form import COMMENT_CHARACTERS, DECODER, whole
from evaluation.templates import well_formed

ASPECTS: Final = ("accuracy", "logic", "relevance", "coherence", "conciseness")
STOP_REASONS: Final = (
    "none",
    "off_topic",
    "empty_response",
    "hallucination",
    "repetition",
    "rule_violation",
    "role_shift",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One verdict, read.

    overall: 1..4, the round's score s_i
    scores, comments: by aspect; a score is None where free text gave none
    stop, reason: whether to end the interview; ``none`` where no reason was given
    """

    overall: int
    comment: str
    scores: dict[str, int | None]
    comments: dict[str, str]
    stop: bool
    reason: str

    def to_json(self) -> dict[str, Any]:
        """``{"accuracy": {"comment", "score"}, ..., "overall": {...}, "stop": bool, "reason": str}``."""
        judged = {name: {"comment": self.comments[name], "score": self.scores[name]} for name in ASPECTS}
        overall = {"comment": self.comment, "score": self.overall}
        return {**judged, "overall": overall, "stop": self.stop, "reason": self.reason}


def verdict_schema(comment_length: int) -> dict[str, Any]:
    """The JSON schema of a verdict whose comments have at most ``comment_length`` characters.

    Key order matters: a comment comes before its score, the reason before the decision to stop.
    """
    pattern = f"^{COMMENT_CHARACTERS}{{0,{comment_length}}}$"
    judged = _closed(
        {"comment": {"type": "string", "pattern": pattern}, "score": {"type": "integer", "enum": [1, 2, 3, 4]}}
    )
    return _closed(
        {
            **dict.fromkeys((*ASPECTS, "overall"), judged),
            "reason": {"type": "string", "enum": list(STOP_REASONS)},
            "stop": {"type": "boolean"},
        }
    )


def verdict_tokens(comment_length: int) -> int:
    """Enough ``max_tokens`` for any verdict of that schema: its greatest length in characters, spaces after ``,`` and
    ``:`` included, and one token for the end."""
    judged = {"comment": "x" * comment_length, "score": 4}
    longest = {**dict.fromkeys((*ASPECTS, "overall"), judged), "reason": max(STOP_REASONS, key=len), "stop": False}
    return len(json.dumps(longest)) + 1


def parse_structured(text: str) -> Verdict | None:
    """A verdict from its JSON text; None if it was cut, doesn't have the form, or says one thing twice."""
    try:
        return verdict_of(DECODER.decode(text))
    except (ValueError, RecursionError):
        return None


def verdict_of(value: Any) -> Verdict:
    """A verdict from a JSON value. ValueError if it doesn't have the form."""
    form = _Form.model_validate(value)
    judged: dict[str, _Judged] = {name: getattr(form, name) for name in ASPECTS}
    return Verdict(
        overall=form.overall.score,
        comment=well_formed(form.overall.comment),
        scores={name: part.score for name, part in judged.items()},
        comments={name: well_formed(part.comment) for name, part in judged.items()},
        stop=form.stop,
        reason=form.reason,
    )


def _score(value: Any) -> Any:
    """``"3"``, ``3.0`` and ``"3/4"`` are a 3; anything else is left to the check."""
    number = whole(value, 4)
    return value if number is None else number


def _stop(value: Any) -> Any:
    said = value.strip().casefold() if isinstance(value, str) else value
    return {"true": True, "yes": True, "false": False, "no": False}.get(said, value) if isinstance(said, str) else value


class _Judged(BaseModel):
    model_config = ConfigDict(strict=True)
    comment: str = ""
    score: Annotated[int, BeforeValidator(_score)] = Field(ge=1, le=4)


class _Form(BaseModel):
    model_config = ConfigDict(strict=True)
    accuracy: _Judged
    logic: _Judged
    relevance: _Judged
    coherence: _Judged
    conciseness: _Judged
    overall: _Judged
    reason: str = Field(default="none", pattern=f"^({'|'.join(STOP_REASONS)})$")
    stop: Annotated[bool, BeforeValidator(_stop)] = False


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
