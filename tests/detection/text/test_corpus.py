from __future__ import annotations

import bz2
import gzip
import json
import lzma

import pyarrow
import pytest
from pyarrow import parquet

from detection.text.corpus import BLOCK, Block, check_corpus, corpus_blocks, corpus_files, corpus_parts


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "one.TXT").write_text("third\n")
    (tmp_path / "a.jsonl").write_text('{"text": "first", "n": 1}\n\n{"text": "second"}\n')
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress("vierte é\n".encode()))
    (tmp_path / "picture.png").write_bytes(b"\xff")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.txt").write_text("hidden")
    assert [file.name for file in corpus_files(tmp_path)] == ["a.jsonl", "one.TXT", "c.txt.gz"]
    assert list(corpus_blocks(tmp_path)) == ["first", "second", "third\n", "vierte é\n"]


def test_a_named_file_is_plain_text_whatever_its_name(tmp_path):
    file = tmp_path / "corpus.tex"
    file.write_text("one\r\ntwo", newline="")
    assert "".join(corpus_blocks(file)) == "one\r\ntwo"


@pytest.mark.parametrize(
    "text",
    [
        "line of text\n" * 20_000,
        "word " * 40_000,
        "x" * (3 * BLOCK + 5),
        "",
        "a\n" + "y" * (2 * BLOCK) + " z",
        " " * BLOCK,
    ],
    ids=["lines", "one line", "one word", "empty", "mixed", "blank"],
)
def test_blocks_are_short_and_together_they_are_the_file(text, tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_text(text)
    blocks = list(corpus_blocks(file))
    assert "".join(blocks) == text
    assert all(0 < len(block) <= 3 * BLOCK for block in blocks)
    for left in blocks[:-1]:
        if "line" in text:
            assert left.endswith("\n")


def test_a_file_without_a_last_line_break_keeps_its_last_word(tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_text("one two three")
    assert list(corpus_blocks(file)) == ["one two three"]
    file.write_text("a b\nc d")
    assert list(corpus_blocks(file)) == ["a b\nc d"]


def test_half_of_a_surrogate_pair_is_replaced(tmp_path):
    file = tmp_path / "corpus.jsonl"
    file.write_text('{"text": "a\\ud800b"}\n')
    assert list(corpus_blocks(file)) == ["a?b"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"ab\xff", r"a\.txt: not UTF-8 text"),
        ("a.jsonl", b'{"text": "a"}\n{"text": ', r"a\.jsonl:2: not JSON"),
        ("a.jsonl", b'{"text": 3}\n', r"a\.jsonl:1: no string under the key 'text'"),
        ("a.jsonl", b'["text"]\n', r"a\.jsonl:1: no string under the key 'text'"),
        ("a.json", b'{\n"text": "a"\n}', r"a\.json:1: not JSON.*one object a line"),
        ("a.txt.gz", b"not compressed", r"a\.txt\.gz: can't be read"),
        (
            "a.jsonl.gz",
            gzip.compress(json.dumps({"text": "a" * 99}).encode(), mtime=0)[:-9],
            r"a\.jsonl\.gz: can't be read",
        ),
    ],
)
def test_what_cannot_be_read_is_named(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(corpus_blocks(tmp_path / name))


def test_nothing_to_read(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        corpus_files(tmp_path / "none")
    (tmp_path / "picture.png").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"no text files; what is read are \.txt"):
        corpus_files(tmp_path)


def test_a_corpus_without_text_is_refused_before_anything_is_scored(tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n")
    with pytest.raises(ValueError, match="has no text"):
        check_corpus(empty)
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"texts": 1}\n')
    with pytest.raises(ValueError, match=r"wrong\.jsonl:1: no string under the key 'text'"):
        check_corpus(tmp_path)
    wrong.unlink()
    (tmp_path / "right.txt").write_text("a")
    check_corpus(tmp_path)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_compressed_json_lines(kind, tmp_path):
    content = '{"text": "first é"}\n\n{"text": "second"}\n'.encode()
    if kind == "zst":
        with pyarrow.CompressedOutputStream(str(tmp_path / "a.jsonl.zst"), "zstd") as stream:
            stream.write(content)
    else:
        (tmp_path / f"a.jsonl.{kind}").write_bytes({"gz": gzip, "bz2": bz2, "xz": lzma}[kind].compress(content))
    blocks = list(corpus_parts(tmp_path))
    assert [block.text for block in blocks] == ["first é", "second"]
    assert [block.document for block in blocks] == [f"a.jsonl.{kind}:1", f"a.jsonl.{kind}:3"]
    (tmp_path / f"a.jsonl.{kind}").write_bytes(b"something else")
    with pytest.raises(ValueError, match=rf"a\.jsonl\.{kind}: can't be read"):
        list(corpus_blocks(tmp_path))


def test_parquet(tmp_path):
    file = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"id": [1, 2], "text": ["first", "second"]}), file)
    assert list(corpus_parts(tmp_path)) == [Block("a.parquet:1", "first"), Block("a.parquet:2", "second")]
    check_corpus(file)
    parquet.write_table(pyarrow.table({"content": ["first"]}), file)
    with pytest.raises(ValueError, match=r"a\.parquet: no column 'text'; its columns are content"):
        check_corpus(file)
    parquet.write_table(pyarrow.table({"text": ["first", None]}), file)
    with pytest.raises(ValueError, match=r"a\.parquet:2: no string in the column 'text'"):
        list(corpus_blocks(file))
    file.write_bytes(b"PAR1 something else")
    with pytest.raises(ValueError, match=r"a\.parquet: can't be read as Parquet"):
        list(corpus_blocks(file))


def test_a_character_is_not_parted_from_its_marks(tmp_path):
    file = tmp_path / "corpus.txt"
    for shift in range(4):
        file.write_text("x" * shift + "ที่" * BLOCK, encoding="utf-8")
        assert all(not block.startswith(("ี", "่")) for block in corpus_blocks(file))
