"""Format table as people's files are: padded options, other delimiters, other encodings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks import load, read
from evaluation.items import Item


def of(tmp_path: Path, *rows: dict[str, Any], **columns: Any) -> list[Item]:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"question": f"Q{i}?", **row}) + "\n" for i, row in enumerate(rows)))
    return load("table", path, columns=columns or None)


@pytest.mark.parametrize("filler", ["N/A", "n/a", None, " ", "#N/A"])
def test_padding_at_the_end_is_no_option(tmp_path: Path, filler: str | None) -> None:
    rows = [
        {"choices": ["a", "b", "c", *[filler] * 7], "answer": "C"},
        {"choices": [*"abcdefghij"], "answer": "J"},
    ]
    padded, whole = of(tmp_path, *rows)
    assert (padded.choices, padded.answer) == (("a", "b", "c"), "C")
    assert (len(whole.choices), whole.answer) == (10, "J")
    (note,) = read("table", tmp_path / "t.jsonl").notes()
    assert note.startswith("1 items without the N/A or null among their options:")
    assert note.endswith("t.jsonl:1 has 7 of them")


def test_padding_between_options_moves_the_key_with_its_option(tmp_path: Path) -> None:
    rows = [
        {"choices": ["a", "N/A", "c", "N/A", "e"], "answer": "E"},
        {"choices": ["a", None, "c"], "answer": "C"},
        {"choices": ["a", "N/A", "N/A"], "answer": "A"},
    ]
    items = of(tmp_path, *rows[:2])
    assert [(item.choices, item.answer) for item in items] == [(("a", "c", "e"), "C"), (("a", "c"), "B")]
    with pytest.raises(ValueError, match="there are 1 choices"):
        of(tmp_path, rows[2])


def test_an_option_that_says_it_does_not_apply_is_kept(tmp_path: Path) -> None:
    rows = [
        {"choices": ["yes", "no", "N/A"], "answer": "C"},
        {"choices": ["yes", "N/A", "no"], "answer": "A"},
        {"choices": ["yes", "no", "N/A"], "answer": "B"},
    ]
    asked = [(item.choices, item.answer) for item in of(tmp_path, *rows)]
    assert asked == [(("yes", "no", "N/A"), "C"), (("yes", "N/A", "no"), "A"), (("yes", "no"), "B")]


def test_a_key_that_is_padding_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"t\.jsonl:1, column answer: the key names option 2, which only fills"):
        of(tmp_path, {"choices": ["a", None, "c"], "answer": 1}, labels="index0")
    with pytest.raises(ValueError, match=r"t\.jsonl:1, column answer: answer 'D'"):
        of(tmp_path, {"choices": ["a", "b", "c", None], "answer": "D"})


def test_padding_decides_what_a_number_means(tmp_path: Path) -> None:
    # of ten options an answer 3 could count from 0 or from 1; of these three only from 1
    (item,) = of(tmp_path, {"choices": ["a", "b", "c", *["N/A"] * 7], "answer": 3})
    assert item.answer == "C"


def test_columns_and_labelled_options_are_padded_too(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("question,A,B,C,D,answer\nQ?,x,y,N/A,,B\n")
    (item,) = load("table", tmp_path / "t.csv")
    assert (item.choices, item.answer) == (("x", "y"), "B")
    labelled = {"text": ["x", "y", "N/A", "N/A"], "label": ["1", "2", "3", "4"]}
    (item,) = of(tmp_path, {"choices": labelled, "answer": "2"})
    assert (item.choices, item.answer) == (("x", "y"), "B")


ROWS = [["question", "A", "B", "answer"], ['Which, "if" any; or\twhich?', "x;1", "y,2", "B"]]


def quoted(mark: str) -> str:
    return "".join(mark.join('"' + cell.replace('"', '""') + '"' for cell in row) + "\r\n" for row in ROWS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", quoted(",")),
        ("t.csv", quoted(";")),
        ("t.csv", quoted("\t")),
        ("t.tsv", quoted("\t")),
        ("t.tsv", quoted(",")),
        ("t.csv", quoted("|")),
        ("t.csv", "sep=;\r\n" + quoted(";")),
        ("t.csv", "\ufeff" + quoted(";")),
    ],
)
def test_delimiters(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    (item,) = load("table", tmp_path / name)
    assert (item.question, item.choices, item.answer) == ('Which, "if" any; or\twhich?', ("x;1", "y,2"), "B")


def test_a_row_of_another_length_names_the_delimiter(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("question;A;B;answer\nQ?;x;y\n")
    with pytest.raises(
        ValueError, match=r"t\.csv:2, column 3: there are 3 columns \(by semicolons\); the header names 4"
    ):
        load("table", tmp_path / "t.csv")
    (tmp_path / "s.csv").write_text("sep=;\nquestion;A;B;answer\nQ?;x;y\n")
    with pytest.raises(ValueError, match=r"s\.csv:3"):
        load("table", tmp_path / "s.csv")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl"])
@pytest.mark.parametrize(
    ("encoding", "said"),
    [("utf-16", "UTF-16"), ("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE"), ("utf-32", "UTF-32")],
)
def test_another_encoding_is_named(tmp_path: Path, name: str, encoding: str, said: str) -> None:
    (tmp_path / name).write_bytes("question;A;B;answer\r\n什么?;x;y;B\r\n".encode(encoding))
    with pytest.raises(ValueError, match=rf"{name} is encoded in {said}, not UTF-8; .*iconv -f {said} -t utf-8"):
        load("table", tmp_path / name)
