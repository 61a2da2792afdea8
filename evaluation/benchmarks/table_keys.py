"""What the answers of a user's table mean: letters, numbers from 1, indices from 0, or the options' texts.

``auto`` looks at all rows together. It takes the one reading that fits every row; where two fit and differ in a row
(answers 1 and 2 to questions of three options may count from 0 or from 1), it asks to be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evaluation.benchmarks.reading import Place, shown
from evaluation.items import LETTERS

Labels = Literal["auto", "letter", "number1", "index0", "text"]
LABELS = ("auto", "letter", "number1", "index0", "text")

_MEANINGS = {
    "letter": "a letter, A for the first option",
    "number1": "a number that counts from 1",
    "index0": "an index that counts from 0",
    "text": "the text of exactly one option",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A row's options and its answer as it stands there.

    labels: the options' own labels, where the row has them
    padding: indices of ``choices`` that are no options (``evaluation.benchmarks.table_padding``)
    trimmed: how many more stood at the end
    """

    place: Place
    column: str
    choices: Sequence[str]
    answer: Any
    labels: Sequence[str] = ()
    padding: frozenset[int] = frozenset()
    trimmed: int = 0


def key_indices(questions: Sequence[Question], labels: Labels) -> list[int]:
    """The index of each question's right option. ValueError names the first row whose answer is none."""
    for question in questions:
        if question.answer is None or (isinstance(question.answer, str) and not question.answer.strip()):
            raise question.place.error("the row has no key", question.column)
        if len(set(question.labels)) < len(question.labels) or len(question.labels) not in (0, len(question.choices)):
            raise question.place.error(f"the labels {', '.join(question.labels)} must be one per option, all different")
    if labels == "auto" and questions and all(question.labels for question in questions):
        return [_by_label(question) for question in questions]
    if labels != "auto":
        return [_index(question, labels) for question in questions]
    readings = {how: [_read(question, how) for question in questions] for how in _MEANINGS}
    fitting = {how: found for how, found in readings.items() if None not in found}
    if not fitting:
        raise _no_reading(questions, readings)
    (first, chosen), *others = fitting.items()
    for how, found in others:
        for question, a, b in zip(questions, chosen, found, strict=True):
            if a != b:
                raise question.place.error(
                    f"answer {shown(question.answer)} could be {_MEANINGS[first]}, or {_MEANINGS[how]}; say which: "
                    f"labels: {first} or labels: {how}",
                    question.column,
                )
    return [index for index in chosen if index is not None]


def _read(question: Question, how: str) -> int | None:
    """The option that the answer names under one reading, None if it names none."""
    answer, n = question.answer, len(question.choices)
    said = str(answer).strip() if isinstance(answer, str | int) and not isinstance(answer, bool) else ""
    if how == "letter":
        letter = said.upper()
        return LETTERS.index(letter) if len(letter) == 1 and letter in LETTERS[:n] else None
    if how == "text":
        found = [i for i, choice in enumerate(question.choices) if said and choice.strip() == said]
        return found[0] if len(found) == 1 else None
    start = 1 if how == "number1" else 0
    names = [str(i + start) for i in range(n)]
    return names.index(said) if said in names else None


def _index(question: Question, how: str) -> int:
    found = _read(question, how)
    if found is None:
        raise question.place.error(
            f"answer {shown(question.answer)} is outside the {len(question.choices)} options; with labels: {how} it "
            f"must be {_MEANINGS[how]}",
            question.column,
        )
    return found


def _by_label(question: Question) -> int:
    said = str(question.answer).strip()
    if said not in question.labels:
        raise question.place.error(
            f"the key is {said!r}; it must be one of {', '.join(question.labels)}", question.column
        )
    return list(question.labels).index(said)


def _no_reading(questions: Sequence[Question], readings: dict[str, list[int | None]]) -> ValueError:
    """Names the first row that spoils the reading which fits most rows."""
    best = max(readings, key=lambda how: len(questions) - readings[how].count(None))
    question = questions[readings[best].index(None)]
    if len(questions) == readings[best].count(None):
        wanted = "; or ".join(_MEANINGS.values())
        return question.place.error(
            f"answer {shown(question.answer)} names no option; it must be {wanted}", question.column
        )
    return question.place.error(
        f"answer {shown(question.answer)} names no option; most rows have {_MEANINGS[best]} (labels: {best})",
        question.column,
    )
