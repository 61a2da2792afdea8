from __future__ import annotations

import json
import logging
import zipfile
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks import formats, load, read
from evaluation.benchmarks.reading import json_rows
from tests.evaluation.exam_driver import make_items


def row(i: int = 0, **changed: Any) -> dict[str, Any]:
    fields = {"question": f"What is {i}?", "choices": [f"a{i}", f"b{i}", f"c{i}"], "answer": "B", **changed}
    return {name: value for name, value in fields.items() if value is not None}


def write(folder: Path, *rows: dict[str, Any] | str, name: str = "mine.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows) + "\n", encoding="utf-8")
    return path


def test_formats() -> None:
    assert {"jsonl", "arc", "mmlu", "hellaswag", "ceval", "gsm8k", "bbh", "mt_bench", "table"} <= set(formats())
    with pytest.raises(ValueError, match=r"format 'jsonlines'.*jsonl, arc"):
        load("jsonlines", Path("x"))
    with pytest.raises(ValueError, match="'arc' needs a path"):
        load("arc")
    with pytest.raises(ValueError, match="no file or folder"):
        load("jsonl", Path("nowhere.jsonl"))
    with pytest.raises(ValueError, match="format 'arc' knows its own"):
        load("arc", Path("x"), columns={"question": "q"})


class TestOurRows:
    def test_a_row_becomes_an_item(self, tmp_path: Path) -> None:
        path = write(tmp_path, row(subject="physics", context="Read.", reason="So.", split="dev"), row(1))
        first, second = load("jsonl", path)
        assert (first.benchmark, first.split, first.subject) == ("mine", "dev", "physics")
        assert (first.question, first.choices, first.answer) == ("What is 0?", ("a0", "b0", "c0"), "B")
        assert (first.context, first.reason) == ("Read.", "So.")
        assert (second.split, second.subject, second.context) == ("", "", "")

    @pytest.mark.parametrize(
        ("answer", "letter"), [("A", "A"), ("C", "C"), (0, "A"), (2, "C"), ("b0", "B"), ("a0", "A")]
    )
    def test_keys_are_letters_indices_or_texts(self, tmp_path: Path, answer: Any, letter: str) -> None:
        assert load("jsonl", write(tmp_path, row(answer=answer)))[0].answer == letter

    def test_a_letter_that_is_also_an_option_must_mean_the_same(self, tmp_path: Path) -> None:
        assert load("jsonl", write(tmp_path, row(choices=["A", "B"], answer="B")))[0].answer == "B"
        with pytest.raises(ValueError, match="'A' could mean B and A"):
            load("jsonl", write(tmp_path, row(choices=["B", "A"], answer="A")))

    def test_items_come_back_as_they_were_written(self, tmp_path: Path) -> None:
        items = make_items(3)
        path = write(tmp_path, *(item.to_json() for item in items))
        assert load("jsonl", path) == items
        changed = {**items[0].to_json(), "question": "Another?"}
        with pytest.raises(ValueError, match="the row was changed"):
            load("jsonl", write(tmp_path, changed))

    def test_ids_do_not_depend_on_row_order(self, tmp_path: Path) -> None:
        rows = [row(i) for i in range(5)]
        forward = load("jsonl", write(tmp_path, *rows))
        backward = load("jsonl", write(tmp_path, *reversed(rows)))
        assert [item.id for item in forward] == [item.id for item in reversed(backward)]

    def test_folders_lists_marks_and_separators(self, tmp_path: Path) -> None:
        folder = tmp_path / "exam"
        folder.mkdir()
        listed = folder / "a.json"
        listed.write_text("\ufeff" + json.dumps([row(0), row(1)], indent=1), encoding="utf-8")
        write(folder, "", json.dumps(row(2, question="A\u2028B\u0085C?"), ensure_ascii=False), name="b.jsonl")
        (folder / "notes.txt").write_text("not rows")
        items = load("jsonl", folder)
        assert [item.question for item in items] == ["What is 0?", "What is 1?", "A\u2028B\u0085C?"]
        assert {item.benchmark for item in items} == {"exam"}
        windows = tmp_path / "w.jsonl"
        windows.write_bytes(json.dumps(row(0)).encode() + b"\r\n" + json.dumps(row(1)).encode())
        assert len(load("jsonl", windows)) == 2

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            (row(answer=None), "the row has no key"),
            (row(answer="D"), "answer 'D' is outside the 3 options; it must be a letter A to C"),
            (row(answer=3), "answer 3 is outside"),
            (row(answer=-1), "answer -1 is outside"),
            (row(answer=True), "answer True is outside"),
            (row(answer=1.0), "answer 1.0 is outside"),
            (row(question=None), "field 'question' is missing; the row has choices, answer"),
            (row(question=" "), "the question is empty"),
            (row(question=3), "field 'question' is 3; it must be text"),
            (row(choices=None), "field 'choices' is None"),
            (row(choices="abc"), "field 'choices' is 'abc'"),
            (row(choices=["a"], answer=0), "there are 1 choices"),
            (row(choices=[], answer=0), "outside the 0 options"),
            (row(choices=["a", 2], answer=0), "choice 2 is a number; it must be text"),
            (row(choices=["a", " "], answer=0), "a choice is empty"),
            (row(choices=[str(i) for i in range(27)], answer=0), "there are 27 choices"),
            (row(question="\ud800?"), "half of a surrogate pair"),
            (row(subject=["x"]), "field 'subject'"),
            ('{"question": "cut', "not valid JSON"),
            ("[" * 100_000, "not valid JSON"),
            ("9" * 5_000, "not valid JSON"),
            ("[1]", "a row must be a JSON object, not a list"),
            ("null", "not null"),
            ('"text"', "not a text"),
        ],
    )
    def test_a_malformed_row_names_its_line(self, tmp_path: Path, bad: Any, message: str) -> None:
        path = write(tmp_path, row(1), row(2), bad)
        with pytest.raises(ValueError) as error:
            load("jsonl", path)
        assert f"{path}:3: " in str(error.value)
        assert message in str(error.value)

    def test_an_index_can_name_a_repeated_option(self, tmp_path: Path) -> None:
        path = write(tmp_path, row(choices=["x", "x"], answer="x"))
        with pytest.raises(ValueError, match="could mean A and B; write an index"):
            load("jsonl", path)

    def test_bytes_that_are_not_utf8_name_their_line(self, tmp_path: Path) -> None:
        path = tmp_path / "latin.jsonl"
        path.write_bytes(json.dumps(row()).encode() + b'\n{"question": "caf\xe9"}\n')
        with pytest.raises(ValueError, match=r"latin.jsonl:2: byte 0xe9 is not UTF-8; .*iconv"):
            load("jsonl", path)

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            ('[\n{"a": 1}\n{"b": 2}]', 3, "a comma or ] is missing"),
            ('[{"a": 1},\n\n3]', 3, "must be a JSON object, not a number"),
            ("[\n{]", 2, "not valid JSON"),
            ("[] x", 1, "more text after"),
            ("[", 1, "not valid JSON"),
        ],
    )
    def test_a_list_names_lines_too(self, tmp_path: Path, text: str, line: int, message: str) -> None:
        path = tmp_path / "list.json"
        path.write_text(text)
        with pytest.raises(ValueError) as error:
            list(json_rows(path))
        assert f"list.json:{line}: " in str(error.value)
        assert message in str(error.value)

    def test_the_rows_of_a_list_know_their_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "list.json"
        path.write_text('\n[{"a": 1}, {"a":\n2}\n,\n{"a": 3}\n]\n')
        assert [row.place.line for row in json_rows(path)] == [2, 2, 5]

    def test_empty_benchmarks(self, tmp_path: Path) -> None:
        for text in ("", "\n\n", "[]"):
            path = tmp_path / "none.json"
            path.write_text(text)
            with pytest.raises(ValueError, match=r"none.json\) has no items"):
                load("jsonl", path)
        (tmp_path / "dir").mkdir()
        with pytest.raises(ValueError, match=r"has no file ending in \.jsonl or \.json; it has: nothing"):
            load("jsonl", tmp_path / "dir")

    def test_limit(self, tmp_path: Path) -> None:
        path = write(tmp_path, *(row(i) for i in range(5)))
        assert [item.question for item in load("jsonl", path, limit=2)] == ["What is 0?", "What is 1?"]
        assert len(load("jsonl", path, limit=50)) == 5
        for limit in (0, -3):
            with pytest.raises(ValueError, match=f"limit is {limit}"):
                load("jsonl", path, limit=limit)

    def test_splits(self, tmp_path: Path) -> None:
        path = write(tmp_path, row(0, split="train"), row(1, split="test"), row(2))
        assert [item.question for item in load("jsonl", path, split="test")] == ["What is 1?", "What is 2?"]
        named = write(tmp_path, row(0), name="exam_validation.jsonl")
        assert load("jsonl", named)[0].split == "val"
        with pytest.raises(ValueError, match="no split 'test'; it has: val"):
            load("jsonl", named, split="test")

    def test_duplicates_and_repeated_options(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        path = write(tmp_path, row(0), row(1), row(0), row(2, choices=["x", "y", "x "]), row(0))
        with pytest.raises(ValueError) as error:
            load("jsonl", path)
        for part in (
            "2 duplicate items and 1 items with",
            f"{path}:3 repeats the item of {path}:1",
            "duplicates: report",
        ):
            assert part in str(error.value)
        assert f"{path}:4 has the option 'x ' twice" in str(error.value)
        with caplog.at_level(logging.WARNING):
            items = load("jsonl", path, duplicates="report")
        assert [item.question for item in items] == ["What is 0?", "What is 1?", "What is 2?"]
        assert "2 copies left out: " in caplog.text
        assert "1 items with repeated options kept: " in caplog.text
        benchmark = read("jsonl", path, duplicates="report")
        assert (len(benchmark.duplicates), len(benchmark.repeated_options)) == (2, 1)
        with pytest.raises(ValueError, match="duplicates is 'ignore'"):
            read("jsonl", path, duplicates="ignore")  # type: ignore[arg-type]


NESTED: dict[str, Any] = {
    "id": "M1",
    "question": {"stem": "Why?", "choices": [{"text": f"t{i}", "label": label} for i, label in enumerate("ABC")]},
    "answerKey": "C",
}
HUGGING_FACE: dict[str, Any] = {
    "id": "M2",
    "question": "Why so?",
    "choices": {"text": ["p", "q", "r", "s", "t"], "label": ["1", "2", "3", "4", "5"]},
    "answerKey": "5",
}
FLAT: dict[str, Any] = {"question": "Why not?", "choices": ["p", "q", "r", "s"], "answer": 1, "answerKey": "B"}


class TestArc:
    def test_all_three_spellings(self, tmp_path: Path) -> None:
        path = write(tmp_path, NESTED, HUGGING_FACE, FLAT, name="ARC-Challenge-Test.jsonl")
        nested, hugging, flat = load("arc", path)
        assert (nested.question, nested.choices, nested.answer) == ("Why?", ("t0", "t1", "t2"), "C")
        assert (hugging.choices[4], hugging.answer, len(hugging.choices)) == ("t", "E", 5)
        assert (flat.question, flat.answer, flat.split, flat.benchmark) == ("Why not?", "B", "test", "arc")

    def test_one_item_has_one_id_in_every_spelling(self, tmp_path: Path) -> None:
        flat = {"question": "Why?", "choices": ["t0", "t1", "t2"], "answerKey": "3"}
        ids = {load("arc", write(tmp_path, spelling))[0].id for spelling in (NESTED, flat)}
        assert len(ids) == 1

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ({**FLAT, "answerKey": "E"}, "the key is 'E'; it must be one of A, B, C, D"),
            ({**FLAT, "answerKey": "A"}, "'answerKey' 'A' is choice 0, but 'answer' is 1"),
            ({**FLAT, "answer": 4, "answerKey": "B"}, "'answer' is 4; it must be an index from 0 to 3"),
            ({"question": "q", "choices": ["a", "b"]}, "no key"),
            ({**HUGGING_FACE, "answerKey": ""}, "no key"),
            ({**HUGGING_FACE, "answerKey": "A"}, "the key is 'A'; it must be one of 1, 2, 3, 4, 5"),
            ({**HUGGING_FACE, "choices": {"text": ["a", "b"], "label": ["A"]}}, "two lists of one length"),
            ({**HUGGING_FACE, "choices": {"text": ["a", "b"], "label": ["A", "A"]}}, "repeat one"),
            ({**HUGGING_FACE, "choices": 7}, "field 'choices' is 7"),
            ({**FLAT, "choices": [{"text": "a"}, {"label": "B"}]}, "fields 'text' and 'label'"),
            ({"question": {"choices": []}, "answerKey": "A"}, "field 'question.stem'"),
        ],
    )
    def test_a_malformed_row_names_its_line(self, tmp_path: Path, bad: Any, message: str) -> None:
        path = write(tmp_path, NESTED, bad)
        with pytest.raises(ValueError) as error:
            load("arc", path)
        assert f"{path}:2: " in str(error.value)
        assert message in str(error.value)

    def test_public_files(self, public_data: Path) -> None:
        folder = public_data / "arc"
        test = read("arc", folder / "ARC-Challenge-Test.jsonl")
        assert len(test.items) == 1172
        assert {len(item.choices) for item in test.items} == {3, 4, 5}
        train = read("arc", folder / "ARC-Challenge-Train.jsonl", duplicates="report")
        assert len(train.items) + len(train.duplicates) == 1119
        assert {item.split for item in train.items} == {"train"}


