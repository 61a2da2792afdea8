"""Forms that a judge fills in: the schema that enforces one, the tokens it can need, and how a reply is read.

A structured reply always parses unless it was cut. Its texts are bounded by a pattern of printable ASCII characters
without ``"`` and backslash: each token then spells at least one character, so a form's length in characters is a true
bound of its tokens for any tokenizer. (``maxLength`` alone lets raw tabs through xgrammar, and lets one character cost
four tokens; pattern and ``maxLength`` together are refused by vLLM.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from serving.records import Completion
from serving.strict_json import unrepeated

COMMENT_CHARACTERS: Final = r"[ !#-\[\]-~]"
FREE_VERDICT_TOKENS: Final = 400

MOST_OBJECTS: Final = 200
_OBJECT = re.compile(r"\{\s*[\"}]")

ValueT = TypeVar("ValueT")
Answer = dict[str, Any]
Allowed = tuple[int | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Generic[ValueT]):
    """How a reply is asked for and read.

    read: the value of a completion, or None; schema: the grammar of a structured reply, None for free text
    """

    read: Callable[[Completion], ValueT | None]
    max_tokens: int
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object with these keys in this order (what leads to a value is written before it): a number stands for a
    text of at most so many characters (0: none is asked for), a tuple for the values that are allowed."""

    fields: Mapping[str, int | Allowed]

    def schema(self) -> dict[str, Any]:
        return closed(
            {
                name: comment(what) if isinstance(what, int) else one_of(what)
                for name, what in self.fields.items()
                if what != 0
            }
        )

    def tokens(self) -> int:
        """Enough max_tokens for any answer of this form."""
        return room(
            {
                name: "x" * what if isinstance(what, int) else max(what, key=lambda value: len(str(value)))
                for name, what in self.fields.items()
            }
        )

    def parse(self, text: str, *, lacking: str | None = None) -> Answer | None:
        """The answer of a JSON text; None if it was cut, says one thing twice, or isn't one (``answer``)."""
        return self.answer(read_json(text), lacking=lacking)

    def answer(self, value: Any, *, lacking: str | None = None) -> Answer | None:
        """The answer of a JSON value; None if it lacks a key or holds a value that isn't allowed.

        lacking: what stands for a text that isn't there; None: every text must be
        """
        if not isinstance(value, dict):
            return None
        found: Answer = {}
        for name, what in self.fields.items():
            given = value.get(name, lacking if isinstance(what, int) else None)
            if not isinstance(what, int):
                given = _meant(given, what)
            elif not isinstance(given, str):
                return None
            if given is None:
                return None
            found[name] = given
        return found

    def form(self) -> Form[Answer]:
        """Asked for as a structured reply."""
        return Form(read=lambda c: self.parse(c.text), max_tokens=self.tokens(), schema=self.schema())


def one_word(key: str, allowed: tuple[str, ...], *, max_tokens: int) -> Form[str]:
    """One value out of a few, asked for as ``{key: value}``."""
    fields = Fields({key: allowed})
    return Form(
        read=lambda c: None if (answer := fields.parse(c.text)) is None else answer[key],
        max_tokens=max_tokens,
        schema=fields.schema(),
    )


def comment(length: int) -> dict[str, Any]:
    """The schema of a text of at most ``length`` characters."""
    return {"type": "string", "pattern": f"^{COMMENT_CHARACTERS}{{0,{length}}}$"}


def one_of(values: Allowed) -> dict[str, Any]:
    """The schema of one value out of a few of one kind."""
    return {"type": "integer" if isinstance(values[0], int) else "string", "enum": list(values)}


def closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with these properties, all of them and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def room(longest: Any) -> int:
    """Enough max_tokens for a JSON value: its length in characters, spaces after ``,`` and ``:`` included, and one for
    the end."""
    return len(json.dumps(longest)) + 1


def read_json(text: str) -> Any:
    """The value of a JSON text; None if it was cut, or a key stands twice in one object."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def objects_in(
    text: str, read: Callable[[Any], ValueT | None], *, inside: bool = False
) -> tuple[list[ValueT], list[str]]:
    """What ``read`` makes of the JSON objects in a text, and the pieces of text between those it could read.

    inside: look for others within an object, too
    ValueError where more than ``MOST_OBJECTS`` places look like an object, or one is nested too deep for the decoder:
    no judge writes that, and trying them all takes time that grows with the square of the text.
    """
    found: list[ValueT] = []
    rest: list[str] = []
    start, end, tried = 0, 0, 0
    for match in _OBJECT.finditer(text):
        if match.start() < end:
            continue
        tried += 1
        if tried > MOST_OBJECTS:
            raise ValueError(f"more than {MOST_OBJECTS} places look like JSON objects")
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except RecursionError as error:
            raise ValueError("JSON is nested deeper than any verdict") from error
        except ValueError:
            continue
        made = [one for one in (read(part) for part in (_objects(value) if inside else (value,))) if one is not None]
        if made:
            found += made
            rest.append(text[start : match.start()])
            start = end
    return found, [*rest, text[start:]]


def _objects(value: Any) -> Iterator[Any]:
    """An object, and those inside of it."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
        waiting += reversed(list(part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()))


def own_words(text: str, *, cut: bool = False, half: str = r"(?<!\S)\S+\Z") -> str:
    """A free text without quoted lines (``| ``), which aren't the judge's own.

    cut: the text was cut by max_tokens; the word it broke off in (``half``) may be half of one (``Rating: 1`` of 10),
    and is left out
    """
    said = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("|"))
    return re.sub(half, "", said) if cut else said


def check_room(given: int | None, needed: int, comments: str) -> None:
    """ValueError if the option ``evaluator_tokens`` is below what a structured verdict can need.

    comments: which its form holds, in words
    """
    if given is not None and given < needed:
        raise ValueError(
            f"evaluator_tokens is {given}, but a verdict with {comments} characters can need {needed}: raise it to "
            "that, leave it out, or shorten comment_length"
        )


def _meant(value: Any, allowed: Allowed) -> int | str | None:
    """The allowed value that was written: a number in quotation marks or as a decimal (``whole``), a word in another
    case, too."""
    if isinstance(allowed[0], int):
        number = whole(value, int(allowed[-1]))
        return number if number in allowed else None
    if not isinstance(value, str):
        return None
    alike = [word for word in allowed if str(word).casefold() == value.strip().casefold()]
    return alike[0] if len(alike) == 1 else None


_WHOLE = re.compile(r"([0-9]{1,4})(?:\.0{1,4})?(?:\s?(?:/|out of)\s?([0-9]{1,4})(?:\.0{1,4})?)?")


def whole(value: Any, scale: int | None = None) -> int | None:
    """The whole number that a judge means: ``8``, ``8.0``, ``"8"``, ``"8.0"``, and ``"8/10"`` on a scale of 10.

    None for anything else; ``True`` is no 1, and 7.5 is no rating of a form that has whole ones.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    match = _WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or (match[2] is not None and (scale is None or int(match[2]) != scale)):
        return None
    return int(match[1])


_DECODER: Final = json.JSONDecoder(strict=False, object_pairs_hook=unrepeated)
