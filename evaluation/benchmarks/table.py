"""A user's own table, format ``table``: JSON, CSV or TSV with a header, Parquet, or a Hugging Face data set folder.

``columns`` tells which column holds what:

- ``question``, ``answer``, ``subject``, ``context``, ``id``, ``reason``, ``split``: a column's name; left out, the
  column of that very name where there is one. Question and answer must be there.
- ``choices``: a column with a list (in CSV: a JSON list), or a list of columns, one per option, where an item with
  fewer options leaves the last ones empty; null for open questions. Left out: the column ``choices``, or the columns
  ``A``, ``B``, ... What only fills a row up (null, ``N/A``) is no option: ``evaluation.benchmarks.table_padding``.
- ``labels``: what the answers are (``evaluation.benchmarks.table_keys``); ``auto`` by default.
- ``form``: of open questions, ``text`` (default) or ``number``.

The benchmark is called after the file, or after the folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from evaluation.benchmarks.reading import Located, Place, Row, choice_item, open_item, shown, split_of
from evaluation.benchmarks.table_keys import LABELS, Labels, Question, key_indices
from evaluation.benchmarks.table_padding import question as padded_question
from evaluation.benchmarks.table_padding import without_padding
from evaluation.benchmarks.tables import ARROW, CSV, JSON, RowsFile, of_split, tables_of
from evaluation.extraction.spelling import plain_number
from evaluation.items import LETTERS
from serving.strict_json import DECODER

NAMED = ("question", "answer", "subject", "context", "id", "reason", "split")
KEYS = (*NAMED, "choices", "labels", "form")


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A checked column map. names: those of ``NAMED`` that there are; choices: None for open questions."""

    names: Mapping[str, str]
    choices: str | tuple[str, ...] | None
    labels: Labels
    form: Literal["text", "number"]


def rows(path: Path, split: str | None, columns: Mapping[str, Any] | None = None) -> Iterator[Located]:
    """Every item. A row's own split goes before what the file's name tells.

    ValueError for a column that isn't there, and for answers that could mean two things, naming the option to set.
    """
    given = dict(columns or {})
    _check(given)
    kinds = [(*ARROW, *JSON, *CSV)]
    tables = (
        of_split(tables_of(path, kinds), split, default="", where=path)
        if "split" not in given
        else tables_of(path, kinds)
    )
    suffixes = {table.file.suffix.lower() for table in tables}
    if len(suffixes) > 1:
        raise ValueError(f"{path} holds files of several kinds ({', '.join(sorted(suffixes))}); name one of the files")
    found = [(row, table) for table in tables for row in table.rows()]
    if not found:
        return
    chosen = _columns(given, found[0][0].place, list(dict.fromkeys(name for row, _ in found for name in row.fields)))
    benchmark = path.stem if path.is_file() else path.absolute().name
    if chosen.choices is None:
        for row, table in found:
            yield _open(row, table, chosen, benchmark, split)
        return
    questions = [_question(row, chosen) for row, _ in found]
    indices = key_indices(questions, chosen.labels)
    columns_of_options = _option_columns(chosen, max(len(question.choices) for question in questions))
    for (row, table), question, index in zip(found, questions, indices, strict=True):
        kept, key = without_padding(question, index)
        located = choice_item(
            row.place,
            choices=[question.choices[i] for i in kept],
            answer=key,
            columns=(chosen.names["question"], *[columns_of_options[i] for i in kept]),
            benchmark=benchmark,
            **_rest(row, table, chosen, split),
        )
        padding = question.trimmed + len(question.padding)
        yield replace(located, padding=padding) if padding else located


def _check(given: Mapping[str, Any]) -> None:
    unknown = [key for key in given if key not in KEYS]
    if unknown:
        raise ValueError(f"columns has no key {unknown[0]!r}; it has: {', '.join(KEYS)}")
    for key in NAMED:
        if key in given and not (isinstance(given[key], str) and given[key]):
            raise ValueError(f"columns.{key} is {shown(given[key])}; it must be a column's name")
    choices = given.get("choices")
    if isinstance(choices, list | tuple):
        if not 2 <= len(choices) <= len(LETTERS) or not all(isinstance(name, str) for name in choices):
            raise ValueError(f"columns.choices is {shown(choices)}; it must name 2 to {len(LETTERS)} columns")
        if len(set(choices)) < len(choices):
            raise ValueError(f"columns.choices names a column twice: {', '.join(choices)}")
    elif not isinstance(choices, str | None):
        raise ValueError(f"columns.choices is {shown(choices)}; it must be a column, a list of columns, or null")
    for key, allowed in (("labels", LABELS), ("form", ("text", "number"))):
        if key in given and given[key] not in allowed:
            raise ValueError(f"columns.{key} is {shown(given[key])}; it must be one of {', '.join(allowed)}")