class TestMMLU:
    def folder(self, root: Path) -> Path:
        for split in ("dev", "val", "test"):
            (root / "mmlu" / split).mkdir(parents=True)
            path = root / "mmlu" / split / f"high_school_art_{split}.csv"
            path.write_bytes(b'"What, is ""it""?",a,b,c,d,B\r\n"Two\nlines?",a,b,c,d,D\n')
        return root / "mmlu"

    def test_folder_zip_and_single_file(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path)
        items = load("mmlu", folder)
        assert [item.question for item in items] == ['What, is "it"?', "Two\nlines?"]
        assert [item.answer for item in items] == ["B", "D"]
        assert {(item.subject, item.split) for item in items} == {("high_school_art", "test")}
        assert {item.split for item in load("mmlu", folder, split="dev")} == {"dev"}
        archive = tmp_path / "mmlu.zip"
        with zipfile.ZipFile(archive, "w") as file:
            for path in sorted(folder.rglob("*.csv")):
                file.write(path, f"data/{path.relative_to(folder)}")
        assert load("mmlu", archive) == items
        assert load("mmlu", folder / "test" / "high_school_art_test.csv") == items

    @pytest.mark.parametrize(
        ("text", "where", "message"),
        [
            ("q,a,b,c,d\n", ":1, column 5: ", "there are 5 columns"),
            ("q,a,b,c,d,A\nq,a,b,c,d,A,x\n", ":2, column 7: ", "there are 7 columns"),
            ("q,a,b,c,d,A\nr,a,b,c,d,E\n", ":2, column 6: ", "the key is 'E'; it must be one of A, B, C, D"),
            ("q,a,b,c,d,\n", ":1, column 6: ", "no key"),
            ('"q\nr",a,b,c,d,A\nr,a,,c,d,A\n', ":3, column 3: ", "a choice is empty"),
            (",a,b,c,d,A\n", ":1, column 1: ", "the question is empty"),
            ('q,a,b,c,d,A\n"q"x,a,b,c,d,A\n', ":2: ", "not valid CSV"),
        ],
    )
    def test_a_malformed_row_names_line_and_column(self, tmp_path: Path, text: str, where: str, message: str) -> None:
        path = tmp_path / "art_test.csv"
        path.write_text(text)
        with pytest.raises(ValueError) as error:
            load("mmlu", path)
        assert f"{path}{where}" in str(error.value)
        assert message in str(error.value)

    def test_paths_and_splits_that_are_not_there(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path)
        with pytest.raises(ValueError, match="no split 'train'; it has dev, val, test"):
            load("mmlu", folder, split="train")
        with pytest.raises(ValueError, match="is the split 'test' by its name, not 'dev'"):
            load("mmlu", folder / "test" / "high_school_art_test.csv", split="dev")
        with pytest.raises(ValueError, match=r"has no file test/<subject>_test\.csv"):
            load("mmlu", tmp_path)
        with pytest.raises(ValueError, match="no file or folder"):
            load("mmlu", tmp_path / "nothing")

    def test_a_damaged_or_locked_zip_is_named(self, tmp_path: Path) -> None:
        good, bad = tmp_path / "good.zip", tmp_path / "bad.zip"
        with zipfile.ZipFile(good, "w") as file:
            file.writestr("test/art_test.csv", "q,1,2,3,4,A\n")
        data = bytearray(good.read_bytes())
        data[data.find(b"q,1,2")] = ord("z")
        bad.write_bytes(data)
        with pytest.raises(ValueError, match=r"bad.zip/test/art_test.csv: the zip file is damaged .*CRC"):
            load("mmlu", bad)
        data = bytearray(good.read_bytes())
        for flags in (6, data.find(b"PK\x01\x02") + 8):
            data[flags] |= 1
        bad.write_bytes(data)
        with pytest.raises(ValueError, match=r"bad.zip/test/art_test.csv: can't be unpacked .*encrypted"):
            load("mmlu", bad)

    def test_public_files(self, public_data: Path) -> None:
        path = public_data / "mmlu" / "mmlu.zip"
        test = read("mmlu", path, duplicates="report")
        assert len(test.items) + len(test.duplicates) == 14042
        assert len({item.subject for item in test.items}) == 57
        # The published data really have these; that is why they can be reported instead of refused.
        assert (len(test.duplicates), len(test.repeated_options)) == (105, 9)
        with pytest.raises(ValueError, match="105 duplicate items and 9 items with repeated options"):
            load("mmlu", path)
