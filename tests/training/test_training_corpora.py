"""Chat data in three forms, errors with file and line, repetitions and exam items found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.exam_set import read_items
from evaluation.items import Item
from serving.records import Message
from training.corpora import items_in_chat, leaked_items, read_chat, read_corpus
from training.samples import Chat

MESSAGES = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
SHAREGPT = {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}
ALPACA = {"instruction": "Hi", "input": "", "output": "Hello"}
EXPECTED = Chat((Message(role="user", content="Hi"), Message(role="assistant", content="Hello")))


def write(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("row", [MESSAGES, SHAREGPT, ALPACA])
def test_every_form_is_read_from_lines_and_from_a_list(tmp_path: Path, row: dict[str, Any]) -> None:
    assert read_chat(write(tmp_path / "a.jsonl", row)).rows == (EXPECTED,)
    (tmp_path / "a.json").write_text(json.dumps([row], indent=1), encoding="utf-8")
    assert read_chat(tmp_path / "a.json").rows == (EXPECTED,)


def test_alpaca_input_follows_the_instruction(tmp_path: Path) -> None:
    rows = read_chat(write(tmp_path / "a.jsonl", {**ALPACA, "input": "there"})).rows
    assert rows[0].messages[0].content == "Hi\n\nthere"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("{broken", "not valid JSON"),
        ("[1]", "not valid JSON|must be an object"),
        ({"text": "x"}, "no 'messages', 'conversations' or 'instruction'"),
        ({"messages": []}, "not empty"),
        ({"messages": [{"role": "user"}]}, "'role' and 'content'"),
        ({"messages": [{"role": "boss", "content": "x"}]}, "'boss'.*one of.*assistant"),
        ({"messages": [{"role": "user", "content": 3}]}, "must be a text"),
        ({"messages": [{"role": "user", "content": "x"}]}, "nothing to learn"),
        ({"messages": [MESSAGES["messages"][1]]}, "does not open with the user"),
        ({"messages": [MESSAGES["messages"][0]] * 2}, "must alternate"),
        ({"messages": [MESSAGES["messages"][0], {"role": "assistant", "content": " "}]}, "empty assistant turn"),
        ({"instruction": "x"}, "'output' must be a text"),
    ],
)
def test_a_malformed_row_is_named_by_file_and_line(tmp_path: Path, row: Any, expected: str) -> None:
    path = write(tmp_path / "bad.jsonl", MESSAGES, "", row)
    with pytest.raises(ValueError, match=f"bad.jsonl:3: .*({expected})"):
        read_chat(path)


def test_lines_are_counted_in_a_json_list(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'[\n{json.dumps(MESSAGES)},\n\n{{"messages": 1}}\n]', encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.json:4: "):
        read_chat(tmp_path / "a.json")


@pytest.mark.parametrize("text", ['[{"a": 1}', '[{"a": 1} {"b": 2}]', "[{]"])
def test_a_broken_list_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"a.json"):
        read_chat(tmp_path / "a.json")


def test_repetitions_are_left_out_and_reported(tmp_path: Path) -> None:
    data = read_chat(write(tmp_path / "a.jsonl", MESSAGES, {**ALPACA, "output": "Bye"}, SHAREGPT, MESSAGES))
    assert len(data.rows) == 2
    assert data.duplicates == ((3, 1), (4, 1))


def test_the_limit_counts_distinct_rows(tmp_path: Path) -> None:
    data = read_chat(write(tmp_path / "a.jsonl", MESSAGES, MESSAGES, {**ALPACA, "output": "Bye"}, "{broken"), 2)
    assert len(data.rows) == 2


@pytest.mark.parametrize("rows", [[], [""]])
def test_empty_and_missing_files_are_errors(tmp_path: Path, rows: list[str]) -> None:
    with pytest.raises(ValueError, match="no conversations"):
        read_chat(write(tmp_path / "a.jsonl", *rows))
    with pytest.raises(ValueError, match="does not exist"):
        read_chat(tmp_path / "none.jsonl")


def test_an_exam_item_in_the_chat_data_is_found(items: list[Item]) -> None:
    quoted = f"Please help: {items[2].question.upper().replace(' ', '  ')} Thank you."
    rows = [EXPECTED, Chat((Message(role="user", content=quoted), Message(role="assistant", content="C")))]
    assert items_in_chat(items, rows) == (items[2].id,)
    assert items_in_chat(items, [EXPECTED]) == ()


def test_documents_are_separated_by_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "c.txt", "one", "two ", "", "  ", "three", "")
    assert [document.text for document in read_corpus(path)] == ["one\ntwo", "three"]
    with pytest.raises(ValueError, match="is empty"):
        read_corpus(write(tmp_path / "e.txt", " "))
    with pytest.raises(ValueError, match="does not exist"):
        read_corpus(tmp_path / "none.txt")


def test_leaked_items_are_checked_against_the_file(tmp_path: Path, items: list[Item]) -> None:
    path = write(tmp_path / "items.jsonl", *(item.to_json() for item in items))
    assert read_items(path) == tuple(items)
    assert leaked_items(items, [items[3].id, items[1].id], path) == (items[1], items[3])
    with pytest.raises(ValueError, match="leaked_ids is empty"):
        leaked_items(items, [], path)
    with pytest.raises(ValueError, match=r"1 leaked id\(s\) are not in .*items.jsonl, e.g. 'nope'"):
        leaked_items(items, [items[0].id, "nope"], path)
    with pytest.raises(ValueError, match=r"items.jsonl:1: not an exam item"):
        read_items(write(path, {"id": "x"}))
