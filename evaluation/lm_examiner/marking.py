"""An examiner's verdicts: five marks of an answer, or which of two answers is the better one (LMExamQA, section 3.3).

Marks are four dimensions from 1 to 3 and an overall one from 1 to 5. Structured, a verdict is a JSON object enforced by
a grammar; free, five lines ``name: integer``, or a line ``Choice: Response 1``. What is missing, out of range, of
another scale, or said twice differently makes a verdict invalid; nothing is ever clamped or guessed.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import Field

from evaluation.asking.form import Fields, Form, own_words, read_json, whole
from evaluation.asking.until_read import Reading, ask_until_read
from evaluation.lm_examiner import prompts
from evaluation.protocol import ProtocolOptions
from evaluation.templates import well_formed
from serving.records import Completion, Yielded

DIMENSIONS: Final = ("accuracy", "coherence", "factuality", "comprehensiveness")
MAXIMA: Final = {**dict.fromkeys(DIMENSIONS, 3), "overall": 5}
"""The best mark of each; the worst is 1."""
FULL: Final = 5
CHOICES: Final = ("Response 1", "Response 2")
FREE_MARKS_TOKENS: Final = 300
FREE_CHOICE_TOKENS: Final = 200

_MARK = re.compile(
    r"^(?:[^\S\n]|[*_#>\-•\d.)])*(?P<name>accuracy|coherence|factuality|comprehensive(?:ness)?|overall)"
    r"(?:[ ](?:score|mark|rating|quality))?[\s*_\"]*[:：=][\s*_\"\[(]*(?P<value>[^\s*_,;\])\"]+)"
    r"(?:[ ]?(?:/|out of)[ ]?(?P<scale>\d+))?",
    re.IGNORECASE | re.MULTILINE,
)
_SCALED = re.compile(r"(\d+)/(\d+)")
_NAMED = re.compile(r"\bresponse[ \-_#]*(?:no\.?[ ]*)?([12])\b(?![.,]?\d)", re.IGNORECASE)
_CHOICE = re.compile(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """One verdict, read: a mark for each of ``MAXIMA``; ``comment`` is empty where none was asked for."""

    marks: dict[str, int]
    comment: str = ""

    @property
    def overall(self) -> int:
        return self.marks["overall"]


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

    def marks_form(self) -> Form[Marks]:
        if self.free:
            return Form(read=lambda c: read_free_marks(c.text, cut=_cut(c)), max_tokens=FREE_MARKS_TOKENS)
        fields = marks_fields(self.comment_length)
        return Form(read=lambda c: read_marks(c.text), max_tokens=fields.tokens(), schema=fields.schema())

    def choice_form(self) -> Form[int]:
        if self.free:
            return Form(read=lambda c: read_free_choice(c.text, cut=_cut(c)), max_tokens=FREE_CHOICE_TOKENS)
        fields = choice_fields(self.comment_length)
        return Form(read=lambda c: read_choice(c.text), max_tokens=fields.tokens(), schema=fields.schema())


def mark(
    role: str,
    answers: Sequence[tuple[str, str, str]],
    steps: Sequence[str],
    options: ExaminerOptions,
    *,
    seed: int,
    item_id: str,
) -> Generator[Yielded, Any, list[Reading[Marks]]]:
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


def marks_row(reading: Reading[Marks]) -> dict[str, Any]:
    """``{"marks": {name: mark} or None, "overall", "comment", "attempts", "status"}``."""
    value = reading.value
    return {
        "marks": None if value is None else value.marks,
        "overall": None if value is None else value.overall,
        "comment": "" if value is None else value.comment,
        "attempts": reading.attempts,
        "status": reading.status,
    }


def marks_fields(comment_length: int) -> Fields:
    """The comment (none for length 0) is written before the marks it leads to."""
    return Fields({"comment": comment_length, **{name: tuple(range(1, most + 1)) for name, most in MAXIMA.items()}})


def choice_fields(comment_length: int) -> Fields:
    """The comment (none for length 0) is written before the choice it leads to."""
    return Fields({"comment": comment_length, "choice": CHOICES})


def read_marks(text: str) -> Marks | None:
    """The marks of a JSON text; None if it was cut or hasn't the form."""
    return _marks(read_json(text))


def read_choice(text: str) -> int | None:
    """1 or 2, of a JSON text; None if it was cut or hasn't the form."""
    value = read_json(text)
    number = whole(value.get("choice")) if isinstance(value, dict) else None
    if number is not None:
        value["choice"] = f"Response {number}"
    answer = choice_fields(0).answer(value, lacking="")
    return None if answer is None else CHOICES.index(answer["choice"]) + 1


def read_free_marks(text: str, *, cut: bool = False) -> Marks | None:
    """The marks of a free text (``evaluation.asking.form.own_words``)."""
    stated: dict[str, set[int | None]] = {}
    for match in _MARK.finditer(own_words(text, cut=cut)):
        name = match.group("name").lower()
        name = "comprehensiveness" if name.startswith("comprehensive") else name
        stated.setdefault(name, set()).add(_integer(match.group("value"), match.group("scale"), MAXIMA[name]))
    if any(len(values) != 1 for values in stated.values()):
        return None
    return _marks({name: values.pop() for name, values in stated.items()})


def read_free_choice(text: str, *, cut: bool = False) -> int | None:
    """1 or 2 of a free text.

    A line ``Choice: Response 1`` counts, else what is called the better one, else the only response that is named. Two
    different ones on the same footing are no choice.
    """
    said = own_words(text, cut=cut)
    for pattern in (_CHOICE, _PRAISED, _NAMED):
        named = set(pattern.findall(said))
        if named:
            return int(named.pop()) if len(named) == 1 else None
    return None


def _integer(value: str, scale: str | None, most: int) -> int | None:
    """A mark; None for a word, a decimal or another scale. ``3/3`` and ``3.0`` are a 3, ``3/5`` is nothing."""
    if scaled := _SCALED.fullmatch(value):
        value, scale = scaled.groups()
    value = value.rstrip(".")
    # compared as text: Python refuses to make a number of thousands of digits
    if scale is not None and scale != str(most):
        return None
    return whole(value) if value.isascii() else None


def _marks(value: Any) -> Marks | None:
    answer = marks_fields(0).answer(value, lacking="")
    if answer is None:
        return None
    return Marks(marks={name: answer[name] for name in MAXIMA}, comment=well_formed(answer["comment"]))


def _cut(completion: Completion) -> bool:
    return completion.finish_reason == "length"
