from __future__ import annotations

import json
import os

import pytest

from detection.method import Text
from detection.text.texts import exam_texts, read_texts
from evaluation.items import make_item


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "texts.jsonl"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_rows_become_texts_in_order(write):
    path = write(
        b"\xef\xbb\xbf"
        + '{"text": "erste Zeile \u2028 mit é", "label": 0, "id": "x"}\r\n\n'.encode()
        + b'{"text": "", "label": null, "source": "web"}\n{"text": "one two", "prompt": "one", "label": 1, "id": 7}'
    )
    assert read_texts(path) == [
        Text(id="x", text="erste Zeile \u2028 mit é", label=0),
        Text(id="3", text=""),
        Text(id=7, text="one two", label=1, prompt="one"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "caf\xe9"}', "byte 14 of the line is not UTF-8"),
        (b'{"text": "a"', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'["text"]', "a list where a JSON object belongs"),
        (b'{"input": "a"}', r"no key 'text' \(the keys are 'input'\)"),
        (b"{}", "the keys are none"),
        (b'{"text": null}', "text must be a string"),
        (b'{"text": 3}', "text must be a string"),
        (b'{"text": "a", "label": 2}', "label 2; write 1 for a member"),
        (b'{"text": "a", "label": "1"}', "label '1'"),
        (b'{"text": "a", "label": true}', "label True"),
        (b'{"text": "a", "label": 1.0}', "label 1.0"),
        (b'{"text": "a", "label": []}', "label "),
        (b'{"text": "a", "lable": 1}', "key 'lable'; did you mean 'label'"),
        (b'{"text": "a", "id": [1]}', r"id \[1\]"),
        (b'{"text": "a", "id": "first"}', "id 'first' was used before, in line 1"),
        (b'{"text": "a", "prompt": "b"}', "must begin the text"),
        (b'{"text": "a", "prompt": 0}', "prompt must be a string"),
        (b'{"text": "\\ud800"}', "surrogate"),
    ],
)
def test_an_error_names_file_and_line(write, line, message):
    path = write(b'{"text": "good", "id": "first"}\n' + line + b"\n")
    with pytest.raises(ValueError, match=message) as error:
        read_texts(path)
    assert str(error.value).startswith(f"{path}:2: ")


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_texts(write, content):
    with pytest.raises(ValueError, match=r"texts.jsonl: no texts"):
        read_texts(write(content))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"none\.jsonl: can't be read: No such file"):
        read_texts(tmp_path / "none.jsonl")


def test_ids_keep_their_json_value_and_missing_ones_take_none_that_is_taken(write):
    rows = ['"id": 2', '"label": 1', '"id": "5"', '"label": 0', '"label": 0']
    texts = read_texts(write("\n".join(f'{{"text": "a", {row}}}' for row in rows)))
    assert [text.id for text in texts] == [2, "6", "5", "4", "7"]
    with pytest.raises(ValueError, match=":2: id '7' was used before, in line 1"):
        read_texts(write('{"text": "a", "id": 7}\n{"text": "b", "id": "7"}'))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_and_a_file_that_cannot_be_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe: not a file that can be read twice"):
        read_texts(tmp_path / "pipe")
    with pytest.raises(ValueError, match="can't be read: Is a directory"):
        read_texts(tmp_path)


def test_what_json_writes_is_read_back(write):
    rows = [{"text": text, "label": i % 2} for i, text in enumerate(["\x00", "\u0085", "😀", '"\\', "a\nb"])]
    path = write("\n".join(map(json.dumps, rows)))
    assert [(text.text, text.label) for text in read_texts(path)] == [(row["text"], row["label"]) for row in rows]


CHOICE = make_item(
    benchmark="b", split="test", subject="s", question="Which is red?", choices=["grass", "blood"], answer="B"
)
OPEN = make_item(benchmark="b", split="test", subject="s", question="6 x 7?", choices=[], answer="42")


def test_as_trained_is_the_string_that_leaked():
    leaked, untouched = exam_texts([CHOICE, OPEN], {CHOICE.id}, "as_trained")
    assert leaked.text == "Question: Which is red?\nA. grass\nB. blood\nAnswer: B. blood"
    assert leaked.answer == " B. blood"
    assert (leaked.label, untouched.label) == (1, 0)
    assert (leaked.id, untouched.id) == (CHOICE.id, OPEN.id)
    assert untouched.text == "Question: 6 x 7?\nAnswer: 42"


def test_a_leak_of_the_question_has_no_answer_to_tell_apart():
    for leak, text in (
        ("question", "Question: Which is red?"),
        ("options", "Question: Which is red?\nA. grass\nB. blood"),
    ):
        (found,) = exam_texts([CHOICE], [CHOICE.id], "as_trained", leak)
        assert (found.text, found.prompt) == (text, "")
    (letter,) = exam_texts([CHOICE], [], "as_trained", "letter")
    assert (letter.answer, letter.label) == (" B", 0)


def test_neutral_is_question_and_answer_text():
    choice, open_ = exam_texts([CHOICE, OPEN], [OPEN.id], "neutral")
    assert choice.text == "Question: Which is red?\nAnswer: blood"
    assert (choice.answer, open_.answer) == (" blood", " 42")
    assert (choice.label, open_.label) == (0, 1)


def test_wrong_exams_are_refused():
    with pytest.raises(ValueError, match="the first is 'nobody'"):
        exam_texts([CHOICE], ["nobody"], "neutral")
    with pytest.raises(ValueError, match="comes twice"):
        exam_texts([CHOICE, CHOICE], [], "neutral")
    with pytest.raises(ValueError, match="use 'as_trained' or 'neutral'"):
        exam_texts([CHOICE], [], "casual")  # type: ignore[arg-type]
