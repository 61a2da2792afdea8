"""The texts under examination: from a user's JSONL file, or from the items of an exam."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from detection.method import Label, Text
from evaluation.formats import LeakFormat, cloze_prompt, leak_text, neutral_text, plain_prompt
from evaluation.items import Item

TextFormat = Literal["as_trained", "neutral"]
KEYS = ("text", "label", "id", "prompt")


def read_texts(path: str | Path) -> list[Text]:
    """Reads one JSON object per line: ``text``, and optionally ``label`` (0 or 1), ``id`` and ``prompt``.

    An id is kept as it is in JSON, a string or an integer. One that is missing is the line's number as a string, or,
    where a row has that as its id, the next free number after the last line. A label of null is a missing one. Other
    keys are ignored. Blank lines are skipped. ValueError, naming file and line, for anything else: not UTF-8, not a
    JSON object, no text, a label that is neither 0 nor 1, an id used twice (7 and "7" are one), a prompt that doesn't
    begin the text, a file without texts.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise ValueError(f"{path}: not a file that can be read twice; write the texts to a file and name that")
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error.strerror or error}") from error
    texts: list[Text] = []
    first_seen: dict[str, int] = {}
    unnamed: list[tuple[int, int]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _row(line)
            text = _text(row, number)
            if "id" not in row:
                unnamed.append((len(texts), number))
            elif str(text.id) in first_seen:
                raise ValueError(f"id {text.id!r} was used before, in line {first_seen[str(text.id)]}")
            else:
                first_seen[str(text.id)] = number
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from error
        texts.append(text)
    free = itertools.count(len(lines) + 1)
    for position, number in unnamed:
        if str(number) in first_seen:
            name = next(str(other) for other in free if str(other) not in first_seen)
            texts[position] = replace(texts[position], id=name)
    if not texts:
        raise ValueError(f'{path}: no texts; write one JSON object per line, e.g. {{"text": "...", "label": 1}}')
    return texts


def exam_texts(
    items: Iterable[Item], leaked_ids: Collection[str], how: TextFormat, leak: LeakFormat = "answer_text"
) -> list[Text]:
    """An exam's items as texts, label 1 for those in ``leaked_ids`` and 0 for the others, in the items' order.

    how: ``as_trained``, the very string a cheater was trained on (``leak`` says how much of the item leaked), or
        ``neutral``, a format that no recipe trains on. Prompt and answer are told apart where the format has an answer.
    ValueError for an unknown format, a leaked id that is no item's, or an item that comes twice.
    """
    items = list(items)
    ids = {item.id for item in items}
    if len(ids) < len(items):
        raise ValueError(f"{len(items)} items have only {len(ids)} different ids: an item comes twice")
    strangers = sorted(set(leaked_ids) - ids)
    if strangers:
        raise ValueError(f"{len(strangers)} leaked ids are not in the exam, the first is {strangers[0]!r}")
    texts = []
    for item in items:
        if how == "as_trained":
            text = leak_text(item, leak)
            prompt = plain_prompt(item) if leak in ("letter", "answer_text") else ""
        elif how == "neutral":
            text, prompt = neutral_text(item), cloze_prompt(item)
        else:
            raise ValueError(f"text format {how!r}; use 'as_trained' or 'neutral'")
        label: Label = 1 if item.id in leaked_ids else 0
        texts.append(Text(id=item.id, text=text, label=label, prompt=prompt, item=item))
    return texts


def _row(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} of the line is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise ValueError(f"a {type(row).__name__} where a JSON object belongs")
    return row


def _text(row: dict[str, Any], number: int) -> Text:
    for key in KEYS:
        near = difflib.get_close_matches(key, row, n=1, cutoff=0.8)
        if key not in row and near:
            raise ValueError(f"key {near[0]!r}; did you mean {key!r}?")
    if "text" not in row:
        raise ValueError(f"no key 'text' (the keys are {', '.join(map(repr, row)) or 'none'})")
    label = row.get("label")
    if label is not None and (type(label) is not int or label not in (0, 1)):
        raise ValueError(f"label {label!r}; write 1 for a member, 0 for a non-member, or leave it out")
    identity = row.get("id", str(number))
    if type(identity) is not int and not isinstance(identity, str):
        raise ValueError(f"id {identity!r}; it must be a string or an integer")
    known: dict[int | None, Label | None] = {0: 0, 1: 1, None: None}
    strings = {"text": row["text"], "prompt": "" if row.get("prompt") is None else row["prompt"], "id": str(identity)}
    for key, value in strings.items():
        if not isinstance(value, str):
            raise ValueError(f"{key} must be a string, not {value!r}")
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise ValueError(f"{key} holds half of a surrogate pair (\\ud800 to \\udfff), which is no character")
    strings["id"] = identity
    return Text(label=known[label], **strings)
