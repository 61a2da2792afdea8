"""A baseline's answers from a local file, for comparing a candidate with it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.benchmarks.reading import Place, Row, json_rows
from evaluation.formats import chat_question
from evaluation.items import Item

UNANSWERED = ("context", "unasked")
"""Why a turn of our own records has no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A baseline's answers: one tuple per item, of one answer per turn.

    key: what an answer is found by: ``item_id``, ``question_id`` (the item's ``source_id``) or ``instruction`` (the
        item's question as the candidate is asked it)
    """

    name: str
    sha256: str
    key: str
    answers: Mapping[str, tuple[str, ...]]

    def answers_to(self, item: Item) -> tuple[str, ...]:
        """ValueError if there is none, or not one per turn."""
        keys = {"item_id": item.id, "question_id": item.source_id, "instruction": chat_question(item).strip()}
        answers = self.answers.get(keys[self.key])
        wanted = 1 + len(item.followups)
        if answers is None:
            raise ValueError(
                f"baseline {self.name} has no answer to item {item.id}: none with {self.key} {keys[self.key][:80]!r}"
            )
        if len(answers) != wanted:
            raise ValueError(
                f"baseline {self.name} has {len(answers)} of {wanted} answers to item {item.id} ({self.key} "
                f"{keys[self.key][:80]!r}); it takes one per turn"
            )
        return answers


def read_baseline(path: Path) -> Baseline:
    """The answers in a file, JSON Lines or one JSON list, in one of three layouts:

    - FastChat's ``model_answer``: ``{"question_id": 81, "choices": [{"turns": [...]}]}``; the first choice counts;
    - AlpacaEval's outputs: ``{"instruction": "...", "output": "..."}``;
    - records of ``mt_bench`` or ``pairwise``: ``{"item_id": "...", "turns": [{"reply": "..."}]}``; a turn that was not
      answered for want of context is no answer.

    ValueError names file, line and mend of the first row amiss; the same key with two different answers is one.
    """
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        rows = list(json_rows(path))
    except OSError as error:
        raise ValueError(f"pairwise.baseline: {path} can't be read: {error.strerror}") from error
    if not rows:
        raise ValueError(f"pairwise.baseline: {path} holds no answers")
    key = next((key for key in ("item_id", "question_id", "instruction") if key in rows[0].fields), None)
    if key is None:
        raise rows[0].place.error(
            "no answer of a known layout: a row has question_id and choices (FastChat), instruction and output "
            "(AlpacaEval), or item_id and turns (Proctor's records); this one has "
            + (", ".join(rows[0].fields) or "nothing")
        )
    answers: dict[str, tuple[str, ...]] = {}
    places: dict[str, Place] = {}
    for row in rows:
        name, found = _answers(row, key)
        if answers.setdefault(name, found) != found:
            raise row.place.error(f"another answer to {key} {name[:80]!r} than at {places[name]}; leave one of them")
        places.setdefault(name, row.place)
    return Baseline(name=path.name, sha256=digest, key=key, answers=answers)


def _answers(row: Row, key: str) -> tuple[str, tuple[str, ...]]:
    """A row's key and its answers."""
    if key == "instruction":
        return row.text("instruction").strip(), (row.text("output"),)
    turns: Any = row.fields.get("turns")
    name = row.fields.get(key)
    if key == "question_id":
        name = str(name) if isinstance(name, int) else name
        match row.fields.get("choices"):
            case [{"turns": turns}, *_]:
                pass
            case _:
                raise row.place.error('field "choices" must be a list whose first element has "turns"')
    elif isinstance(turns, list):
        asked = [turn for turn in turns if not (isinstance(turn, dict) and turn.get("finish_reason") in UNANSWERED)]
        turns = [turn.get("reply") if isinstance(turn, dict) else None for turn in asked]
    if not isinstance(name, str):
        raise row.place.error(f"field {key!r} is {name!r}; it must be the id of a question")
    if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
        raise row.place.error("the answers must be a list of texts, one per turn")
    return name, tuple(turns)
