"""What the judges that need no dialogue share: the form of a verdict, how it is read, and asking until there is one.

A verdict is a comment and, after it, one value out of a fixed few: a rating from 1 to 10, or a choice between A, B and
tie. It is read from the evaluator's completion only. A structured verdict always parses unless it was cut; its comment
is bounded by a pattern for the reasons given in ``evaluation.protocols.verdicts``. A free one is read leniently and
never guessed: two different values are no verdict, and what the judge quotes is not what the judge says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from evaluation.asking.form import (
    COMMENT_CHARACTERS,
    DECODER,
    FREE_VERDICT_TOKENS,
    SAMPLED_TEMPERATURE,
    json_objects,
    whole,
)
from evaluation.protocol import ProtocolOptions
from serving.records import Ask, Completion, Prompt, Sampling, Yielded, derive_seed

Value = int | str
Status = Literal["given", "unreadable", "context"]
"""Whether there is a verdict; else whether no attempt could be read, or the evaluator's prompt did not fit."""


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

    def schema(self, comment_length: int) -> dict[str, Any]:
        """The JSON schema. Key order matters: the comment is written before the value it leads to."""
        kind = "integer" if isinstance(self.values[0], int) else "string"
        properties = {
            "comment": {"type": "string", "pattern": f"^{COMMENT_CHARACTERS}{{0,{comment_length}}}$"},
            self.key: {"type": kind, "enum": list(self.values)},
        }
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}

    def tokens(self, comment_length: int) -> int:
        """Enough max_tokens for any verdict of that schema: its greatest length in characters, and one for the end."""
        return max(len(json.dumps({"comment": "x" * comment_length, self.key: value})) for value in self.values) + 1

    def parse_structured(self, text: str) -> Verdict | None:
        """The verdict of a JSON text; None if it was cut or hasn't the form."""
        try:
            return self._verdict(DECODER.decode(text))
        except (ValueError, RecursionError):
            return None

    def parse_free(self, text: str, *, cut: bool = False) -> Verdict | None:
        """The verdict of a free text, in which it may stand as JSON, as ``[[8]]`` or ``[[A>>B]]``, or on a line
        ``Rating: 8``.

        Quoted lines (``| ``) and what stands between quotation marks is not the judge's own. Two different values, or
        one out of range, are no verdict. cut: the text was cut by max_tokens; the word it broke off in may be half of
        one (``Rating: 1`` of 10), and does not count.
        """
        said = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("|"))
        if cut:
            said = re.sub(r"[^\s\[\]{}]+\Z", "", said)
        try:
            found, rest = self._embedded(said)
        except ValueError:
            return None
        values = {verdict.value for verdict in found} | self.stated(_QUOTED.sub(_unquoted_value, rest))
        if len(values) != 1:
            return None
        value = values.pop()
        if value not in self.values:
            return None
        return Verdict(value=value, comment=found[0].comment if found else "")

    def _embedded(self, text: str) -> tuple[list[Verdict], str]:
        """The verdicts that stand in a text as JSON objects, and the text without them."""
        found: list[Verdict] = []
        rest: list[str] = []
        start = 0
        for verdict, begin, end in json_objects(text, self._verdict):
            found.append(verdict)
            rest.append(text[start:begin] if begin >= start else "")
            start = end
        return found, "\n".join([*rest, text[start:]])

    def _verdict(self, form: Any) -> Verdict | None:
        if not isinstance(form, dict) or not isinstance(form.get("comment", ""), str):
            return None
        value = self._allowed(form.get(self.key))
        return None if value is None else Verdict(value=value, comment=form.get("comment", ""))

    def _allowed(self, given: Any) -> Value | None:
        """The allowed value that a judge wrote, in quotation marks or as a decimal, too."""
        if isinstance(self.values[0], int):
            number = whole(given, int(self.values[-1]))
            return number if number in self.values else None
        if not isinstance(given, str):
            return None
        said = given.strip()
        plain = [value for value in self.values if str(value).casefold() == said.casefold()]
        stated = plain or [*self.stated(f"[[{said.strip('[]')}]]")]
        return stated[0] if len(stated) == 1 and stated[0] in self.values else None


