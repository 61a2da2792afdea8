"""Which of two responses is the better one: ``Response 1`` or ``Response 2``, no tie (LMExamQA, section 3.3)."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from evaluation.protocols.verdicts import COMMENT_CHARACTERS, DECODER

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
    return CHOICES.index(choice) + 1 if choice in CHOICES else None


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
