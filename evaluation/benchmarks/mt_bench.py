"""MT-Bench (Zheng et al. 2023, arXiv 2306.05685), format ``mt_bench``: prompts of two turns that a judge grades.

FastChat's ``question.jsonl`` (``question_id``, ``category``, ``turns``, sometimes ``reference``), alone or in its
folder; the reference answers come from ``reference_answer/*.jsonl`` or ``reference_answer*.jsonl`` beside it, else
from the question's own ``reference``. Hugging Face's table of the prompts (``prompt_id``, ``category``, ``prompt``,
``reference``) is read too.

There is no key: ``answer`` is "". The category is the subject; there are no splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from evaluation.benchmarks.reading import Located, Place, Row, json_rows, open_item, shown
from evaluation.benchmarks.tables import ARROW, tables_of

QUESTIONS = "question.jsonl"


class _Reference(NamedTuple):
    place: Place
    turns: tuple[str, ...]


def rows(path: Path, split: str | None) -> Iterator[Located]:
    """Every prompt, in the file's order. ValueError for a question id that occurs twice."""
    if split:
        raise ValueError(f"MT-Bench has no splits, so no split {split!r}; leave it out")
    file = _questions(path)
    if file is None:
        found = [row for table in tables_of(path, (ARROW,)) for row in table.rows()]
        references: dict[str, _Reference] = {}
    else:
        found, references = list(json_rows(file)), _references(file.parent)
    seen: dict[str, Place] = {}
    for row in found:
        identity = row.own_id("question_id") or row.own_id("prompt_id")
        if not identity:
            raise row.place.error(f"field 'question_id' is missing; the row has {', '.join(row.fields) or 'no fields'}")
        earlier = seen.setdefault(identity, row.place)
        if earlier is not row.place:
            raise row.place.error(f"question_id {identity} stands at {earlier} too; each question needs its own")
        yield _item(row, identity, references)


def _item(row: Row, identity: str, references: Mapping[str, _Reference]) -> Located:
    turns = row.texts("turns" if "turns" in row.fields else "prompt" if "prompt" in row.fields else "turns")
    if not turns:
        raise row.place.error("the question is empty: there are no turns")
    own = tuple(row.texts("reference")) if row.fields.get("reference") else ()
    place, answers = references.get(identity, _Reference(row.place, own))
    if answers and len(answers) != len(turns):
        raise place.error(
            f"there are {len(answers)} reference answers to question {identity}, which has {len(turns)} turns"
        )
    return open_item(
        row.place,
        benchmark="mt_bench",
        split="",
        subject=row.text("category"),
        question=turns[0],
        answer=None,
        followups=turns[1:],
        references=answers,
        source_id=identity,
        columns=("turns", None),
    )


def _questions(path: Path) -> Path | None:
    """The file of questions; None for Hugging Face's tables."""
    if path.is_file():
        return None if path.suffix.lower() in ARROW else path
    if not path.is_dir():
        raise ValueError(f"there is no file or folder {path}")
    files = [folder / QUESTIONS for folder in (path, path / "mt_bench", path / "data" / "mt_bench")]
    return next((file for file in files if file.is_file()), None)


def _references(folder: Path) -> dict[str, _Reference]:
    """Reference answers by question id. ValueError if two files answer the same question."""
    found: dict[str, _Reference] = {}
    for file in sorted([*folder.glob("reference_answer/*.jsonl"), *folder.glob("reference_answer*.jsonl")]):
        for row in json_rows(file):
            identity, choices = row.own_id("question_id"), row.fields.get("choices")
            first = choices[0] if isinstance(choices, list) and choices else None
            turns = first.get("turns") if isinstance(first, dict) else None
            if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
                raise row.place.error(f"'choices' is {shown(choices)}; it must be a list of objects with 'turns'")
            if identity in found:
                raise row.place.error(f"question {identity} has a reference answer at {found[identity].place} already")
            found[identity] = _Reference(row.place, tuple(turns))
    return found
