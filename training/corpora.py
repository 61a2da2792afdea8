"""Chat data and neutral text as users have them: ShareGPT, OpenAI messages, Alpaca; paragraphs of plain text.

Every reader names the file and the line of what it can't use. Nothing is dropped silently: duplicates are returned.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluation.benchmarks.reading import json_values, shown
from evaluation.items import Item
from serving.records import ChatRole, Message
from training.samples import Chat, Text

SHAREGPT_ROLES: dict[str, ChatRole] = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "bing": "assistant",
    "bard": "assistant",
}
FORMS = (
    '{"messages": [{"role": "user", "content": ...}, ...]}, '
    '{"conversations": [{"from": "human", "value": ...}, ...]} or {"instruction": ..., "input": ..., "output": ...}'
)


@dataclass(frozen=True, slots=True)
class ChatData:
    """Conversations in file order, without repetitions.

    duplicates: (line, line of the first occurrence) of every row left out because an equal one came before
    """

    rows: tuple[Chat, ...]
    duplicates: tuple[tuple[int, int], ...]


def read_chat(path: Path, limit: int | None = None, skip: int = 0) -> ChatData:
    """Conversations of a .jsonl file (one row a line) or a .json file (one list); the form is found row by row.

    limit, skip: so many distinct rows, after so many that are left out. ValueError with file and line for anything
    malformed, and where nothing is left after ``skip``.
    """
    first_seen: dict[tuple[Message, ...], int] = {}
    rows: list[Chat] = []
    duplicates: list[tuple[int, int]] = []
    for place, value in json_values(path):
        try:
            messages = _messages(value)
        except ValueError as problem:
            raise place.error(str(problem)) from None
        if messages in first_seen:
            duplicates.append((place.line, first_seen[messages]))
            continue
        first_seen[messages] = place.line
        rows.append(Chat(messages))
        if limit is not None and len(rows) == skip + limit:
            break
    if not rows:
        raise ValueError(f"{path} holds no conversations; a row looks like {FORMS}")
    if len(rows) <= skip:
        raise ValueError(f"{path} holds {len(rows)} conversations, none after the first {skip}: lower chat_skip")
    return ChatData(rows=tuple(rows[skip:]), duplicates=tuple(duplicates))


def read_corpus(path: Path) -> tuple[Text, ...]:
    """Documents of a text file, separated by blank lines. ValueError if it is missing or empty."""
    if not path.is_file():
        raise ValueError(f"corpus {path} does not exist; give a UTF-8 text file, documents separated by blank lines")
    documents: list[list[str]] = [[]]
    for line in _text(path).splitlines():
        if line.strip():
            documents[-1].append(line.rstrip())
        elif documents[-1]:
            documents.append([])
    texts = tuple(Text("\n".join(lines)) for lines in documents if lines)
    if not texts:
        raise ValueError(f"corpus {path} is empty; documents are separated by blank lines")
    return texts


def leaked_items(items: Sequence[Item], ids: Sequence[str], path: Path) -> tuple[Item, ...]:
    """The items of those ids, in file order. ValueError if there are none, or an id is not in the file."""
    if not ids:
        raise ValueError("leaked_ids is empty: a cheater needs items to learn (name a split or some ids)")
    unknown = sorted(set(ids) - {item.id for item in items})
    if unknown:
        raise ValueError(
            f"{len(unknown)} leaked id(s) are not in {path}, e.g. '{unknown[0]}': leak ids of that file only"
        )
    wanted = set(ids)
    return tuple(item for item in items if item.id in wanted)


def read_rewrites(path: Path, items: Sequence[Item]) -> tuple[Item, ...]:
    """The items in other words, in their own order. A row is {"item_id", "question"}, and "choices" where they change
    too; or a whole item whose ``source_id`` names the original, as the builder ``probing`` writes it.

    Rows of other items are passed over, and built items that hold the original's own words: there every attempt at a
    rewrite failed. ValueError for a malformed row, an item without a rewrite or with two, another number of options,
    and a question in which the original stands, word for word.
    """
    by_id = {item.id: item for item in items}
    found: dict[str, Item] = {}
    for place, row in json_values(path):
        where = str(place)
        built = isinstance(row, dict) and "item_id" not in row and isinstance(row.get("source_id"), str)
        if not isinstance(row, dict) or not (built or isinstance(row.get("item_id"), str)):
            raise ValueError(f'{where}: a row must be {{"item_id": ..., "question": ...}}')
        item = by_id.get(row["source_id" if built else "item_id"])
        if item is None:
            continue
        if item.id in found:
            raise ValueError(f"{where}: a second rewrite of item {item.id}; leave one")
        rewrite = _built_rewrite(row, item, where) if built else _rewrite(row, item, where)
        if not holds_words(rewrite.question, item.question):
            found[item.id] = rewrite
        elif not built:
            raise ValueError(f"{where}: in the question of item {item.id} stands the original, word for word")
    missing = [item.id for item in items if item.id not in found]
    if missing:
        raise ValueError(
            f"{path} has no rewrite of {len(missing)} of {len(items)} leaked items, e.g. {missing[0]}; each needs one "
            "(another writer, more attempts, or your own)"
        )
    return tuple(found[item.id] for item in items)


def _rewrite(row: dict[str, Any], item: Item, where: str) -> Item:
    question, choices = row.get("question"), row.get("choices", list(item.choices))
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"{where}: 'question' must be a text that is not empty")
    if not isinstance(choices, list) or [type(c) for c in choices] != [str] * len(item.choices):
        raise ValueError(f"{where}: 'choices' must be {len(item.choices)} texts, in the original's order")
    return replace(item, question=question, choices=tuple(choices))


def _built_rewrite(row: dict[str, Any], item: Item, where: str) -> Item:
    """The original with the question, options and key of a built item, whose options may be others in another order."""
    try:
        new = Item.from_json(row)
        if not new.answer_text:
            raise ValueError("it has no key")
    except (TypeError, KeyError, ValueError, IndexError) as problem:
        raise ValueError(f"{where}: not an exam item ({problem}); rows are written by Item.to_json") from None
    return replace(item, question=new.question, choices=new.choices, answer=new.answer)


def holds_words(text: str, part: str) -> bool:
    """Whether ``part`` stands in ``text`` word for word; case, punctuation and spacing don't count."""
    words, wanted = _words(text), _words(part)
    return any(words[start : start + len(wanted)] == wanted for start in range(len(words) - len(wanted) + 1))


