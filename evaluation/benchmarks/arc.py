"""ARC, the AI2 Reasoning Challenge (Clark et al. 2018, arXiv 1803.05457), format ``arc``, in three spellings:

- AI2's own: ``{"id", "question": {"stem", "choices": [{"text", "label"}]}, "answerKey"}``
- Hugging Face: ``{"id", "question", "choices": {"text": [...], "label": [...]}, "answerKey"}``, as JSON or as a table
- flat: ``{"question", "choices": [...], "answerKey"}`` with ``answer``, the index, beside it or instead

Labels are letters or numbers (1 to 5); items have 3 to 5 choices. ARC has no subjects: all items get ``science``. What
its authors call ``Dev`` is Hugging Face's ``validation``. ARC-Easy and ARC-Challenge are two exams: a path that holds
both is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.benchmarks.reading import Located, Row, choice_item, key_index, shown
from evaluation.benchmarks.tables import RowsFile, of_split, tables_of
from evaluation.items import LETTERS

SUBJECT = "science"
EXAMS = ("ARC-Challenge", "ARC-Easy")
TWINS = frozenset({"dev", "val"})


class _Options(NamedTuple):
    question: str
    texts: list[Any]
    labels: list[str]


def rows(path: Path, split: str | None) -> Iterator[Located]:
    """Every item of the split: ``test`` if the path has several and none is asked for."""
    tables = of_split(tables_of(path), split, default="test", where=path, twins=TWINS)
    if len({_exam(table, path) for table in tables} & set(EXAMS)) > 1:
        raise ValueError(f"{path} holds both {' and '.join(EXAMS)}; name the folder or file of one of them")
    for table in tables:
        for row in table.rows():
            yield _item(row, table.split or split or "")


def _exam(table: RowsFile, root: Path) -> str:
    """Which of the two exams the path below ``root`` names, "" if neither."""
    below = str(table.file.relative_to(root)).lower()
    return next((exam for exam in EXAMS if exam.lower() in below), "")


def _item(row: Row, split: str) -> Located:
    question, texts, labels = _options(row)
    return choice_item(
        row.place,
        benchmark="arc",
        split=split,
        subject=SUBJECT,
        question=question,
        choices=texts,
        answer=_key(row, labels),
        source_id=row.own_id("id"),
    )


def _options(row: Row) -> _Options:
    nested = row.fields.get("question")
    choices = nested.get("choices") if isinstance(nested, dict) else row.fields.get("choices")
    if isinstance(nested, dict):
        stem = nested.get("stem")
        if not isinstance(stem, str):
            raise row.place.error(f"field 'question.stem' is {shown(stem)}; it must be text")
    else:
        stem = row.text("question")
    if isinstance(choices, dict):
        texts, labels = choices.get("text"), choices.get("label")
        if not (isinstance(texts, list) and isinstance(labels, list) and len(texts) == len(labels)):
            raise row.place.error("field 'choices' must hold two lists of one length, 'text' and 'label'")
    elif isinstance(choices, list) and choices and all(isinstance(choice, dict) for choice in choices):
        for choice in choices:
            if "text" not in choice or "label" not in choice:
                raise row.place.error(f"choice {shown(choice)} must have the fields 'text' and 'label'")
        texts, labels = [choice["text"] for choice in choices], [choice["label"] for choice in choices]
    elif isinstance(choices, list):
        texts, labels = choices, list(LETTERS[: len(choices)])
    else:
        raise row.place.error(
            f"field 'choices' is {shown(choices)}; it must be a list, or an object with 'text' and 'label'"
        )
    names = [str(label) for label in labels]
    if len(set(names)) < len(names):
        raise row.place.error(f"the labels {', '.join(names)} repeat one; each choice needs its own")
    return _Options(stem, texts, names)


def _key(row: Row, labels: list[str]) -> int:
    """From ``answerKey``, from the index ``answer``, or from both, which must agree."""
    key, index = row.fields.get("answerKey"), row.fields.get("answer")
    if key is None and index is None:
        raise row.place.error(f"the row has no key: 'answerKey' is missing; it must be one of {', '.join(labels)}")
    if index is not None and (isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(labels)):
        raise row.place.error(f"'answer' is {index!r}; it must be an index from 0 to {len(labels) - 1}")
    if key is None:
        assert isinstance(index, int)
        return index
    found = _labelled(row, str(key), labels)
    if index is not None and index != found:
        raise row.place.error(f"'answerKey' {key!r} is choice {found}, but 'answer' is {index}; remove the wrong one")
    return found


def _labelled(row: Row, key: str, labels: list[str]) -> int:
    # The flat form loses the labels: a key 1 to 5 there counts from 1.
    numbers = [str(i + 1) for i in range(len(labels))]
    if key in numbers and key not in labels and labels == list(LETTERS[: len(labels)]):
        return numbers.index(key)
    return key_index(row.place, key, labels)
