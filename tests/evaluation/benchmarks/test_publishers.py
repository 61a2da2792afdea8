"""Each benchmark in its publisher's form and in Hugging Face's: what is read, and that the ids are the same."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evaluation.benchmarks import load
from evaluation.items import Item
from tests.evaluation.benchmarks.huggingface import FORMS, Form, Rows, write_rows

ARC = [
    {"id": "M1", "question": "Why?", "choices": {"text": ["p", "q", "r"], "label": ["A", "B", "C"]}, "answerKey": "C"},
    {"id": "M2", "question": "How?", "choices": {"text": ["1", "2"], "label": ["1", "2"]}, "answerKey": "1"},
]
ARC_PUBLISHED = [
    {
        "id": row["id"],
        "question": {
            "stem": row["question"],
            "choices": [
                {"text": text, "label": label}
                for text, label in zip(row["choices"]["text"], row["choices"]["label"], strict=True)  # type: ignore[index]
            ],
        },
        "answerKey": row["answerKey"],
    }
    for row in ARC
]
HELLASWAG = [
    {
        "ind": 24 + i,
        "activity_label": "Roof shingle removal",
        "ctx_a": "A man is on a roof.",
        "ctx_b": "he",
        "ctx": f"A man is on a roof. he {i}",
        "endings": ["sings.", "falls.", "holds a tool.", "[title] sleeps."],
        "label": 2,
        "split": "val",
        "source_id": "video",
    }
    for i in range(2)
]
CEVAL = [
    {
        "id": i,
        "question": f"第{i}题____",
        "A": "甲",
        "B": "乙",
        "C": "丙",
        "D": "丁",
        "answer": "B",
        "explanation": " 因为 ",
    }
    for i in range(2)
]
GSM8K = [
    {"question": "Two and two?", "answer": "2+2=<<2+2=4>>4 eggs\nSo $<<4=4>>4.\n#### 4"},
    {"question": "A lot?", "answer": "Many.\n#### 1,080"},
]
BBH = [
    {"input": "Sort: List: b a", "target": "a b"},
    {"input": "Which?\nOptions:\n(A) x\n(B) y", "target": "(B)"},
]
MMLU = [{"question": f"What is {i}?", "subject": "art", "choices": ["a", "b", "c", "d"], "answer": i} for i in range(2)]
TURNS = [
    {"question_id": 81, "category": "writing", "turns": ["Write.", "Rewrite."]},
    {"question_id": 101, "category": "reasoning", "turns": ["Who?", "Why?"], "reference": ["Me.", ""]},
]


def lines(path: Path, rows: Rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def sheet(path: Path, rows: Rows, *, header: bool) -> Path:
    out = io.StringIO()
    writer = csv.writer(out)
    if header:
        writer.writerow(rows[0])
    writer.writerows(row.values() for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(out.getvalue(), encoding="utf-8")
    return path


class Case(NamedTuple):
    """A benchmark in its publisher's form and as rows for Hugging Face's."""

    published: Path
    rows: Rows
    config: str
    split: str


def case(format: str, root: Path) -> Case:
    if format == "arc":
        return Case(lines(root / "ARC-Challenge-Test.jsonl", ARC_PUBLISHED), ARC, "ARC-Challenge", "test")
    if format == "mmlu":
        plain: Rows = [
            dict(enumerate([row["question"], *row["choices"], "ABCD"[row["answer"]]]))  # type: ignore[misc,call-overload]
            for row in MMLU
        ]
        return Case(sheet(root / "test" / "art_test.csv", plain, header=False).parents[1], MMLU, "art", "test")
    if format == "hellaswag":
        hugging = [{**row, "label": str(row["label"])} for row in HELLASWAG]
        return Case(lines(root / "hellaswag_val.jsonl", HELLASWAG), hugging, "default", "val")
    if format == "ceval":
        return Case(sheet(root / "val" / "logic_val.csv", CEVAL, header=True).parents[1], CEVAL, "logic", "val")
    if format == "gsm8k":
        return Case(lines(root / "test.jsonl", GSM8K), GSM8K, "main", "test")
    if format == "bbh":
        (root / "mixed_task.json").write_text(json.dumps({"canary": "c", "examples": BBH}), encoding="utf-8")
        return Case(root / "mixed_task.json", BBH, "mixed_task", "test")
    hugging = [
        {
            "prompt_id": r["question_id"],
            "category": r["category"],
            "prompt": r["turns"],
            "reference": r.get("reference", []),
        }
        for r in TURNS
    ]
    return Case(lines(root / "question.jsonl", TURNS), hugging, "default", "train")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("format", ["arc", "mmlu", "hellaswag", "ceval", "gsm8k", "bbh", "mt_bench"])
def test_hugging_faces_forms_hold_the_same_items(tmp_path: Path, format: str, form: Form) -> None:
    (tmp_path / "published").mkdir()
    given = case(format, tmp_path / "published")
    published = load(format, given.published)
    path = write_rows(tmp_path / "hub", given.rows, form=form, split=given.split, config=given.config)
    items = load(format, path)
    assert len(items) == 2
    assert items == published


def first(format: str, root: Path) -> Item:
    return load(format, case(format, root).published)[0]


def test_what_each_format_reads(tmp_path: Path) -> None:
    arc = first("arc", tmp_path)
    assert (arc.question, arc.choices, arc.answer, arc.source_id) == ("Why?", ("p", "q", "r"), "C", "M1")
    hellaswag = first("hellaswag", tmp_path)
    assert (hellaswag.question, hellaswag.answer, hellaswag.subject) == (
        "A man is on a roof. he 0",
        "C",
        "Roof shingle removal",
    )
    assert (hellaswag.choices[3], hellaswag.split, hellaswag.source_id) == ("[title] sleeps.", "val", "24")
    ceval = first("ceval", tmp_path)
    assert (ceval.subject, ceval.split, ceval.choices) == ("logic", "val", ("甲", "乙", "丙", "丁"))
    assert (ceval.answer, ceval.reason, ceval.source_id) == ("B", "因为", "0")
    gsm8k, lot = load("gsm8k", case("gsm8k", tmp_path).published)
    assert (gsm8k.answer, gsm8k.form, gsm8k.choices, gsm8k.subject) == ("4", "number", (), "math")
    assert gsm8k.reason == "2+2=4 eggs\nSo $4."
    assert lot.answer == "1080"
    mmlu = first("mmlu", tmp_path)
    assert (mmlu.subject, mmlu.answer, mmlu.split) == ("art", "A", "test")


def test_the_form_of_a_bbh_answer(tmp_path: Path) -> None:
    tasks: Mapping[str, list[str]] = {"counting": ["8", "-10"], "mixed": ["8", "ten"], "choosing": ["(A)", "(B)"]}
    for task, targets in tasks.items():
        examples = [{"input": f"{task} {target}?", "target": target} for target in targets]
        (tmp_path / f"{task}.json").write_text(json.dumps({"canary": "c", "examples": examples}))
    found = [(item.subject, item.answer, item.form) for item in load("bbh", tmp_path)]
    assert found == [
        ("choosing", "(A)", "option"),
        ("choosing", "(B)", "option"),
        ("counting", "8", "number"),
        ("counting", "-10", "number"),
        ("mixed", "8", "text"),
        ("mixed", "ten", "text"),
    ]
    with pytest.raises(ValueError, match="has one split, 'test', not 'dev'"):
        load("bbh", tmp_path, split="dev")


class TestMTBench:
    def test_turns_and_own_references(self, tmp_path: Path) -> None:
        write, who = load("mt_bench", lines(tmp_path / "question.jsonl", TURNS))
        assert (write.question, write.followups, write.subject) == ("Write.", ("Rewrite.",), "writing")
        assert (write.answer, write.choices, write.split, write.references) == ("", (), "", ())
        assert (who.source_id, who.references) == ("101", ("Me.", ""))

    @pytest.mark.parametrize("name", ["reference_answer/gpt-4.jsonl", "reference_answer_gpt-4.jsonl"])
    def test_reference_answers_beside_the_questions(self, tmp_path: Path, name: str) -> None:
        home = tmp_path / "data" / "mt_bench"
        path = lines(home / "question.jsonl", TURNS)
        answer = {"question_id": 101, "model_id": "gpt-4", "choices": [{"index": 0, "turns": ["You.", "So."]}]}
        lines(home / name, [answer])
        for given in (path, home, tmp_path):
            write, who = load("mt_bench", given)
            assert (write.references, who.references) == ((), ("You.", "So."))
        lines(home / name, [answer, answer])
        with pytest.raises(ValueError, match=r"jsonl:2: question 101 has a reference answer at .*jsonl:1 already"):
            load("mt_bench", path)
        lines(home / name, [{**answer, "choices": [{"turns": ["One."]}]}])
        with pytest.raises(ValueError, match="1 reference answers to question 101, which has 2 turns"):
            load("mt_bench", path)
        lines(home / name, [{**answer, "choices": []}])
        with pytest.raises(ValueError, match=r":1: 'choices' is \[\]"):
            load("mt_bench", path)

    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ({"category": "c", "turns": ["t"]}, "field 'question_id' is missing"),
            ({"question_id": 1, "category": "c"}, "field 'turns' is None; it must be a list of texts"),
            ({"question_id": 1, "category": "c", "turns": []}, "there are no turns"),
            ({"question_id": 1, "category": "c", "turns": ["a", " "]}, "turn 2 is empty"),
            ({"question_id": 1, "turns": ["a"]}, "field 'category' is missing"),
            ({"question_id": 81, "category": "c", "turns": ["a"]}, "question_id 81 stands at"),
        ],
    )
    def test_a_malformed_row_names_its_line(self, tmp_path: Path, bad: dict[str, Any], message: str) -> None:
        path = lines(tmp_path / "question.jsonl", [TURNS[0], bad])
        with pytest.raises(ValueError) as error:
            load("mt_bench", path)
        assert f"{path}:2" in str(error.value)
        assert message in str(error.value)

    def test_it_has_no_splits(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="has no splits, so no split 'test'"):
            load("mt_bench", lines(tmp_path / "question.jsonl", TURNS), split="test")


class TestSplits:
    def test_the_default_of_several(self, tmp_path: Path) -> None:
        for name, number in (("train", 1), ("validation", 2), ("test", 3)):
            rows = [{"question": f"Number {number}?", "answer": f"#### {number}"}]
            write_rows(tmp_path, rows, form="snapshot", split=name)
        assert [item.answer for item in load("gsm8k", tmp_path)] == ["3"]
        for split, answer in (("train", "1"), ("val", "2")):
            (item,) = load("gsm8k", tmp_path, split=split)
            assert (item.answer, item.split) == (answer, split)
        with pytest.raises(ValueError, match="has no split 'dev'; it has: test, train, val"):
            load("gsm8k", tmp_path, split="dev")

    def test_one_split_needs_no_asking(self, tmp_path: Path) -> None:
        (item, _) = load("gsm8k", lines(tmp_path / "train.jsonl", GSM8K))
        assert item.split == "train"
        (item, _) = load("gsm8k", lines(tmp_path / "mine.jsonl", GSM8K), split="dev")
        assert item.split == "dev"

    def test_dev_and_val_are_one_in_arc_and_hellaswag(self, tmp_path: Path) -> None:
        lines(tmp_path / "ARC-Easy-Dev.jsonl", ARC)
        lines(tmp_path / "ARC-Easy-Test.jsonl", [{**ARC[0], "question": "Else?"}])
        for split in ("dev", "val"):
            assert {item.split for item in load("arc", tmp_path, split=split)} == {split}
        assert [item.question for item in load("arc", tmp_path)] == ["Else?"]
        rows = [{**HELLASWAG[0], "split": "dev"}, {**HELLASWAG[1], "split": "train"}]
        path = lines(tmp_path / "h" / "some.jsonl", rows)
        assert [item.split for item in load("hellaswag", path)] == ["val"]
        assert [item.split for item in load("hellaswag", path, split="dev")] == ["dev"]
        assert [item.split for item in load("hellaswag", path, split="train")] == ["train"]

    def test_keys_that_are_not_published(self, tmp_path: Path) -> None:
        val, test = CEVAL, [{k: v for k, v in row.items() if k not in ("answer", "explanation")} for row in CEVAL]
        sheet(tmp_path / "val" / "logic_val.csv", val, header=True)
        single = sheet(tmp_path / "test" / "logic_test.csv", test, header=True)
        assert {item.split for item in load("ceval", tmp_path)} == {"val"}
        for path, split in ((tmp_path, "test"), (single, None), (single, "test")):
            with pytest.raises(ValueError, match=r"split test are not published; use split: val"):
                load("ceval", path, split=split)
        hub = tmp_path / "hub"
        write_rows(hub, [{**row, "label": "", "split": "test"} for row in HELLASWAG], form="snapshot", split="test")
        write_rows(hub, [{**row, "label": "1"} for row in HELLASWAG], form="snapshot", split="val")
        assert {item.answer for item in load("hellaswag", hub)} == {"B"}
        with pytest.raises(ValueError, match=r"parquet, row 1: .*no label.*not published; use split: val"):
            load("hellaswag", hub, split="test")

    def test_two_exams_or_two_configurations_in_one_folder(self, tmp_path: Path) -> None:
        for config in ("ARC-Easy", "ARC-Challenge"):
            write_rows(tmp_path / "arc", ARC, form="snapshot", config=config)
        with pytest.raises(ValueError, match=r"holds both ARC-Challenge and ARC-Easy; name the folder"):
            load("arc", tmp_path / "arc")
        assert len(load("arc", tmp_path / "arc" / "ARC-Easy")) == 2
        for config in ("all", "art", "law"):
            write_rows(tmp_path / "mmlu", MMLU, form="snapshot", config=config)
        assert [item.subject for item in load("mmlu", tmp_path / "mmlu")] == ["art", "art"]
        for config in ("main", "socratic"):
            write_rows(tmp_path / "gsm8k", GSM8K, form="snapshot", config=config)
        assert len(load("gsm8k", tmp_path / "gsm8k")) == 2


def test_a_zip_of_sheets(tmp_path: Path) -> None:
    path = sheet(tmp_path / "val" / "logic_val.csv", CEVAL, header=True)
    archive = tmp_path / "ceval.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(path, "val/logic_val.csv")
    assert load("ceval", archive) == load("ceval", path)


def test_repeated_rows_are_reported_in_tables_too(tmp_path: Path) -> None:
    path = write_rows(tmp_path, [*GSM8K, GSM8K[0]], form="parquet")
    with pytest.raises(ValueError, match=r"parquet, row 3 repeats the item of .*parquet, row 1"):
        load("gsm8k", path)
    assert len(load("gsm8k", path, duplicates="report")) == 2


@pytest.mark.parametrize("format", ["arc", "mmlu", "hellaswag", "ceval", "gsm8k", "bbh", "mt_bench"])
def test_items_of_every_benchmark_come_back_from_our_own_rows(tmp_path: Path, format: str) -> None:
    (tmp_path / "published").mkdir()
    items = load(format, case(format, tmp_path / "published").published)
    assert load("jsonl", lines(tmp_path / "items.jsonl", [item.to_json() for item in items])) == items


def test_open_questions_of_our_own(tmp_path: Path) -> None:
    row = {"question": "How many?", "choices": [], "answer": "18", "form": "number"}
    (item,) = load("jsonl", lines(tmp_path / "t.jsonl", [row]))
    assert (item.answer, item.form, item.choices) == ("18", "number", ())
    for bad, message in (
        ({**row, "form": "digits"}, ":1: field 'form' is 'digits'; it must be one of text, number, option"),
        ({**row, "answer": ""}, ":1: the answer is empty"),
        ({**row, "followups": "x"}, ":1: field 'followups' is 'x'; it must be a list of texts"),
    ):
        with pytest.raises(ValueError) as error:
            load("jsonl", lines(tmp_path / "t.jsonl", [bad]))
        assert message in str(error.value)
