"""Benchmark files of strangers: every odd one is read or refused in one sentence, soon and in little memory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from evaluation import benchmarks
from evaluation.benchmarks import arrow
from tests.fixtures.odd_benchmarks import odd_benchmarks


def test_every_odd_file_is_read_or_refused(tmp_path: Path) -> None:
    begin = time.monotonic()
    for name, format, path in odd_benchmarks(tmp_path / "odd"):
        try:
            found = benchmarks.read(format, path, duplicates="report")
        except ValueError:  # what the command line turns into one message; anything else would be a traceback
            continue
        else:
            assert found.items, name
    assert time.monotonic() - begin < 120  # the longest takes 3 s; each of several would take minutes


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "twice.jsonl"
    row = '{"question": "q", "choices": ["a", "b"], "answer": "A", "answer": "B"}'
    for text in (row, f"[{row}]"):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=r"twice\.jsonl:1: not valid JSON .the key 'answer' stands twice"):
            benchmarks.read("jsonl", file)


@pytest.mark.parametrize("mark", ["\u200b", "\u200d", "\u2060", "\ufeff", "\u202e", "\u00ad"])
def test_options_that_look_alike_are_repeated_options(mark: str, tmp_path: Path) -> None:
    file = tmp_path / "alike.jsonl"
    file.write_text(f'{{"question": "q", "choices": ["Mars", "Ma{mark}rs"], "answer": "A"}}', encoding="utf-8")
    with pytest.raises(ValueError, match="1 items with repeated options"):
        benchmarks.read("jsonl", file)
    file.write_text(f'{{"question": "q", "choices": ["a", "{mark}"], "answer": "A"}}', encoding="utf-8")
    with pytest.raises(ValueError, match="a choice is empty"):
        benchmarks.read("jsonl", file)


def test_a_wide_header_is_read_at_once(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    file.write_text(",".join(f"c{i}" for i in range(200_000)) + "\n" + "1," * 199_999 + "1\n", encoding="utf-8")
    begin = time.monotonic()
    with pytest.raises(ValueError, match="there is no column"):
        benchmarks.read("table", file)
    assert time.monotonic() - begin < 10  # 90 s and more when every name was counted among all


def test_a_table_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow
    from pyarrow import parquet

    rows = {"question": [f"q{i}" for i in range(40)], "choices": [["a" * 100, "b"]] * 40, "answer": ["A"] * 40}
    parquet.write_table(pyarrow.table(rows), tmp_path / "t.parquet")
    whole = benchmarks.read("table", tmp_path / "t.parquet")
    assert [item.question for item in whole.items] == rows["question"]
    assert whole.items[0].choices == ("a" * 100, "b")
    monkeypatch.setattr(arrow, "LARGEST", 3_000)
    with pytest.raises(ValueError, match="its rows unpack to more than 3,000 bytes"):
        benchmarks.read("table", tmp_path / "t.parquet")
    monkeypatch.setattr(arrow, "LARGEST", 10**6)
    monkeypatch.setattr(arrow, "MOST_ROWS", 39)
    with pytest.raises(ValueError, match="there are more than 39 rows"):
        benchmarks.read("table", tmp_path / "t.parquet")
