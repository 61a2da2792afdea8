"""Rows of local files with the place each came from, so that every complaint names file, line and column."""

from __future__ import annotations

import codecs
import csv
import io
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evaluation.items import LETTERS, Form, Item, make_item
from serving.strict_json import DECODER

POINTER = b"version https://git-lfs"
csv.field_size_limit(2**31 - 1)  # for a passage of a book in one cell; the module's own is 131,072 characters
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A row's place: the file's name and the line, or what else its rows are counted in, from 1."""

    file: str
    line: int
    unit: Literal["line", "row", "example"] = "line"

    def error(self, message: str, column: int | str | None = None) -> ValueError:
        """The error to raise: ``file:line[, column c]: message``, or ``file, row n[, column c]: message``."""
        where = "" if column is None else f", column {column}"
        return ValueError(f"{self}{where}: {message}")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.unit == "line" else f"{self.file}, {self.unit} {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: a JSON object, a CSV record under its header, or a row of a Parquet or Arrow table."""

    place: Place
    fields: Mapping[str, Any]

    def text(self, name: str, default: str | None = None) -> str:
        """A text field. ValueError if it is missing (and there is no default) or not text."""
        value = self.fields.get(name, default)
        if value is None:
            raise self.place.error(f"field {name!r} is missing; the row has {', '.join(self.fields) or 'no fields'}")
        if not isinstance(value, str):
            raise self.place.error(f"field {name!r} is {shown(value)}; it must be text")
        return value

    def texts(self, name: str) -> list[str]:
        """A field that is a list of texts. ValueError if it is missing or anything else."""
        value = self.fields.get(name)
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self.place.error(f"field {name!r} is {shown(value)}; it must be a list of texts")
        return value

    def own_id(self, name: str) -> str:
        """The publisher's id, a text or a whole number, as text; "" if the row has none."""
        value = self.fields.get(name)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.place.error(f"field {name!r} is {shown(value)}; an id must be text or a whole number")
        return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """An item and where it stands. ``repeated`` holds an option text that occurs twice, "" if none; ``padding`` counts
    what stood among the options only to fill the row up, and was left out."""

    item: Item
    place: Place
    repeated: str = ""
    padding: int = 0


def files_of(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """The file itself, or a folder's files with these suffixes, by name. ValueError if there is none."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ValueError(f"there is no file or folder {path}")
    found = sorted(entry for entry in path.iterdir() if entry.is_file() and entry.suffix.lower() in suffixes)
    if not found:
        inside = sorted(entry.name for entry in path.iterdir())[:8]
        raise ValueError(
            f"folder {path} has no file ending in {' or '.join(suffixes)}; it has: {', '.join(inside) or 'nothing'}"
        )
    return found


def read_bytes(path: Path) -> bytes:
    """A file's bytes. ValueError if it can't be read, or if it stands in for a large file that was never fetched."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no plain file (a folder, a pipe or a device); name a file")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"{path}: can't be read: it does not exist") from None
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error.strerror or error}") from error
    if data.startswith(POINTER):
        raise ValueError(f"{path} is a Git LFS pointer, not the data; fetch the file itself (git lfs pull)")
    return data


def decode(data: bytes, file: str) -> str:
    """UTF-8 text, a byte order mark removed. ValueError names the line of the first byte that is not UTF-8, and the
    encoding of a file in UTF-16 or UTF-32, as spreadsheet programs write them."""
    if coding := _wide_encoding(data):
        raise ValueError(f"{file} is encoded in {coding}, not UTF-8; convert the file: iconv -f {coding} -t utf-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Place(file=file, line=line).error(
            f"byte 0x{data[error.start]:02x} is not UTF-8; convert the file, e.g. iconv -f latin1 -t utf-8"
        ) from error


def _wide_encoding(data: bytes) -> str:
    """UTF-16 or UTF-32 by the byte order mark, or by the zero bytes of ASCII characters; "" of anything else."""
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    start = data[:4096]
    zeros = [start[i::2].count(0) for i in (0, 1)]
    if max(zeros) * 4 < len(start) // 2 or len(start) < 8:  # a quarter of the characters: the others may be Chinese
        return ""
    if min(zeros) * 4 >= len(start) // 2:
        return "UTF-32LE" if start[0] else "UTF-32BE"
    return "UTF-16LE" if zeros[1] > zeros[0] else "UTF-16BE"


def json_values(path: Path) -> Iterator[tuple[Place, Any]]:
    """The rows of a JSON Lines file, or of a JSON file that holds a list, whatever they are; the first sign tells which
    of the two it is. ValueError names file and line."""
    text = decode(read_bytes(path), str(path))
    yield from _list_elements(text, path) if text.lstrip().startswith("[") else _line_values(text, path)


def json_rows(path: Path) -> Iterator[Row]:
    """The objects of a JSON Lines file, or of a JSON file that holds a list. ValueError for anything else."""
    for place, value in json_values(path):
        if not isinstance(value, dict):
            raise place.error(f"a row must be a JSON object, not {_kind(value)}")
        yield Row(place=place, fields=value)


def csv_rows(data: bytes, file: str, delimiters: str = ",") -> Iterator[tuple[Place, list[str]]]:
    """The records of a CSV text without header; ``line`` is the line a record begins on.

    delimiters: what may stand between cells (spreadsheet programs write ``;`` or a tab in some countries); the first of
        them that is in the first line does
    """
    text = decode(data, file)
    delimiter = next((mark for mark in delimiters if mark in first_line(text)), delimiters[0])
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    line = 1
    try:
        for record in reader:
            if record:
                yield Place(file=file, line=line), record
            line = reader.line_num + 1
    except csv.Error as error:
        raise Place(file=file, line=line).error(f"not valid CSV: {error}") from error


