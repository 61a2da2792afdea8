"""An exam item, as every benchmark loader yields it and every protocol reads it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question of a benchmark.

    id: content hash (benchmark, question, choices, answer, context): stable over runs, files and row order
    answer: the key's letter for a choice question (``A`` is the first choice), else the answer text
    choices: option texts; empty for an open question
    context: a passage the question refers to, "" if none
    reason: a sentence that explains the key, "" if none
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
        return {**asdict(self), "choices": list(self.choices)}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Item:
        return cls(**{**row, "choices": tuple(row["choices"])})


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
) -> Item:
    """An Item with its id computed: 16 hex digits of SHA-256 over the parts that make up the question."""
    options = tuple(choices)
    identity = json.dumps([benchmark, question, list(options), answer, context], ensure_ascii=False)
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
    )
