"""The evaluator's verdict on one reply: its form, the grammar that enforces the form, and how it is read.

KIEval (arXiv 2402.15043, section 3.3 and Appendix): five aspects and an overall score from 1 (poor) to 4 (strong), each
with a comment that is written before its score, and whether to end the interview, with a reason. A verdict in free text
is read by ``free_text``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from evaluation.asking.form import closed, comment, one_of, read_json, room, whole
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
class RoundVerdict:
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
    judged = closed({"comment": comment(comment_length), "score": one_of((1, 2, 3, 4))})
    return closed(
        {
            **dict.fromkeys((*ASPECTS, "overall"), judged),
            "reason": one_of(STOP_REASONS),
            "stop": {"type": "boolean"},
        }
    )


def verdict_tokens(comment_length: int) -> int:
    """Enough ``max_tokens`` for any verdict of that schema."""
    judged = {"comment": "x" * comment_length, "score": 4}
    longest = {**dict.fromkeys((*ASPECTS, "overall"), judged), "reason": max(STOP_REASONS, key=len), "stop": False}
    return room(longest)


def parse_structured(text: str) -> RoundVerdict | None:
    """A verdict from its JSON text; None if it was cut, doesn't have the form, or says one thing twice."""
    return verdict_of(read_json(text))


def verdict_of(value: Any) -> RoundVerdict | None:
    """A verdict from a JSON value; None if it doesn't have the form."""
    try:
        form = _Form.model_validate(value)
    except ValueError:
        return None
    judged: dict[str, _Judged] = {name: getattr(form, name) for name in ASPECTS}
    return RoundVerdict(
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
    said = value.strip().casefold() if isinstance(value, str) else ""
    return {"true": True, "yes": True, "false": False, "no": False}.get(said, value)


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
