"""The evaluator's verdict on one reply: its form, the grammar that enforces the form, and how it is read.

KIEval (arXiv 2402.15043, section 3.3 and Appendix): five aspects and an overall score from 1 (poor) to 4 (strong), each
with a comment that is written before its score, and whether to end the interview, with a reason.

A structured verdict always parses. Its comments are bounded by a pattern of printable ASCII characters without ``"``
and backslash: each token then spells at least one character, so ``verdict_tokens`` is a true bound for any tokenizer.
(``maxLength`` alone lets raw tabs through xgrammar, and lets one character cost four tokens; pattern and ``maxLength``
together are refused by vLLM.)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from serving.records import canonical_json

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
_COMMENT_CHARACTERS: Final = r"[ !#-\[\]-~]"


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
    pattern = f"^{_COMMENT_CHARACTERS}{{0,{comment_length}}}$"
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
    """A verdict from its JSON text; None if it was cut or doesn't have the form."""
    try:
        return _verdict(_Form.model_validate(json.loads(text, strict=False)))
    except (ValueError, RecursionError):
        return None


def parse_free(text: str) -> Verdict | None:
    """A verdict from free text: JSON somewhere in it, or lines such as ``Accuracy: good facts. 3/4``.

    It needs an overall score; an aspect without one is None. It never guesses: a score given twice with different
    values, or a decision both ways, is no verdict.
    """
    try:
        found = _embedded_json(text)
        if found is not None:
            return found
        scores = {name: _line_score(text, name) for name in (*ASPECTS, "overall")}
        stop = _decision(text)
    except _Ambiguous:
        return None
    overall = scores.pop("overall")
    if overall is None:
        return None
    return Verdict(
        overall=overall,
        comment="",
        scores=scores,
        comments=dict.fromkeys(ASPECTS, ""),
        stop=stop,
        reason=_reason(text) if stop else "none",
    )


class _Judged(BaseModel):
    model_config = ConfigDict(strict=True)
    comment: str = ""
    score: int = Field(ge=1, le=4)


class _Form(BaseModel):
    model_config = ConfigDict(strict=True)
    accuracy: _Judged
    logic: _Judged
    relevance: _Judged
    coherence: _Judged
    conciseness: _Judged
    overall: _Judged
    reason: str = Field(default="none", pattern=f"^({'|'.join(STOP_REASONS)})$")
    stop: bool = False


def _verdict(form: _Form) -> Verdict:
    judged: dict[str, _Judged] = {name: getattr(form, name) for name in ASPECTS}
    return Verdict(
        overall=form.overall.score,
        comment=form.overall.comment,
        scores={name: part.score for name, part in judged.items()},
        comments={name: part.comment for name, part in judged.items()},
        stop=form.stop,
        reason=form.reason,
    )


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


class _Ambiguous(Exception):
    """Free text that says two things."""


def _embedded_json(text: str) -> Verdict | None:
    """The verdict that stands in the text as a JSON object; _Ambiguous where two differ."""
    decoder = json.JSONDecoder(strict=False)
    found: list[Verdict] = []
    position = text.find("{")
    while position >= 0:
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            verdict = parse_structured(canonical_json(value))
            if verdict is not None and verdict not in found:
                found.append(verdict)
        position = text.find("{", end)
    if len(found) > 1:
        raise _Ambiguous
    return found[0] if found else None


def _lines(text: str, name: str) -> list[str]:
    """What follows ``name:`` on the lines that begin so, decoration aside; quoted lines (``| ``) aren't the judge's."""
    start = rf"^[^a-zA-Z\n|]*{name}\b[^:=(\n]{{0,20}}[:=(](.*)$"
    return re.findall(start, text, re.IGNORECASE | re.MULTILINE)


def _line_score(text: str, name: str) -> int | None:
    """The score on the lines of an aspect: ``name: 3``, ``**Name**: good. Score: 3/4``."""
    values: set[str] = set()
    for line in _lines(text, name):
        said = re.split(r"\bscore\b", line, flags=re.IGNORECASE)[-1]
        values.update(re.findall(r"(?<![\d.,/])([1-4])(?:\s*/\s*4)?(?!\d|\s*/|[.,]\d)", said))
    if len(values) > 1:
        raise _Ambiguous
    return int(values.pop()) if values else None


def _decision(text: str) -> bool:
    words = {
        word.lower() for line in _lines(text, "stop") for word in re.findall(r"^\W*(yes|no|true|false)\b", line, re.I)
    }
    decisions = {word in ("yes", "true") for word in words}
    if len(decisions) > 1:
        raise _Ambiguous
    return decisions == {True}


def _reason(text: str) -> str:
    named = {re.sub(r"\W+", "_", line.strip(" *_.\"'`)").lower()) for line in _lines(text, "reason")}
    known = named & set(STOP_REASONS)
    return known.pop() if len(known) == 1 else "none"
