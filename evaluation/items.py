"""An exam item, as every benchmark loader yields it and every protocol reads it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

Form = Literal["text", "number", "option"]
"""What an open question's answer is: words; a number; the label of an option that stands in the question, ``(B)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question of a benchmark.

    id: content hash (benchmark, question, choices, answer, context, followups): stable over runs, files and row order
    answer: the key's letter for a choice question (``A`` is the first choice), else the answer text
    choices: option texts; empty for an open question
    context: a passage the question refers to, "" if none
    reason: what explains the key (a sentence, or a worked solution), "" if none
    form: how an open question's answer is compared; without meaning for a choice question
    followups: the user's later turns of a conversation that begins with ``question``
    references: reference answers, one per turn; empty if there are none
    source_id: the publisher's own id, "" if the rows have none
    """

    id: str
    benchmark: str
    split: str
    subject: str
    question: str
    choices: tuple[str, ...]
    answer: str
    context: str = ""
    reason: str = ""
    form: Form = "text"
    followups: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    source_id: str = ""

    @property
    def answer_index(self) -> int:
        """Index of the right choice. ValueError for an open question."""
        if not self.choices:
            raise ValueError(f"item {self.id} has no choices")
        return LETTERS.index(self.answer)

    @property
    def answer_text(self) -> str:
        """The right answer's text, for choice and open questions alike."""
        return self.choices[self.answer_index] if self.choices else self.answer

    def to_json(self) -> dict[str, Any]:
        """All fields, but those of conversations and publishers only where they say something."""
        row = {**asdict(self), **{name: list(getattr(self, name)) for name in _LISTS}}
        return {name: value for name, value in row.items() if name not in _OPTIONAL or value != _OPTIONAL[name]}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Item:
        return cls(**{**row, **{name: tuple(row[name]) for name in _LISTS if name in row}})


_LISTS = ("choices", "followups", "references")
_OPTIONAL: dict[str, Any] = {"form": "text", "followups": [], "references": [], "source_id": ""}


def make_item(
    *,
    benchmark: str,
    split: str,
    subject: str,
    question: str,
    choices: Iterable[str],
    answer: str,
    context: str = "",
    reason: str = "",
    form: Form = "text",
    followups: Iterable[str] = (),
    references: Iterable[str] = (),
    source_id: str = "",
) -> Item:
    """An Item with its id computed: 16 hex digits of SHA-256 over the parts that make up the question."""
    options, later = tuple(choices), tuple(followups)
    parts = [benchmark, question, list(options), answer, context, *([list(later)] if later else [])]
    identity = json.dumps(parts, ensure_ascii=False)
    return Item(
        id=hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        benchmark=benchmark,
        split=split,
        subject=subject,
        question=question,
        choices=options,
        answer=answer,
        context=context,
        reason=reason,
        form=form,
        followups=later,
        references=tuple(references),
        source_id=source_id,
    )