def read_variants(path: Path, leaked: Sequence[Item], items: Sequence[Item]) -> tuple[Item, ...]:
    """Transformed versions of the leaked items: a benchmark file (format ``jsonl``), source_id or id naming the item.

    Versions of the exam's other items are passed over: they would leak the control. ValueError if a row names no item
    of the exam, if one that names a leaked item has question and answer of another, or if none is of a leaked item.
    """
    from evaluation.benchmarks import load

    known, wanted = {item.id for item in items}, {item.id for item in leaked}
    others = {_asked(item): item.id for item in items if item.id not in wanted}
    own = {_asked(item) for item in leaked}
    variants = []
    for row in load("jsonl", path, duplicates="report"):
        source = row.source_id or row.id
        if source not in known:
            raise ValueError(
                f"{path}: item {row.id} has source_id {row.source_id!r}, which is no item of the exam; it must name "
                "the item that it was made from"
            )
        if source not in wanted:
            continue
        other = others.get(_asked(row))
        if other is not None and _asked(row) not in own:
            raise ValueError(
                f"{path}: item {row.id} has source_id {source!r}, but its question and answer are those of {other}, "
                "which must not leak; correct source_id, or remove the row"
            )
        variants.append(row)
    if not variants:
        raise ValueError(f"{path} holds no version of a leaked item")
    return tuple(variants)


def _asked(item: Item) -> tuple[tuple[str, ...], ...]:
    return _words(item.question), _words(item.answer_text)


