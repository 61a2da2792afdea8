"""Five marks of an answer: four dimensions from 1 to 3 and an overall one from 1 to 5 (LMExamQA, section 3.3).

Structured: a JSON object enforced by a grammar. Free: five lines ``name: integer``. What is missing, out of range, of
another scale, or said twice differently makes the verdict invalid; nothing is ever clamped.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from evaluation.asking.form import COMMENT_CHARACTERS, DECODER, whole
from evaluation.templates import well_formed

DIMENSIONS: Final = ("accuracy", "coherence", "factuality", "comprehensiveness")
MAXIMA: Final = {**dict.fromkeys(DIMENSIONS, 3), "overall": 5}
"""The best mark of each; the worst is 1."""
FULL: Final = 5
FREE_TOKENS: Final = 300

_LINE = re.compile(
    r"^(?:[^\S\n]|[*_#>\-•\d.)])*(?P<name>accuracy|coherence|factuality|comprehensive(?:ness)?|overall)"
    r"(?:[ ](?:score|mark|rating|quality))?[\s*_\"]*[:：=][\s*_\"\[(]*(?P<value>[^\s*_,;\])\"]+)"
    r"(?:[ ]?(?:/|out of)[ ]?(?P<scale>\d+))?",
    re.IGNORECASE | re.MULTILINE,
)
_SCALED = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """One verdict, read: a mark for each of ``MAXIMA``; ``comment`` is empty where none was asked for."""

    marks: dict[str, int]
    comment: str = ""

    @property
    def overall(self) -> int:
        return self.marks["overall"]


def schema(comment_length: int) -> dict[str, Any]:
    """The JSON schema; the comment (none for length 0) is written before the marks it leads to."""
    properties: dict[str, Any] = {}
    if comment_length:
        properties["comment"] = {"type": "string", "pattern": f"^{COMMENT_CHARACTERS}{{0,{comment_length}}}$"}
    for name, most in MAXIMA.items():
        properties[name] = {"type": "integer", "enum": list(range(1, most + 1))}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def tokens(comment_length: int) -> int:
    """Enough max_tokens for any verdict of that schema: its greatest length in characters, and one for the end."""
    return len(json.dumps({"comment": "x" * comment_length, **MAXIMA})) + 1


def read_structured(text: str) -> Marks | None:
    """The marks of a JSON text; None if it was cut or hasn't the form."""
    try:
        value = DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return _marks(value)


def read_free(text: str, *, cut: bool = False) -> Marks | None:
    """The marks of a free text. cut: the word that max_tokens broke off in does not count.

    Quoted lines (``| ``) are the answer's, not the examiner's.
    """
    said = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("|"))
    if cut:
        said = re.sub(r"(?<!\S)\S+\Z", "", said)
    stated: dict[str, set[int | None]] = {}
    for match in _LINE.finditer(said):
        name = match.group("name").lower()
        name = "comprehensiveness" if name.startswith("comprehensive") else name
        stated.setdefault(name, set()).add(_integer(match.group("value"), match.group("scale"), MAXIMA[name]))
    if any(len(values) != 1 for values in stated.values()):
        return None
    return _marks({name: values.pop() for name, values in stated.items()})


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
    if not isinstance(value, dict) or not isinstance(value.get("comment", ""), str):
        return None
    marks: dict[str, int] = {}
    for name, most in MAXIMA.items():
        mark = whole(value.get(name), most)
        if mark is None or not 1 <= mark <= most:
            return None
        marks[name] = mark
    return Marks(marks=marks, comment=well_formed(value.get("comment", "")))