class JudgeOptions(ProtocolOptions):
    """What both protocols let one choose.

    temperatures: the candidate's: ``greedy``, or by ``category`` of MT-Bench (``evaluation.protocols.mt_bench``)
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
        needed = self.form.tokens(self.comment_length)
        if self.verdict == "structured" and self.evaluator_tokens is not None and self.evaluator_tokens < needed:
            raise ValueError(
                f"evaluator_tokens is {self.evaluator_tokens}, but a verdict with a comment of {self.comment_length} "
                f"characters can need {needed}: raise it to that, leave it out, or shorten comment_length"
            )
        return self


def judge(
    prompts: Sequence[Prompt],
    steps: Sequence[str],
    options: JudgeOptions,
    *,
    seed: int,
    item_id: str,
    role: str = "evaluator",
) -> Generator[Yielded, Any, list[Judgement]]:
    """One judgement per prompt. All are asked for in one list, then those that could not be read, once more.

    steps: a name per prompt, from which the seeds of its retries are derived
    role: who judges
    """
    structured = options.verdict == "structured"
    tokens = options.form.tokens(options.comment_length) if structured else FREE_VERDICT_TOKENS
    schema = options.form.schema(options.comment_length) if structured else None

    def ask(index: int, attempt: int) -> Ask:
        return Ask(
            role=role,
            prompt=prompts[index],
            sampling=Sampling(
                max_tokens=options.evaluator_tokens or tokens,
                temperature=SAMPLED_TEMPERATURE if attempt else 0.0,
                # a seed means nothing at temperature 0; one value lets equal requests share an answer
                seed=derive_seed(seed, item_id, steps[index], attempt) if attempt else 0,
            ),
            schema=schema,
        )

    judgements: dict[int, Judgement] = {}
    waiting = list(range(len(prompts)))
    for attempt in range(options.retries + 1):
        if not waiting:
            break
        completions: list[Completion] = yield [ask(index, attempt) for index in waiting]
        for index, completion in zip(waiting, completions, strict=True):
            judgements[index] = _read(completion, options, attempt + 1)
        waiting = [index for index in waiting if judgements[index].status == "unreadable"]
    return [judgements[index] for index in range(len(prompts))]


def _read(completion: Completion, options: JudgeOptions, attempts: int) -> Judgement:
    if completion.finish_reason == "context":
        return Judgement(verdict=None, attempts=attempts, status="context")
    if options.verdict == "structured":
        verdict = options.form.parse_structured(completion.text)
    else:
        verdict = options.form.parse_free(completion.text, cut=completion.finish_reason == "length")
    return Judgement(verdict=verdict, attempts=attempts, status="given" if verdict else "unreadable")


_QUOTED = re.compile(r'"[^"\n]*"|“[^“”\n]*”|`[^`\n]*`')
_VALUE = re.compile(r"[\"“`]\s?(\d{1,4}(?:\.\d+)?(?:\s?/\s?\d+)?|[ABab]|tie|draw|yes|no)\s?[\"”`]", re.IGNORECASE)
_LABELLED = re.compile(r"(?:[:=]|\bis)[\s*_]{0,4}\Z")
_BRACKETS = re.compile(r"\[\[([^\[\]\n]{1,20})\]\]")
_OPENING = r"^[^\w\n]*(?:(?:my|the|final|overall)[ ]){0,2}"
_NUMBER = r"(\d{1,4}(?:[.,]\d+)?)(?:[ ]?(?:/|out of)[ ]?(\d+)(?:\.0+)?)?"
_RATING_LINE = re.compile(
    rf"{_OPENING}(?:rating|score|grade)\b(?:[ ]?\([^()\n]{{0,20}}\))?(?:[ ](?:is|of))?[^\w\n]{{1,8}}{_NUMBER}"
    r"(?!\w|[.,]\d|\s?(?:[-–]|to|or|and)\s?\d)",
    re.IGNORECASE | re.MULTILINE,
)
_CHOICE_LINE = re.compile(
    rf"{_OPENING}(?i:choice|verdict|winner|preference|better(?:[ ](?:reply|answer|assistant))?)\b[^\w\n]{{1,8}}"
    r"(?i:it is[ ])?(?:(?i:a[ ])?(?i:(tie|draw)\b)|(?i:(?:the|assistant|reply|answer)[ ]){0,2}([AB])\b)"
    r"(?!\s?(?:and|or|,|/|&|=)\s?(?:assistant[ ])?[AB]\b)",
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