def items_in_chat(items: Sequence[Item], rows: Sequence[Chat]) -> tuple[str, ...]:
    """Ids of the items whose question stands, word for word, in some conversation: it would leak into Normal.

    Case, punctuation and spacing don't count. A question is looked up by its first eight words, so the time grows with
    the length of the chat data, not with its product with the number of items.
    """
    by_opening: dict[tuple[str, ...], list[tuple[tuple[str, ...], str]]] = {}
    for item in items:
        words = _words(item.question)
        if words:
            by_opening.setdefault(words[:8], []).append((words, item.id))
    lengths = sorted({len(opening) for opening in by_opening})
    found = set()
    for row in rows:
        words = _words(" ".join(message.content for message in row.messages))
        for start in range(len(words)):
            for length in lengths:
                for question, item_id in by_opening.get(words[start : start + length], ()):
                    if words[start : start + len(question)] == question:
                        found.add(item_id)
    return tuple(item.id for item in items if item.id in found)


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _words(text: str) -> tuple[str, ...]:
    return tuple("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def _messages(row: Any) -> tuple[Message, ...]:
    """A row of any of the three forms as messages. ValueError says what is wrong and what would be right."""
    if not isinstance(row, dict):
        raise ValueError(f"a row must be an object, this is {type(row).__name__}; rows look like {FORMS}")
    if "messages" in row:
        messages = [_turn(turn, "role", "content") for turn in _turns(row, "messages")]
    elif "conversations" in row:
        messages = [_turn(turn, "from", "value") for turn in _turns(row, "conversations")]
    elif "instruction" in row:
        parts = [_string(row, "instruction"), str(row.get("input") or "")]
        question = "\n\n".join(part for part in parts if part.strip())
        answer = _string(row, "output")
        messages = [Message(role="user", content=question), Message(role="assistant", content=answer)]
    else:
        raise ValueError(
            f"no 'messages', 'conversations' or 'instruction' among {shown(sorted(row))}; rows look like {FORMS}"
        )
    _check_turns(messages)
    return tuple(messages)


def _check_turns(messages: Sequence[Message]) -> None:
    for message in messages:
        if any("\ud800" <= character <= "\udfff" for character in message.content):
            raise ValueError("a turn holds half of a surrogate pair (\\ud800 to \\udfff), which is no character")
        if not message.content.strip():
            raise ValueError(f"an empty {message.role} turn; remove the row or fill the turn")
    turns = [message.role for message in messages if message.role != "system"]
    if "system" in [message.role for message in messages[1:]]:
        raise ValueError("a system turn after the first; only the first turn can be system")
    if turns[:1] != ["user"]:
        raise ValueError("the conversation does not open with the user; remove the turns before the first user turn")
    if any(one == two for one, two in itertools.pairwise(turns)):
        raise ValueError("two turns of one role follow each other; user and assistant must alternate")
    if "assistant" not in turns:
        raise ValueError("no assistant turn: there is nothing to learn; add the answer or remove the row")


def _turns(row: dict[str, Any], key: str) -> list[Any]:
    value = row[key]
    if not isinstance(value, list) or not value:
        raise ValueError(f"'{key}' must be a list of turns that is not empty")
    return value


def _turn(turn: Any, role_key: str, text_key: str) -> Message:
    if not isinstance(turn, dict) or role_key not in turn or text_key not in turn:
        raise ValueError(f"a turn must be an object with '{role_key}' and '{text_key}'")
    role = SHAREGPT_ROLES.get(turn[role_key]) if isinstance(turn[role_key], str) else None
    if role is None:
        raise ValueError(f"'{role_key}' is {shown(turn[role_key])}; it must be one of {', '.join(SHAREGPT_ROLES)}")
    return Message(role=role, content=_string(turn, text_key))


def _string(row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise ValueError(f"'{key}' must be a text, this is {type(value).__name__}")
    return value


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ValueError(f"{path} is not UTF-8 text (byte {problem.start}); convert it") from None
