"""What the estimators learn from: questions of an analysed exam, with category, label and difficulty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.benchmarks.reading import json_rows
from evaluation.text_metrics import words


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A question. label: 0..3, difficulty: 0..max_score (both None where unknown, i.e. to be estimated)
    judged: a judge's own word on the difficulty, None if nobody was asked
    """

    item: str
    question: str
    category: str
    label: int | None = None
    difficulty: float | None = None
    judged: float | None = None

    @property
    def length(self) -> int:
        """In words, at least 1."""
        return max(1, len(words(self.question)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Categories:
    """Means by category, of the rows that an estimator has learned from; ``""`` holds the mean of all."""

    lengths: Mapping[str, float]
    difficulties: Mapping[str, float]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Categories:
        return cls(
            lengths=_means((row.category, float(row.length)) for row in rows),
            difficulties=_means((row.category, row.difficulty) for row in rows if row.difficulty is not None),
        )

    def mean_length(self, row: Row) -> float:
        """Of the row's category; of all rows for a category that was not seen."""
        return self.lengths.get(row.category, self.lengths[""])

    def ratio(self, row: Row) -> float:
        """Question length over the mean of its category."""
        return row.length / self.mean_length(row)

    def to_json(self) -> dict[str, Any]:
        return {"lengths": dict(self.lengths), "difficulties": dict(self.difficulties)}


def read_rows(items: Path, analysis: Path | None = None, judged: Path | None = None) -> list[Row]:
    """The questions of ``items`` (an exam's items.jsonl), with what ``analysis`` (rows.jsonl of ``proctor analyse``)
    says of them; items that it does not know are left out, and so are those without a label.

    judged: the records.jsonl of the build, whose critic predicted difficulties
    """
    known = {} if analysis is None else {row.text("item"): row for row in json_rows(analysis)}
    opinions = {} if judged is None else _critics(judged)
    found = []
    for row in json_rows(items):
        item, question = row.text("id"), row.text("question")
        if analysis is not None and item not in known:
            continue
        fields = known[item].fields if item in known else {}
        label, difficulty = fields.get("label"), fields.get("difficulty")
        if analysis is not None and (label is None or difficulty is None):
            continue
        found.append(
            Row(
                item=item,
                question=question,
                category=row.text("subject", ""),
                label=label,
                difficulty=difficulty,
                judged=opinions.get(question),
            )
        )
    if not found:
        raise ValueError(f"{items} has no item that {analysis} knows; are they of the same exam?" if analysis else
                         f"{items} has no items")  # fmt: skip
    return found


def _critics(path: Path) -> dict[str, float]:
    return {
        draft["question"]: float(draft["critic"]["difficulty"])
        for row in json_rows(path)
        for draft in row.fields.get("drafts", [])
        if draft.get("critic")
    }


def _means(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for category, value in pairs:
        for name in {category, ""}:
            values.setdefault(name, []).append(value)
    return {name: math.fsum(found) / len(found) for name, found in sorted(values.items())}
