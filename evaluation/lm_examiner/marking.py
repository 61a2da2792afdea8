"""An examiner marks an answer: what every protocol here lets one choose, and the asking."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from typing import Any, Final, Literal

from pydantic import Field

from evaluation.asking.form import COMMENT_CHARACTERS, DECODER, whole
from evaluation.asking.until_read import Form, Reading, ask_until_read
from evaluation.lm_examiner import likert, prompts
from evaluation.lm_examiner import marking as choices
from evaluation.protocol import ProtocolOptions
from serving.records import Completion, Yielded


class ExaminerOptions(ProtocolOptions):
    """verdict: ``structured`` (JSON enforced by a grammar) or ``free`` (text, read leniently, never guessed)
    comment_length: characters of the comment before a structured verdict; 0 leaves it out
    retries: further attempts at a verdict that can't be read, sampled at temperature 0.7; the first is greedy
    answer_tokens: max_tokens of a candidate's answer
    few_shot: of the shipped exemplars, how many a candidate sees
    quote_limit: characters kept of one answer in the examiner's prompt
    """

    verdict: Literal["structured", "free"] = "structured"
    comment_length: int = Field(default=0, ge=0, le=4000)
    retries: int = Field(default=2, ge=0, le=10)
    answer_tokens: int = Field(default=200, ge=1)
    few_shot: int = Field(default=0, ge=0, le=5)
    quote_limit: int = Field(default=8000, ge=100)

    @property
    def free(self) -> bool:
        return self.verdict == "free"

    def marks_form(self) -> Form[likert.Marks]:
        if self.free:
            return Form(read=lambda c: likert.read_free(c.text, cut=_cut(c)), max_tokens=likert.FREE_TOKENS)
        return Form(
            read=lambda c: likert.read_structured(c.text),
            max_tokens=likert.tokens(self.comment_length),
            schema=likert.schema(self.comment_length),
        )

    def choice_form(self) -> Form[int]:
        if self.free:
            return Form(read=lambda c: choices.read_free(c.text, cut=_cut(c)), max_tokens=choices.FREE_TOKENS)
        return Form(
            read=lambda c: choices.read_structured(c.text),
            max_tokens=choices.tokens(self.comment_length),
            schema=choices.schema(self.comment_length),
        )


def mark(
    role: str,
    answers: Sequence[tuple[str, str, str]],
    steps: Sequence[str],
    options: ExaminerOptions,
    *,
    seed: int,
    item_id: str,
) -> Generator[Yielded, Any, list[Reading[likert.Marks]]]:
    """The marks of each (question, answer, reference or "")."""
    asked = [
        prompts.marks(
            question,
            answer,
            reference=reference,
            free=options.free,
            comment_length=options.comment_length,
            limit=options.quote_limit,
        )
        for question, answer, reference in answers
    ]
    form = options.marks_form()
    return (yield from ask_until_read(role, asked, steps, form, retries=options.retries, seed=seed, item_id=item_id))


def marks_row(reading: Reading[likert.Marks]) -> dict[str, Any]:
    """``{"marks": {name: mark} or None, "overall", "comment", "attempts", "status"}``."""
    value = reading.value
    return {
        "marks": None if value is None else value.marks,
        "overall": None if value is None else value.overall,
        "comment": "" if value is None else value.comment,
        "attempts": reading.attempts,
        "status": reading.status,
    }


def _cut(completion: Completion) -> bool:
    return completion.finish_reason == "length"


CHOICES: Final = ("Response 1", "Response 2")
FREE_TOKENS: Final = 200

_NAMED = re.compile(r"\bresponse[ \-_#]*(?:no\.?[ ]*)?([12])\b(?![.,]?\d)", re.IGNORECASE)
_LINE = re.compile(
    r"^(?:[^\w\n]|_)*(?:(?:my|the|final|overall)[ ]){0,2}"
    r"(?:choice|verdict|answer|winner|preference|better(?:[ ]response)?)"
    r"\b[^\w\n]{1,8}(?:is[ ])?(?:the[ ])?(?:response[ ]*)?\[?([12])\b(?!\s?(?:and|or|,|/|&|=)\s?(?:response[ ])?[12])",
    re.IGNORECASE | re.MULTILINE,
)
_PRAISED = re.compile(
    r"\bresponse[ ]([12])[ ](?:is|was)[ ](?:clearly[ ]|much[ ]|slightly[ ])?(?:the[ ])?"
    r"(?:better|best|superior|stronger)\b",
    re.IGNORECASE,
)


def schema(comment_length: int) -> dict[str, Any]:
    """The JSON schema; the comment (none for length 0) is written before the choice it leads to."""
    properties: dict[str, Any] = {}
    if comment_length:
        properties["comment"] = {"type": "string", "pattern": f"^{COMMENT_CHARACTERS}{{0,{comment_length}}}$"}
    properties["choice"] = {"type": "string", "enum": list(CHOICES)}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def tokens(comment_length: int) -> int:
    return len(json.dumps({"comment": "x" * comment_length, "choice": CHOICES[0]})) + 1


def read_structured(text: str) -> int | None:
    """1 or 2; None if the text was cut or hasn't the form."""
    try:
        value = DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    choice = value.get("choice") if isinstance(value, dict) else None
    if isinstance(choice, str):
        choice = re.sub(r"^\s*response[ _]?", "", choice, flags=re.IGNORECASE)
    number = whole(choice)
    return number if number in (1, 2) else None


def read_free(text: str, *, cut: bool = False) -> int | None:
    """1 or 2 of a free text, never guessed.

    A line ``Choice: Response 1`` counts, else what is called the better one, else the only response that is named. Two
    different ones on the same footing are no choice.
    """
    said = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("|"))
    if cut:
        said = re.sub(r"(?<!\S)\S+\Z", "", said)
    for pattern in (_LINE, _PRAISED, _NAMED):
        named = set(pattern.findall(said))
        if named:
            return int(named.pop()) if len(named) == 1 else None
    return None
