"""What the judges that need no dialogue share: the form of a verdict, how it is read, and asking for one.

A verdict is a comment and, after it, one value out of a fixed few: a rating from 1 to 10, or a choice between A, B and
tie. It is read from the evaluator's completion only. A structured verdict always parses unless it was cut
(``evaluation.asking.form``). A free one is read leniently and never guessed: two different values are no verdict, and
what the judge quotes is not what the judge says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from evaluation.asking.form import (
    FREE_VERDICT_TOKENS,
    Fields,
    Form,
    check_room,
    objects_in,
    own_words,
    read_json,
    whole,
)
from evaluation.asking.until_read import Status, ask_until_read
from evaluation.protocol import ProtocolOptions
from serving.records import Prompt, Yielded

Value = int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One verdict, read. ``comment`` is empty where free text held no JSON."""

    value: Value
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What came of asking for one verdict: ``verdict`` is None unless ``status`` is ``given``."""

    verdict: Verdict | None
    attempts: int
    status: Status

    @property
    def value(self) -> Value | None:
        return None if self.verdict is None else self.verdict.value

    @property
    def comment(self) -> str:
        return "" if self.verdict is None else self.verdict.comment


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictForm:
    """The form of a verdict: ``{"comment": text, key: value}``.

    key: the value's name in JSON
    values: those allowed
    stated: finds the values that free text states, those outside of ``values`` included
    """

    key: str
    values: tuple[Value, ...]
    stated: Callable[[str], set[Value]]

    def fields(self, comment_length: int) -> Fields:
        """The form with a comment of so many characters."""
        return Fields({"comment": comment_length, self.key: self.values})

    def parse_structured(self, text: str) -> Verdict | None:
        """The verdict of a JSON text; None if it was cut or hasn't the form."""
        return self._verdict(read_json(text))

    def parse_free(self, text: str, *, cut: bool = False) -> Verdict | None:
        """The verdict of a free text, in which it may stand as JSON, as ``[[8]]`` or ``[[A>>B]]``, or on a line
        ``Rating: 8``.

        What stands in quoted lines or between quotation marks is not the judge's own. Two different values, or one out
        of range, are no verdict. cut: max_tokens ended the text (``evaluation.asking.form.own_words``).
        """
        try:
            found, rest = objects_in(own_words(text, cut=cut, half=_HALF), self._verdict)
        except ValueError:
            return None
        values = {verdict.value for verdict in found} | self.stated(_QUOTED.sub(_unquoted_value, "\n".join(rest)))
        if len(values) != 1:
            return None
        value = values.pop()
        if value not in self.values:
            return None
        return Verdict(value=value, comment=found[0].comment if found else "")

    def _verdict(self, value: Any) -> Verdict | None:
        given = value.get(self.key) if isinstance(value, dict) else None
        if isinstance(given, str) and isinstance(self.values[0], str):
            # "[[A]]", "A>>B"
            stated = self.stated(f"[[{given.strip(' []')}]]")
            value = {**value, self.key: stated.pop()} if len(stated) == 1 else value
        answer = self.fields(0).answer(value, lacking="")
        return None if answer is None else Verdict(value=answer[self.key], comment=answer["comment"])


class JudgeOptions(ProtocolOptions):
    """What both protocols let one choose.

    temperatures: the candidate's: ``greedy``, or by ``category`` of MT-Bench (``evaluation.asking.turns``)
    reference: whether the evaluator is shown a reference answer: ``never``, ``always`` (where there is one), or
        ``auto``: for math, reasoning and coding, and for exam items, whose reference is their key
    retries: further attempts at a verdict that doesn't parse, sampled at temperature 0.7; the first is greedy
    verdict: ``structured`` (JSON enforced by a grammar) or ``free`` (text, read leniently)
    comment_length: characters of the comment in a structured verdict; 24 suits very small models
    candidate_tokens, evaluator_tokens: max_tokens per role; the evaluator's default is what the longest verdict can
        need (structured), or 400 (free)
    candidate_format: ``chat``, or ``plain`` for a candidate without a chat template: a transcript with stop strings
    quote_limit: characters kept of one reply or reference in the evaluator's prompt
    """

    form: ClassVar[VerdictForm]

    temperatures: Literal["category", "greedy"] = "greedy"
    reference: Literal["auto", "never", "always"] = "auto"
    retries: int = Field(default=2, ge=0, le=10)
    verdict: Literal["structured", "free"] = "structured"
    comment_length: int = Field(default=300, ge=1, le=4000)
    candidate_tokens: int = Field(default=1024, ge=1)
    evaluator_tokens: int | None = Field(default=None, ge=1)
    candidate_format: Literal["chat", "plain"] = "chat"
    quote_limit: int = Field(default=8000, ge=100)

    @model_validator(mode="after")
    def _room_for_a_verdict(self) -> JudgeOptions:
        if self.verdict == "structured":
            needed = self.form.fields(self.comment_length).tokens()
            check_room(self.evaluator_tokens, needed, f"a comment of {self.comment_length}")
        return self

    def asked_form(self) -> Form[Verdict]:
        """The form as it is asked for and read with these settings."""
        form, fields = self.form, self.form.fields(self.comment_length)
        if self.verdict == "structured":
            tokens = self.evaluator_tokens or fields.tokens()
            return Form(read=lambda c: form.parse_structured(c.text), max_tokens=tokens, schema=fields.schema())
        return Form(
            read=lambda c: form.parse_free(c.text, cut=c.finish_reason == "length"),
            max_tokens=self.evaluator_tokens or FREE_VERDICT_TOKENS,
        )