def _columns(given: Mapping[str, Any], first: Place, there: Sequence[str]) -> Columns:
    """The map for a table with these columns, whose first row stands at ``first``."""
    choices = given.get("choices", "choices" if "choices" in there else None)
    if "choices" not in given and choices is None:
        count = next((i for i, letter in enumerate(LETTERS) if letter not in there), len(LETTERS))
        if count < 2:
            raise first.error(
                f"there is no column 'choices' and none A, B, ...; the columns are {', '.join(there)}; name it in "
                "columns.choices, or set that to null for open questions"
            )
        choices = tuple(LETTERS[:count])
    names = {key: given.get(key, key) for key in NAMED if key in given or key in there or key in ("question", "answer")}
    listed = () if choices is None else (choices,) if isinstance(choices, str) else tuple(choices)
    for key, name in [*names.items(), *(("choices", name) for name in listed)]:
        if name not in there:
            raise first.error(f"there is no column {name!r} (columns.{key}); the columns are {', '.join(there)}", name)
    return Columns(
        names=names,
        choices=choices if isinstance(choices, str | None) else listed,
        labels=given.get("labels", "auto"),
        form=given.get("form", "text"),
    )


def _question(row: Row, columns: Columns) -> Question:
    assert columns.choices is not None
    labels: list[str] = []
    cells: list[str | None]
    if isinstance(columns.choices, str):
        value = row.fields.get(columns.choices)
        if isinstance(value, str):
            value = _json_list(row, value, columns.choices)
        if isinstance(value, dict) and isinstance(value.get("text"), list) and isinstance(value.get("label"), list):
            labels, value = [str(label) for label in value["label"]], value["text"]
        if not isinstance(value, list):
            raise row.place.error(f"the choices are {shown(value)}; they must be a list of texts", columns.choices)
        cells = [None if option is None else _text(row, option, columns.choices) for option in value]
    else:
        cells = [_text(row, row.fields.get(name), name) for name in columns.choices]
        while cells and not (cells[-1] or "").strip():  # an item with fewer options, as agreed: nothing to count
            cells.pop()
    name = columns.names["answer"]
    return padded_question(row.place, name, cells, row.fields.get(name), labels)


def _json_list(row: Row, text: str, column: str) -> Any:
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        message = f'the choices are {shown(text)}; they must be a list, in CSV a JSON list like ["a", "b"]'
        raise row.place.error(message, column) from error


def _text(row: Row, value: object, column: str) -> str:
    """A cell as text. A whole number is written out; one with a fraction has no single spelling."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise row.place.error(f"the value is {shown(value)}; it must be text or a whole number", column)


def _open(row: Row, table: RowsFile, columns: Columns, benchmark: str, split: str | None) -> Located:
    name = columns.names["answer"]
    answer = _text(row, row.fields.get(name), name)
    if columns.form == "number":
        number = plain_number(answer)
        if number is None:
            raise row.place.error(f"the answer is {shown(answer)}; it must be a number (columns.form)", name)
        answer = number
    return open_item(
        row.place,
        answer=answer,
        form=columns.form,
        columns=(columns.names["question"], name),
        benchmark=benchmark,
        **_rest(row, table, columns, split),
    )


def _rest(row: Row, table: RowsFile, columns: Columns, split: str | None) -> dict[str, str]:
    """What choice and open questions share."""

    def cell(key: str) -> str:
        name = columns.names.get(key)
        return "" if name is None else _text(row, row.fields.get(name), name)

    said = cell("split")
    return {
        "question": cell("question"),
        "subject": cell("subject"),
        "context": cell("context"),
        "reason": cell("reason"),
        "source_id": cell("id"),
        "split": split_of(said) or said or table.split or split or "",
    }


def _option_columns(columns: Columns, n: int) -> Sequence[str]:
    return [columns.choices] * n if isinstance(columns.choices, str) else cast("tuple[str, ...]", columns.choices)[:n]
