"""Files that are there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving.files import read_json, read_jsonl, write_bytes, write_json, write_jsonl, write_text


def test_bytes_are_written_whole_and_replace_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.png"
    write_bytes(file, b"\x89PNG\r\n\x00")
    assert file.read_bytes() == b"\x89PNG\r\n\x00"
    write_bytes(file, b"")
    assert file.read_bytes() == b""
    assert [path.name for path in file.parent.iterdir()] == ["a.png"]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_bytes(tmp_path / "folder", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    (tmp_path / "a.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == "{}"


def test_texts_of_models_are_kept(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "one\r\ntwo \ud83d")
    assert (tmp_path / "a.txt").read_bytes() == b"one\r\ntwo \\ud83d"
    rows = [{"text": "\ud83d \u2028 \x00"}, {"text": ""}]
    write_jsonl(tmp_path / "a.jsonl", rows)
    assert read_jsonl(tmp_path / "a.jsonl") == rows


def test_what_cannot_be_read(tmp_path: Path) -> None:
    assert read_json(tmp_path / "missing.json") == {}
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2 is damaged"):
        read_jsonl(tmp_path / "a.jsonl")
