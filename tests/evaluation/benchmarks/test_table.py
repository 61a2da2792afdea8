"""The user's own file with a column map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks import load
from tests.evaluation.benchmarks.huggingface import FORMS, Form, write_rows
from tests.evaluation.benchmarks.test_publishers import lines, sheet

ROWS: list[dict[str, Any]] = [
    {"Q": "Why?", "o1": "p", "o2": "q", "o3": "r", "key": "C", "area": "law", "nr": 7, "text": "Read.", "why": "So."},
    {"Q": "How?", "o1": "x", "o2": "y", "o3": "", "key": "B", "area": "art", "nr": 8, "text": "", "why": ""},
]
MAP = {
    "question": "Q",
    "choices": ["o1", "o2", "o3"],
    "answer": "key",
    "subject": "area",
    "id": "nr",
    "context": "text",
    "reason": "why",
}


def plain(*answers: Any, choices: Any = ("a", "b", "c")) -> list[dict[str, Any]]:
    return [{"question": f"Q{i}?", "choices": list(choices), "answer": answer} for i, answer in enumerate(answers)]


def test_a_csv_with_a_column_map(tmp_path: Path) -> None:
    why, how = load("table", sheet(tmp_path / "mine_test.csv", ROWS, header=True), columns=MAP)
    assert (why.question, why.choices, why.answer, why.subject) == ("Why?", ("p", "q", "r"), "C", "law")
    assert (why.source_id, why.context, why.reason, why.split) == ("7", "Read.", "So.", "test")
    assert (how.choices, how.answer, why.benchmark) == (("x", "y"), "B", "mine_test")


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_file_gives_the_same_items(tmp_path: Path, form: Form) -> None:
    expected = load("table", sheet(tmp_path / "mine.csv", ROWS, header=True), columns=MAP)
    assert load("table", lines(tmp_path / "mine.jsonl", ROWS), columns=MAP) == expected
    (tmp_path / "mine.json").write_text(json.dumps(ROWS))
    assert load("table", tmp_path / "mine.json", columns=MAP) == expected
    path = write_rows(tmp_path / "hub", ROWS, form=form)
    # The benchmark is called after the file or folder, and it is part of the id: the same name, the same id.
    if path.is_dir():
        target = tmp_path / "mine"
        path.rename(target)
    else:
        target = path.rename(tmp_path / f"mine{path.suffix}")
    items = load("table", target, columns=MAP)
    assert [item.id for item in items] == [item.id for item in expected]
    assert [item.source_id for item in items] == ["7", "8"]


def test_names_that_need_no_map(tmp_path: Path) -> None:
    rows = [{"question": "Q?", "A": "x", "B": "y", "answer": "B", "subject": "s", "split": "validation"}]
    (item,) = load("table", sheet(tmp_path / "t.csv", rows, header=True))
    assert (item.choices, item.answer, item.subject, item.split) == (("x", "y"), "B", "s", "val")
    rows = [{"question": "Q?", "choices": '["x, 1", "y"]', "answer": "y"}]
    (item,) = load("table", sheet(tmp_path / "u.csv", rows, header=True))
    assert (item.choices, item.answer) == (("x, 1", "y"), "B")
    (item,) = load("table", lines(tmp_path / "v.jsonl", plain(1, choices=(10, 20, 30))), columns={"labels": "index0"})
    assert (item.choices, item.answer) == (("10", "20", "30"), "B")


@pytest.mark.parametrize(
    ("labels", "answers", "expected"),
    [
        ("letter", ["A", "c"], ["A", "C"]),
        ("number1", [1, "3"], ["A", "C"]),
        ("index0", [1, "2"], ["B", "C"]),
        ("text", ["a", " c "], ["A", "C"]),
        ("auto", ["A", "C"], ["A", "C"]),
        ("auto", [0, 1], ["A", "B"]),
        ("auto", [3, 1], ["C", "A"]),
        ("auto", ["b", "a"], ["B", "A"]),
    ],
)
def test_what_an_answer_may_be(tmp_path: Path, labels: str, answers: list[Any], expected: list[str]) -> None:
    path = lines(tmp_path / "t.jsonl", [])
    path.write_text("".join(json.dumps(row) + "\n" for row in plain(*answers, choices=("a", "b", "c"))))
    assert [item.answer for item in load("table", path, columns={"labels": labels})] == expected


def test_labels_that_the_options_carry(tmp_path: Path) -> None:
    choices = {"text": ["x", "y"], "label": ["K", "L"]}
    path = lines(tmp_path / "t.jsonl", [{"question": "Q?", "choices": choices, "answer": "L"}])
    assert load("table", path)[0].answer == "B"
    path = lines(tmp_path / "t.jsonl", [{"question": "Q?", "choices": choices, "answer": "A"}])
    with pytest.raises(ValueError, match=r"t\.jsonl:1, column answer: the key is 'A'; it must be one of K, L"):
        load("table", path)


@pytest.mark.parametrize(
    ("answers", "choices", "labels", "message"),
    [
        ([1, 2], "abc", "auto", ":1, column answer: answer 1 could be a number that counts from 1, or an index"),
        ([1, 2], "abc", "auto", "say which: labels: number1 or labels: index0"),
        (["A"], "BAC", "auto", "could be a letter, A for the first option, or the text of exactly one option"),
        ([0, 0, 3], "abc", "auto", ":3, column answer: answer 3 names no option; most rows have"),
        (["?"], "abc", "auto", "answer '?' names no option; it must be a letter"),
        (["A", 1.5], "xyz", "auto", ":2, column answer: answer 1.5 names no option; most rows have a letter"),
        (["A", "D"], "xyz", "letter", ":2, column answer: answer 'D' is outside the 3 options; with labels: letter"),
        ([0], "xyz", "number1", "answer 0 is outside the 3 options"),
        ([True], "xyz", "index0", "answer True is outside the 3 options"),
        (["x"], "xxy", "text", "answer 'x' is outside the 3 options; with labels: text it must be the text of exactly"),
        (["A", None], "xyz", "auto", ":2, column answer: the row has no key"),
        (["A", " "], "xyz", "letter", ":2, column answer: the row has no key"),
    ],
)
def test_answers_that_are_unclear(tmp_path: Path, answers: list[Any], choices: str, labels: str, message: str) -> None:
    path = lines(tmp_path / "t.jsonl", plain(*answers, choices=choices))
    with pytest.raises(ValueError) as error:
        load("table", path, columns={"labels": labels}, duplicates="report")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"quiz": "Q"}, "columns has no key 'quiz'; it has: question, answer"),
        ({"question": 3}, "columns.question is 3; it must be a column's name"),
        ({**MAP, "question": "frage"}, "t.jsonl:1, column frage: there is no column 'frage' (columns.question)"),
        ({**MAP, "subject": "topic"}, "there is no column 'topic' (columns.subject); the columns are Q, o1"),
        ({**MAP, "choices": ["o1", "o9"]}, "there is no column 'o9' (columns.choices)"),
        ({**MAP, "choices": ["o1"]}, "columns.choices is ['o1']; it must name 2 to 26 columns"),
        ({**MAP, "choices": ["o1", "o1"]}, "names a column twice"),
        ({**MAP, "choices": 3}, "columns.choices is 3"),
        ({**MAP, "choices": "area"}, "t.jsonl:1, column area: the choices are 'law'; they must be a list"),
        ({**MAP, "labels": "digits"}, "columns.labels is 'digits'; it must be one of auto, letter, number1, index0"),
        ({**MAP, "form": "option"}, "columns.form is 'option'"),
        ({"question": "Q", "answer": "key"}, "no column 'choices' and none A, B, ...; the columns are Q, o1"),
    ],
)
def test_maps_that_do_not_fit(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    path = lines(tmp_path / "t.jsonl", ROWS)
    with pytest.raises(ValueError) as error:
        load("table", path, columns=columns)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"choices": ["a"]}, "t.jsonl:2: there are 1 choices"),
        (
            {"choices": ["a", 0.5, "c"]},
            "t.jsonl:2, column choices: the value is 0.5; it must be text or a whole number",
        ),
        ({"choices": ["a", "", "c"]}, "t.jsonl:2, column choices: a choice is empty"),
        ({"choices": None}, "t.jsonl:2, column choices: the choices are None"),
        ({"question": ""}, "t.jsonl:2, column question: the question is empty"),
        ({"question": ["x"]}, "t.jsonl:2, column question: the value is ['x']"),
    ],
)
def test_a_malformed_row_names_line_and_column(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    good, bad = plain("A", "A")
    with pytest.raises(ValueError) as error:
        load("table", lines(tmp_path / "t.jsonl", [good, {**bad, **row}]))
    assert message in str(error.value)


def test_an_option_left_out_in_the_middle(tmp_path: Path) -> None:
    path = sheet(tmp_path / "t.csv", [{**ROWS[0], "o2": ""}], header=True)
    with pytest.raises(ValueError, match=r"t\.csv:2, column o2: a choice is empty"):
        load("table", path, columns=MAP)


def test_open_questions_are_asked_for_by_name(tmp_path: Path) -> None:
    path = lines(tmp_path / "t.jsonl", [{"question": "How many?", "answer": "1,080"}, {"question": "2?", "answer": 2}])
    with pytest.raises(ValueError, match="set that to null for open questions"):
        load("table", path)
    items = load("table", path, columns={"choices": None, "form": "number"})
    assert [(item.answer, item.form, item.choices) for item in items] == [("1080", "number", ()), ("2", "number", ())]
    words = load("table", path, columns={"choices": None})
    assert [(item.answer, item.form) for item in words] == [("1,080", "text"), ("2", "text")]
    path = lines(tmp_path / "t.jsonl", [{"question": "How many?", "answer": "few"}])
    with pytest.raises(ValueError, match=r":1, column answer: the answer is 'few'; it must be a number"):
        load("table", path, columns={"choices": None, "form": "number"})
    path = lines(tmp_path / "t.jsonl", [{"question": "How many?", "answer": " "}])
    with pytest.raises(ValueError, match=r":1, column answer: the answer is empty"):
        load("table", path, columns={"choices": None})


def test_splits_and_kinds_of_a_folder(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write_rows(tmp_path / "d", plain("A", "B", choices=(split, "b", "c")), form="snapshot", split=split)
    with pytest.raises(ValueError, match="has the splits test, train; name one as split"):
        load("table", tmp_path / "d")
    items = load("table", tmp_path / "d", split="train")
    assert {(item.choices[0], item.split, item.benchmark) for item in items} == {("train", "train", "d")}
    lines(tmp_path / "e" / "a.jsonl", plain("A"))
    sheet(tmp_path / "e" / "b.csv", ROWS, header=True)
    with pytest.raises(ValueError, match=r"several kinds \(\.csv, \.jsonl\); name one of the files"):
        load("table", tmp_path / "e")
    assert len(load("table", lines(tmp_path / "f.jsonl", [{**plain("A")[0], "split": "dev"}]), split="dev")) == 1
    (tmp_path / "empty.csv").write_text("question,A,B,answer\n")
    with pytest.raises(ValueError, match="has no items"):
        load("table", tmp_path / "empty.csv")


def test_a_csv_cell_may_hold_a_passage_of_a_book(tmp_path: Path) -> None:
    passage = "word " * 40_000
    path = tmp_path / "long.csv"
    path.write_text(f"context,question,A,B,answer\n{passage},q,a,b,B\n", encoding="utf-8")
    assert load("table", path)[0].context == passage
