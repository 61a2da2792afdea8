"""Options that only fill a row up to the width of its table: null, blank, or ``N/A``, as MMLU-Pro pads to ten.

They are no options: a model that never takes them would be better than chance by their number alone.

- What stands at the end is padding. ``N/A`` as the last option is one all the same where the key names it.
- null is padding wherever it stands; ``N/A`` before other options only where the row has it more than once, for nobody
  offers the same answer twice.

The key is read from the row as it stands, then follows its option.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation.benchmarks.reading import Place
from evaluation.benchmarks.table_keys import Question
from evaluation.items import LETTERS

_FILLERS = {"n/a", "#n/a", "<na>", "[n/a]", "(n/a)"}


def question(
    place: Place, column: str, cells: Sequence[str | None], answer: Any, labels: Sequence[str] = ()
) -> Question:
    """A row's question without the padding at its end; ``padding`` says what else is none of its options.

    cells: the options as they stand, None for null
    """
    end = len(cells)
    labelled = len(labels) == len(cells)
    while end and _fills(cells[end - 1]) and not _named(answer, end - 1, cells[end - 1], labels if labelled else ()):
        end -= 1
    fillers = [i for i, cell in enumerate(cells) if cell is not None and cell.strip().casefold() in _FILLERS]
    twice = set(fillers) if len(fillers) > 1 else set()
    padding = {
        i
        for i, cell in enumerate(cells[:end])
        if cell is None or (i in twice and not _named(answer, i, cell, labels if labelled else ()))
    }
    return Question(
        place=place,
        column=column,
        choices=["" if cell is None else cell for cell in cells[:end]],
        answer=answer,
        labels=list(labels[:end]) if labelled else list(labels),
        padding=frozenset(padding),
        trimmed=len(cells) - end,
    )


def without_padding(asked: Question, key: int) -> tuple[list[int], int]:
    """The indices of the options that remain, and the key among them. ValueError if the key is padding."""
    if key in asked.padding:
        raise asked.place.error(
            f"the key names option {key + 1}, which only fills the row up (null or N/A)", asked.column
        )
    kept = [i for i in range(len(asked.choices)) if i not in asked.padding]
    return kept, kept.index(key)


def _fills(cell: str | None) -> bool:
    return cell is None or not cell.strip() or cell.strip().casefold() in _FILLERS


def _named(answer: Any, index: int, cell: str | None, labels: Sequence[str]) -> bool:
    """Whether an answer names a text by its letter, its label or its words; null and blanks can't be an answer."""
    if cell is None or not cell.strip() or not isinstance(answer, str):
        return False
    said = answer.strip()
    return said == cell.strip() or (said == labels[index] if labels else said.upper() == LETTERS[index : index + 1])