def first_line(text: str) -> str:
    """The first line that is not empty."""
    return text.lstrip("\r\n").split("\n", 1)[0].rstrip("\r")


def choice_item(
    place: Place,
    *,
    benchmark: str,
    split: str,
    subject: str,
    question: str,
    choices: Sequence[Any],
    answer: int,
    context: str = "",
    reason: str = "",
    source_id: str = "",
    columns: Sequence[int | str | None] = (),
) -> Located:
    """A checked choice item.

    answer: the key's index
    columns: where the question and each option stand, for errors
    """
    question_column, *option_columns = columns or (None, *[None] * len(choices))
    if not _visible(question):
        raise place.error("the question is empty", question_column)
    if not 2 <= len(choices) <= len(LETTERS):
        raise place.error(f"there are {len(choices)} choices; a choice question has 2 to {len(LETTERS)}")
    seen: set[str] = set()
    repeated = ""
    for choice, column in zip(choices, option_columns, strict=True):
        if not isinstance(choice, str):
            raise place.error(f"choice {shown(choice)} is {_kind(choice)}; it must be text", column)
        visible = _visible(choice)
        if not visible:
            raise place.error("a choice is empty", column)
        repeated = choice if visible in seen else repeated
        seen.add(visible)
    _refuse_half_characters(place, question, *choices, subject, context, reason, source_id)
    assert 0 <= answer < len(choices)
    item = make_item(
        benchmark=benchmark,
        split=split,
        subject=subject,
        question=question,
        choices=choices,
        answer=LETTERS[answer],
        context=context,
        reason=reason,
        source_id=source_id,
    )
    return Located(item=item, place=place, repeated=repeated)


def open_item(
    place: Place,
    *,
    benchmark: str,
    split: str,
    subject: str,
    question: str,
    answer: str | None,
    form: Form = "text",
    context: str = "",
    reason: str = "",
    followups: Sequence[str] = (),
    references: Sequence[str] = (),
    source_id: str = "",
    columns: Sequence[int | str | None] = (None, None),
) -> Located:
    """A checked open question, or the prompts of a conversation.

    answer: the key; None for what has none (a prompt that a judge grades), and then ``Item.answer`` is ""
    columns: where question and answer stand, for errors
    """
    for number, turn in enumerate((question, *followups), start=1):
        if not turn.strip():
            raise place.error("the question is empty" if number == 1 else f"turn {number} is empty", columns[0])
    if answer is not None and not answer.strip():
        raise place.error("the answer is empty", columns[1])
    _refuse_half_characters(place, question, answer or "", subject, context, reason, *followups, *references, source_id)
    item = make_item(
        benchmark=benchmark,
        split=split,
        subject=subject,
        question=question,
        choices=(),
        answer=answer or "",
        context=context,
        reason=reason,
        form=form,
        followups=followups,
        references=references,
        source_id=source_id,
    )
    return Located(item=item, place=place)


def key_index(place: Place, key: str, labels: Sequence[str], column: int | str | None = None) -> int:
    """The index of a key among the options' labels. ValueError if it is not one of them."""
    if not key:
        raise place.error(f"the row has no key; it must be one of {', '.join(labels)}", column)
    if key not in labels:
        raise place.error(f"the key is {shown(key)}; it must be one of {', '.join(labels)}", column)
    return list(labels).index(key)


def split_of(name: str) -> str:
    """The split that a file's name tells (``ARC-Challenge-Test.jsonl``: test; validation and valid are val), or ""."""
    words = "".join(character if character.isalnum() else " " for character in name.lower()).split()
    splits = {"validation": "val", "valid": "val", **{word: word for word in ("train", "dev", "val", "test")}}
    found = [splits[word] for word in words if word in splits]
    return found[-1] if found else ""


def _line_values(text: str, path: Path) -> Iterator[tuple[Place, Any]]:
    # Only "\n" ends a line: U+2028 and its kind may stand inside a JSON string.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = Place(file=str(path), line=number)
            try:
                yield place, DECODER.decode(line)
            except (ValueError, RecursionError) as error:
                raise place.error(f"not valid JSON ({error}); each line must be one JSON object") from error


def _list_elements(text: str, path: Path) -> Iterator[tuple[Place, Any]]:
    position, line, counted = text.index("[") + 1, 1, 0
    expected = "a JSON object or ]"
    while True:
        position = _SPACE.match(text, position).end()  # type: ignore[union-attr]
        line += text.count("\n", counted, position)
        counted = position
        place = Place(file=str(path), line=line)
        if text[position : position + 1] == "]":
            if text[position + 1 :].strip():
                raise place.error("there is more text after the list's closing ]")
            return
        if expected == ",":
            if text[position : position + 1] != ",":
                raise place.error("not valid JSON: a comma or ] is missing after this row")
            position, expected = position + 1, "a JSON object or ]"
            continue
        try:
            value, position = DECODER.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            raise place.error(f"not valid JSON ({error})") from error
        expected = ","
        yield place, value


def shown(value: object) -> str:
    """A value for an error message: as Python writes it, cut after 80 characters."""
    try:
        text = repr(value)
    except RecursionError:
        return "a value that is nested too deeply"
    return text if len(text) <= 80 else f"{text[:80]} ..."


def _visible(text: str) -> str:
    """What a reader sees of a text: without white space at its ends and without characters that show nothing."""
    if not text.isascii():
        text = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return text.strip()


def _refuse_half_characters(place: Place, *texts: str) -> None:
    for text in texts:
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise place.error("the text holds half of a surrogate pair (\\ud800 to \\udfff), which is no character")


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
