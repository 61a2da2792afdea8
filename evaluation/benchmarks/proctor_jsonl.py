"""Our own rows (format ``jsonl``), one JSON object per line or a JSON list of them.

``{"question", "choices", "answer"}`` and optionally ``subject``, ``split``, ``context``, ``reason``, ``benchmark``. The
answer is a letter (``A`` is the first choice), an index from 0, or the text of exactly one choice; a text that is both
a letter and a choice must mean the same one. A row whose ``choices`` is an empty list is an open question, its answer
the text (``form``: text, number or option). Rows written by ``Item.to_json`` are read back as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast, get_args

from evaluation.benchmarks.reading import Located, Row, choice_item, files_of, json_rows, open_item, shown, split_of
from evaluation.items import LETTERS, Form

_OUR_ID = re.compile("[0-9a-f]{16}")


def rows(path: Path, split: str | None) -> Iterator[Located]:
    """Every item of a file, or of a folder's ``.jsonl`` and ``.json`` files."""
    for file in files_of(path, (".jsonl", ".json")):
        default = split_of(file.name) or split or ""
        for row in json_rows(file):
            yield item_of(row, benchmark=file.stem if path.is_file() else path.name, split=default)


def item_of(row: Row, *, benchmark: str, split: str) -> Located:
    """The item of one row; ``benchmark`` and ``split`` stand in for fields that it lacks."""
    choices = row.fields.get("choices")
    if not isinstance(choices, list):
        raise row.place.error(f"field 'choices' is {shown(choices)}; it must be a list of texts")
    if not choices and isinstance(row.fields.get("answer"), str):
        located = _open(row, benchmark, split)
    else:
        located = _choice(row, choices, benchmark, split)
    said = row.fields.get("id")
    if isinstance(said, str) and "benchmark" in row.fields and _OUR_ID.fullmatch(said) and said != located.item.id:
        raise row.place.error(
            f"id {said!r} is not the content's hash {located.item.id!r}: the row was changed; remove its id"
        )
    return located


def _choice(row: Row, choices: list[object], benchmark: str, split: str) -> Located:
    return choice_item(
        row.place,
        benchmark=row.text("benchmark", benchmark),
        split=row.text("split", split),
        subject=row.text("subject", ""),
        question=row.text("question"),
        choices=choices,
        answer=_answer(row, choices),
        context=row.text("context", ""),
        reason=row.text("reason", ""),
        source_id=row.text("source_id", ""),
    )


def _open(row: Row, benchmark: str, split: str) -> Located:
    form = row.text("form", "text")
    if form not in get_args(Form):
        raise row.place.error(f"field 'form' is {shown(form)}; it must be one of {', '.join(get_args(Form))}")
    return open_item(
        row.place,
        benchmark=row.text("benchmark", benchmark),
        split=row.text("split", split),
        subject=row.text("subject", ""),
        question=row.text("question"),
        # Only what a judge grades has no key: a conversation, or a question with a reference answer.
        answer=row.text("answer") or (None if "followups" in row.fields or row.fields.get("references") else ""),
        form=cast("Form", form),
        context=row.text("context", ""),
        reason=row.text("reason", ""),
        followups=row.texts("followups") if "followups" in row.fields else (),
        references=row.texts("references") if "references" in row.fields else (),
        source_id=row.text("source_id", ""),
    )


def _answer(row: Row, choices: list[object]) -> int:
    answer = row.fields.get("answer")
    letters = LETTERS[: len(choices)]
    wanted = f"a letter A to {letters[-1:] or 'A'}, an index from 0, or one choice's text"
    if answer is None:
        raise row.place.error(f"the row has no key: field 'answer' is missing; it must be {wanted}")
    if isinstance(answer, int) and not isinstance(answer, bool):
        found = [answer] if 0 <= answer < len(choices) else []
    else:
        found = [i for i, choice in enumerate(choices) if choice == answer]
        if isinstance(answer, str) and len(answer) == 1 and answer in letters and letters.index(answer) not in found:
            found.append(letters.index(answer))
    if not found:
        raise row.place.error(f"answer {shown(answer)} is outside the {len(choices)} options; it must be {wanted}")
    if len(found) > 1:
        both = " and ".join(letters[i] for i in found)
        raise row.place.error(f"answer {shown(answer)} could mean {both}; write an index from 0")
    return found[0]
