"""Conversations out of records, the draw, the sheet there and back, and the page in a real browser."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation.human_rating.conversations import Conversation, conversations
from evaluation.human_rating.page import page
from evaluation.human_rating.sampling import sample
from evaluation.human_rating.sheet import (
    YES_NO,
    check_annotators,
    defused,
    key_rows,
    read_columns,
    read_sheets,
    write_sheet,
)
from evaluation.items import Item
from tests.fixtures.chromium import Visit, started

Write = Callable[[str, str], Path]
HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror="document.title=1">&amp;\u2028{{ 7 * 7 }}'


def made(candidate: str = "m", question: str = "q", reply: str = "r", benchmark: str = "b") -> Conversation:
    return Conversation(benchmark=benchmark, candidate=candidate, part="reply", question=question, reply=reply)


def read(record: dict[str, Any], *items: Item) -> list[Conversation]:
    return list(conversations(record, candidate="m", source="f:1", items={item.id: item for item in items}))


def test_an_interview_gives_its_first_answer_and_its_first_round(item: Item) -> None:
    mark = {"comment": "c", "score": 3}
    record = {
        "item_id": item.id,
        "first_answer": {"text": "B. A lens", "letter": "B", "correct": True},
        "rounds": [
            {"question": "Why?", "reply": "It bends.", "verdict": {"accuracy": mark, "stop": False}, "overall": 2},
            {"question": "And then?", "reply": "No.", "verdict": None, "overall": None},
        ],
        "stop_reason": "rounds",
    }
    answer, turn = read(record, item)
    assert (answer.part, answer.reply, answer.reference) == ("answer", "B. A lens", "B. A lens")
    assert answer.question.startswith("Question: What bends light?\nA. A mirror")
    assert answer.scores == {"answer_correct": 1}
    assert (turn.part, turn.question, turn.reply) == ("round", "Why?", "It bends.")
    assert turn.context.endswith("\n\nB. A lens")
    assert turn.scores == {"kieval_accuracy": 3, "kieval_overall": 2}
    assert "SECRET" not in answer.context + turn.context
    assert {answer.benchmark, answer.candidate} == {"t", "m"}
    # without the exam's items the first answer has no question
    assert [one.part for one in read(record)] == ["round"]


def test_what_did_not_fit_is_not_rated(item: Item) -> None:
    first = {"text": "", "letter": None, "correct": None}
    record = {"item_id": item.id, "first_answer": first, "rounds": [], "stop_reason": "context"}
    assert read(record, item) == []
    # an empty answer is an answer
    assert [one.reply for one in read({**record, "stop_reason": "empty_response"}, item)] == [""]
    turn = {"question": "q", "reply": "", "finish_reason": "unasked", "rating": None}
    assert read({"item_id": item.id, "turns": [turn]}, item) == []


def test_other_records(item: Item) -> None:
    static = {"item_id": item.id, "mode": "generate", "correct": False, "answer": "B", "reply": "A wall"}
    (found,) = read(static, item)
    assert (found.reply, found.reference, found.scores) == ("A wall", "B. A lens", {"correct": 0})
    assert read({"item_id": item.id, "mode": "letter", "correct": True, "answer": "B", "prediction": "B"}, item) == []
    turns = [{"question": "q1", "reply": "r1", "rating": 7, "finish_reason": "stop"}, {"question": "q2", "reply": "r2"}]
    (found,) = read({"item_id": "x", "subject": "writing", "turns": turns})
    assert (found.question, found.reply, found.scores, found.benchmark) == ("q1", "r1", {"rating": 7}, "writing")
    (found,) = read({"id": 7, "model": "other", "prompt": "p", "response": "s", "reference": "t", "score": 0.5})
    assert (found.question, found.reply, found.reference, found.candidate, found.item_id) == (
        "p",
        "s",
        "t",
        "other",
        "7",
    )
    assert found.scores == {"score": 0.5}
    assert read({"anything": 1}) == []
    assert read({"rounds": [], "first_answer": None}) == []


def test_the_draw_is_even_over_benchmarks_and_candidates() -> None:
    found = [made("a", f"q{i}") for i in range(50)] + [made("b", f"q{i}") for i in range(3)]
    found += [made("a", f"q{i}", benchmark="c") for i in range(50)]
    chosen = sample(found, 20, seed=1)
    counts = Counter((c.benchmark, c.candidate) for c in chosen.values())
    assert counts["b", "b"] == 3
    assert sorted([counts["b", "a"], counts["c", "a"]]) == [8, 9]
    assert sample(found[::-1], 20, seed=1) == chosen
    assert list(sample(found, 20, seed=2).values()) != list(chosen.values())
    assert len(sample([*found, *found], 1000, seed=1)) == 103
    # neither ids nor order tell the candidate
    assert [c.candidate for c in chosen.values()] != sorted(c.candidate for c in chosen.values())
    assert all(re.fullmatch(r"c[0-9a-f]{6}-\d{3}", name) for name in chosen)


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="no conversation"):
        sample([], 5, seed=0)
    with pytest.raises(ValueError, match="n is 0"):
        sample([made()], 0, seed=0)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "＝1", "- a list"])
def test_no_cell_is_a_formula(text: str) -> None:
    text = defused(text)
    assert text.startswith("'")
    # neither in a program that takes ; or a tab for the separator and the quotes for text
    assert not any(cell.lstrip(" \"'").startswith(tuple("=+-@")) and cell[0] != "'" for cell in _cells(text))


def _cells(text: str) -> list[str]:
    return [cell for cell in re.split(r"[,;\t|\r\n\v\f\x1c-\x1e\x85\u2028\u2029]", text) if cell]


@pytest.mark.parametrize("mark", [*",;\t|\r\n\v\f\u2028"])
@pytest.mark.parametrize("start", ["=1+1", '"=1+1"', "  +cmd", "@SUM(1)", "-1", "＝1"])
def test_no_part_of_a_cell_is_a_formula_in_another_country(mark: str, start: str) -> None:
    assert defused(f"fine{mark}{start}") == f"fine{mark}'{start}"
    text = write_sheet({"x": made(reply=f"fine{mark}{start}")}, ["anna"])
    row = next(csv.reader(io.StringIO(text.split("\r\n", 1)[1], newline="")))
    assert row[3] == f"fine{mark}'{start}"


def test_plain_words_are_left_as_they_are() -> None:
    assert defused("a = b; c - d, 1 + 1 @ home\n| x - y") == "a = b; c - d, 1 + 1 @ home\n| x - y"


def test_the_sheet_is_csv_with_blank_ratings() -> None:
    chosen = {"x-001": made(question='=cmd|" /C calc"!A0', reply='a, "b"\nc\0'), "x-002": made(reply="1 - 2 = -1")}
    text = write_sheet(chosen, ["rater_1", "rater_2"])
    assert text.startswith("\ufeff")
    rows = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    assert rows == [
        ["id", "context", "question", "reply", "rater_1", "rater_2"],
        ["x-001", "", '\'=cmd|" /C calc"!A0', 'a, "b"\nc\ufffd', "", ""],
        ["x-002", "", "q", "1 - 2 = -1", "", ""],
    ]
    assert "candidate" not in text
    assert key_rows(chosen)[0]["reply"] == 'a, "b"\nc\0'


IDS = ["x-1", "x-2", "x-3"]


def test_sheets_come_back_as_spreadsheets_save_them(write_text: Write) -> None:
    a = write_text("a.csv", '\ufeffid;question;reply;anna\r\nx-1;q;r;4\r\nx-2;q;"r\r\ns"; 1 \r\nx-3;q;r;\r\n;;;\r\n')
    b = write_text("b.csv", '"id","ben"\r\n"x-1",2\r\n"x-2",\r\n"x-3",3\r\n')
    c = write_text("c.json", json.dumps({"annotator": "cleo", "ratings": {"x-2": 1}}))
    assert read_sheets([a, b, c], IDS) == {
        "anna": {"x-1": 4, "x-2": 1},
        "ben": {"x-1": 2, "x-3": 3},
        "cleo": {"x-2": 1},
    }
    # one annotator on two sheets
    d = write_text("d.csv", "id,ben\nx-2,2\nx-3,3\n")
    assert read_sheets([b, d], IDS)["ben"] == {"x-1": 2, "x-2": 2, "x-3": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,anna\nx-1,5\n", r"a\.csv:2, column anna: '5' is no rating; it must be 1, 2, 3, 4 or blank"),
        ("id,anna\nx-1,1\n\nx-2,2.5\n", r"a\.csv:4, column anna: '2\.5'"),
        ("id,anna\nx-1,good\n", r"'good' is no rating"),
        ("id,anna\nx-9,1\n", r"a\.csv:2, column id: the key has no id 'x-9'; is it the key of another export"),
        ("id,anna\nx-1,1\nx-1,1\n", r"a\.csv:3, column id: the id 'x-1' is repeated; it stands at .*a\.csv:2"),
        ("id,anna\nx-1,1,2\n", "the row has 3 cells, but the header names 2 columns"),
        ("id,anna,anna\nx-1,1,2\n", "column name 'anna' is repeated"),
        ("id,,anna\nx-1,1,2\n", "column name '' is blank"),
        ("nr,anna\nx-1,1\n", "there is no column 'id'; the columns are nr, anna"),
        ("id,question\nx-1,q\n", "no column with ratings"),
        ("\n", "is empty"),
        ('id,anna\nx-1,"1\n', "not valid CSV"),
    ],
)
def test_sheets_that_are_refused(write_text: Write, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_sheets([write_text("a.csv", text)], IDS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"annotator": "a", "ratings": {"x-1": true}}', "True is no rating"),
        ('{"annotator": "a", "ratings": {"x-1": 0}}', "0 is no rating"),
        ('{"annotator": "", "ratings": {}}', "it must be an object"),
        ("[1]", "it must be an object"),
        ("{", "not valid JSON"),
    ],
)
def test_downloads_that_are_refused(write_text: Write, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_sheets([write_text("a.json", text)], IDS)


def test_two_annotators_under_one_name(write_text: Write) -> None:
    a, b = write_text("a.csv", "id,rater_1\nx-1,1\n"), write_text("b.csv", "id,rater_1\nx-1,2\n")
    with pytest.raises(ValueError, match=r"b\.csv:2, column rater_1: 'rater_1' rates x-1 2 here and 1 at .*a\.csv:2"):
        read_sheets([a, b], IDS)


@pytest.mark.parametrize("name", ["", " ", "id", "=x", "'x"])
def test_names_of_annotators(name: str) -> None:
    with pytest.raises(ValueError, match="annotator"):
        check_annotators([name])


def test_the_page_holds_texts_as_data_and_asks_for_nothing() -> None:
    text = page({"x-001": made(question=HOSTILE, reply=HOSTILE)})
    assert HOSTILE not in text
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    assert "<img" not in text
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|src=[\"']?(?!x)|@import|url\(", text)
    (data,) = re.findall(r'<script type="application/json" id="rows">(.*?)</script>', text, flags=re.DOTALL)
    assert json.loads(data)[0]["reply"] == HOSTILE


DRIVER = """() => {
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const out = {};
press("3"); press("5"); press("ArrowRight"); press("1"); press("ArrowLeft"); press("0");
out.nameless = annotator();
document.getElementById("annotator").value = 'An "A" na';
out.csv = asCsv(annotator());
out.json = asJson(annotator());
out.images = document.images.length;
return out;
}"""


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    yield from started()


def test_the_page_in_a_browser(chrome: Any, tmp_path: Path, write_text: Write) -> None:
    chosen = {f"x-00{number}": made(question=f"q{number}", reply=HOSTILE) for number in (1, 2, 3)}
    file = write_text("rate.html", page(chosen))
    visit = Visit(chrome, file)
    shown = visit.open(file)
    assert shown.inner_text("#count") == "0 of 3 rated"
    found = shown.evaluate(DRIVER)
    assert shown.title() == "Rating"
    assert found["images"] == 0
    assert shown.text_content("#reply") == HOSTILE
    assert shown.inner_text("#count") == "2 of 3 rated"  # the first and the third; the one taken back was not rated
    assert shown.inner_text("#place") == "x-002 (2 of 3)"
    assert found["nameless"] is None
    csv_file, json_file = write_text("a.csv", found["csv"]), write_text("a.json", found["json"])
    expected = {'An "A" na': {"x-001": 3, "x-003": 1}}
    assert read_sheets([csv_file], list(chosen)) == expected
    assert read_sheets([json_file], list(chosen)) == expected
    shown.close()
    again = visit.context.new_page()
    again.goto(file.as_uri())
    assert again.inner_text("#count") == "2 of 3 rated"  # kept by the browser
    visit.close()


def test_a_scale_of_words(write_text: Write) -> None:
    sheet = write_text("a.csv", "id,same (ann),note\nx-1, YES ,why\nx-2,,\nx-3,no,\n")
    found = read_columns([sheet], IDS, YES_NO, lambda column: column.startswith("same"))
    assert found == {"same (ann)": {"x-1": True, "x-3": False}}
    with pytest.raises(ValueError, match=r"a\.csv:2, column note: 'why' is no answer; it must be yes, no or blank"):
        read_columns([sheet], IDS, YES_NO, lambda column: column == "note")
    with pytest.raises(ValueError, match="there is no column with answers; the columns are id, same"):
        read_columns([sheet], IDS, YES_NO, lambda column: column == "right")
    assert YES_NO.also(same=True).values["same"] is True