def judge(
    prompts: Sequence[Prompt],
    steps: Sequence[str],
    options: JudgeOptions,
    *,
    seed: int,
    item_id: str,
    role: str = "evaluator",
) -> Generator[Yielded, Any, list[Judgement]]:
    """One judgement per prompt (``evaluation.asking.until_read``).

    steps: a name per prompt, from which the seeds of its retries are derived
    role: who judges
    """
    readings = yield from ask_until_read(
        role, prompts, steps, options.asked_form(), retries=options.retries, seed=seed, item_id=item_id
    )
    return [Judgement(verdict=r.value, attempts=r.attempts, status=r.status) for r in readings]


_HALF = r"[^\s\[\]{}]+\Z"
_QUOTED = re.compile(r'"[^"\n]*"|“[^“”\n]*”|`[^`\n]*`')
_VALUE = re.compile(r"[\"“`]\s?(\d{1,4}(?:\.\d+)?(?:\s?/\s?\d+)?|[AB]|tie|draw|yes|no)\s?[\"”`]", re.IGNORECASE)
_LABELLED = re.compile(r"(?:[:=]|\bis)[\s*_]{0,4}\Z")
_BRACKETS = re.compile(r"\[\[([^\[\]\n]{1,20})\]\]")
_OPENING = (
    r"^[^\w\n]*(?:(?:on second thoughts?|actually|correction|no|wait|rather)[,:]?[ ]){0,2}"
    r"(?:(?:my|the|final|overall)[ ]){0,2}"
)
_NUMBER = r"(\d{1,4}(?:[.,]\d+)?)(?:[ ]?(?:/|out of)[ ]?(\d+)(?:\.0+)?)?"
_RATING_LINE = re.compile(
    rf"{_OPENING}(?:rating|score|grade)\b(?:[ ]?\([^()\n]{{0,20}}\))?(?:[ ](?:is|of))?[^\w\n]{{1,8}}{_NUMBER}"
    r"(?!\w|[.,]\d|\s?(?:[-–]|to|or|and)\s?\d|\s?%"
    r"|[ ]?(?:(?:stars?|points?)[ ]?)?\(?(?:out of|of|/)[ ]?(?!10\b)\d)",
    re.IGNORECASE | re.MULTILINE,
)
_CHOICE_LINE = re.compile(
    rf"{_OPENING}(?i:choice|verdict|winner|preference|better(?:[ ](?:reply|answer|assistant))?)\b[^\w\n]{{1,8}}"
    r"(?i:it is[ ])?(?:(?i:a[ ])?(?i:(tie|draw)\b)|(?i:(?:the|assistant|reply|answer)[ ]){0,2}([AB])\b)"
    r"(?!\s?(?:and|or|,|/|&|=)\s?(?:assistant[ ])?[AB]\b"
    r"|\s(?i:(?:is|was)[ ](?:not|worse|wrong|no)\b|(?:is|was)n['’]t\b))",
    re.MULTILINE,
)


def _stated_ratings(text: str) -> set[Value]:
    """A number out of another scale than 10, or with decimals, is kept as text: stated, and no rating."""
    found: set[Value] = set()
    marked = [re.fullmatch(_NUMBER, content.strip()) for content in _BRACKETS.findall(text)]
    for match in [*filter(None, marked), *_RATING_LINE.finditer(text)]:
        number, scale = match.groups()
        value = whole(number) if scale in (None, "10") else None
        found.add(match.group() if value is None else value)
    return found


def _unquoted_value(match: re.Match[str]) -> str:
    """What a judge quotes is not its own, but for a value behind a label: ``Rating: "8"``."""
    value = _VALUE.fullmatch(match[0])
    before = match.string[max(0, match.start() - 24) : match.start()]
    return value[1] if value and _LABELLED.search(before) else " "


# [[C]] is how FastChat's judges write a tie; Arena-Hard's say how much better one is: [[A>>B]], [[B>A]], [[A=B]].
_MARKS: dict[str, Value] = {
    **{"a": "A", "b": "B", "c": "tie", "tie": "tie"},
    **dict.fromkeys(("a>>b", "a>b", "b<a", "b<<a"), "A"),
    **dict.fromkeys(("b>>a", "b>a", "a<b", "a<<b"), "B"),
    **dict.fromkeys(("a=b", "b=a", "a==b", "a≈b"), "tie"),
}


def _mark(content: str) -> str:
    """The verdict between double brackets without its spaces and escapes."""
    return "".join(content.split()).replace("\\", "").replace("&gt;", ">").replace("&lt;", "<").lower()


def _stated_choices(text: str) -> set[Value]:
    found = {_MARKS[mark] for content in _BRACKETS.findall(text) if (mark := _mark(content)) in _MARKS}
    return found | {letter or "tie" for _, letter in _CHOICE_LINE.findall(text)}


RATING = VerdictForm(key="rating", values=tuple(range(1, 11)), stated=_stated_ratings)
"""How good one reply is, from 1 to 10."""

CHOICE = VerdictForm(key="choice", values=("A", "B", "tie"), stated=_stated_choices)
"""Which of two replies is the better one."""
