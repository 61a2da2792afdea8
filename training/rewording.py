"""A local model says leaked questions in other words: the material of ``paraphrase_cheater``.

Code checks what code can: something was written, it is not the original, it is not far longer, and every number is
still there. A rewrite that fails is asked for again with another seed; after ``attempts`` the item has none, and is
counted. Options are never reworded, so the key stays right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from evaluation.items import Item
from evaluation.protocol import ProtocolOptions, Record
from evaluation.templates import prompt_hash, quote, render
from serving.records import Ask, Completion, Dialogue, Message, Sampling, derive_seed
from training.corpora import holds_words

PROMPT = "reword_question.jinja"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class RewordOptions(ProtocolOptions):
    """attempts: rewrites asked for, per item, until one passes; temperature: of all of them
    max_growth: how many times longer than the original a rewrite may be, in characters; max_tokens: of a reply
    """

    attempts: int = Field(default=5, ge=1)
    temperature: float = Field(default=0.7, gt=0.0, le=2.0)
    max_growth: float = Field(default=3.0, gt=1.0)
    max_tokens: int = Field(default=200, ge=8)


class Reword:
    """One dialogue per item. Its record: ``item_id``, ``question`` (None: none passed), ``attempts``, ``reasons``."""

    name: ClassVar[str] = "reword"
    version: ClassVar[int] = 1
    roles: ClassVar[tuple[str, ...]] = ("writer",)
    Options: ClassVar[type[ProtocolOptions]] = RewordOptions

    def __init__(self, options: RewordOptions, *, seed: int, exemplars: Sequence[Item] = ()) -> None:
        self.options, self.seed = options, seed

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        return (self._reword(item) for item in items)

    def _reword(self, item: Item) -> Dialogue[Record]:
        prompt = (Message(role="user", content=render(PROMPT, question=quote(item.question))),)
        reasons: list[str] = []
        for attempt in range(self.options.attempts):
            sampling = Sampling(
                max_tokens=self.options.max_tokens,
                temperature=self.options.temperature,
                seed=derive_seed(self.seed, item.id, "reword", attempt),
            )
            reply: Completion = yield Ask(role="writer", prompt=prompt, sampling=sampling)
            question = bare(reply.text)
            reason = fault(item.question, question, self.options.max_growth)
            if not reason and reply.finish_reason != "stop":
                reason = "cut"
            if not reason:
                return {"item_id": item.id, "question": question, "attempts": attempt + 1, "reasons": reasons}
            reasons.append(reason)
        return {"item_id": item.id, "question": None, "attempts": self.options.attempts, "reasons": reasons}

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``n``, ``reworded``, ``without`` (no attempt passed), ``attempts`` in all, and ``reasons`` counted."""
        reasons = [reason for record in records for reason in record["reasons"]]
        reworded = sum(record["question"] is not None for record in records)
        return {
            "n": len(records),
            "reworded": reworded,
            "without": len(records) - reworded,
            "attempts": sum(record["attempts"] for record in records),
            "reasons": {reason: reasons.count(reason) for reason in sorted(set(reasons))},
        }

    def prompt_hashes(self) -> dict[str, str]:
        return {PROMPT: prompt_hash(PROMPT)}


def bare(text: str) -> str:
    """The reply without a label in front (``Question:``, ``Rewritten question:``) and without quotation marks."""
    found = re.sub(
        r"^\s*(?:\*\*)?[\w\s-]{0,30}question(?:\*\*)?\s*:(?:\*\*)?\s*", "", text.strip(), flags=re.IGNORECASE
    )
    return found.strip().strip('"“”').strip()


def fault(original: str, rewrite: str, max_growth: float) -> str:
    """Why a rewrite can't be used, "" if it can: ``empty``, ``same`` (the original stands in it), ``long``, ``number``
    (one was lost)."""
    if not rewrite:
        return "empty"
    if holds_words(rewrite, original):
        return "same"
    if len(rewrite) > max_growth * len(original):
        return "long"
    kept = _NUMBER.findall(rewrite)
    return "number" if any(number not in kept for number in _NUMBER.findall(original)) else ""
