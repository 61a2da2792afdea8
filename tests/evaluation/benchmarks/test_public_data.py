"""The published files, where the machine has them: counts, subjects, and the same ids from Hugging Face's form."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks import load, read
from evaluation.benchmarks.splits import exemplars_for
from evaluation.extraction import extract_answer, is_right
from evaluation.formats import chat_answer
from evaluation.items import Item
from tests.evaluation.benchmarks.huggingface import Form, write_rows

CEVAL = (
    "computer_network",
    "high_school_chemistry",
    "ideological_and_moral_cultivation",
    "law",
    "logic",
    "modern_chinese_history",
)
BBH = {
    "boolean_expressions": "text",
    "date_understanding": "option",
    "formal_fallacies": "text",
    "object_counting": "number",
    "temporal_sequences": "option",
    "word_sorting": "text",
}


def there(folder: Path, *names: str) -> list[Path]:
    paths = [folder / name for name in names]
    for path in paths:
        if not path.exists():
            pytest.skip(f"no {path}")
    return paths


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ids(items: list[Item]) -> list[str]:
    return [item.id for item in items]


def test_arc(public_data: Path, tmp_path: Path) -> None:
    challenge, easy, empty = there(
        public_data / "arc",
        "ARC-Challenge-Test.jsonl",
        "ARC-Easy-Test-first400.jsonl",
        "ARC-Challenge-Dev-original-format-first60.jsonl",
    )
    assert len(load("arc", easy)) == 400
    items = load("arc", challenge)
    assert (len(items), items[0].source_id) == (1172, "Mercury_7175875")
    hugging = [
        {
            "id": row["id"],
            "question": row["question"],
            "choices": {"text": row["choices"], "label": list("ABCDE"[: len(row["choices"])])},
            "answerKey": "ABCDE"[row["answer"]],
        }
        for row in rows_of(challenge)
    ]
    assert load("arc", write_rows(tmp_path, hugging, form="dict", config="ARC-Challenge")) == items
    if empty.stat().st_size == 0:
        with pytest.raises(ValueError, match="has no items; the file is empty"):
            load("arc", empty)
    with pytest.raises(ValueError, match="holds both ARC-Challenge and ARC-Easy"):
        load("arc", public_data / "arc")


def test_hellaswag(public_data: Path, tmp_path: Path) -> None:
    (path,) = there(public_data / "hellaswag", "hellaswag-sample300.jsonl")
    items = load("hellaswag", path)
    assert len(items) == 300
    # The sample's publisher calls HellaSwag's val "dev", and leaves the activities out.
    assert {(item.split, item.subject, len(item.choices)) for item in items} == {("val", "", 4)}
    assert len({item.source_id for item in items}) == 300
    hugging = [{**row, "label": str(row["label"]), "split": "val"} for row in rows_of(path)]
    assert load("hellaswag", write_rows(tmp_path, hugging, form="snapshot", split="val")) == items


def test_gsm8k(public_data: Path, tmp_path: Path) -> None:
    test, train = there(public_data / "gsm8k", "test-first400.jsonl", "train-first300.jsonl")
    items = load("gsm8k", test.parent)
    assert len(items) == 400
    assert [item.answer for item in items[:4]] == ["18", "3", "70000", "540"]
    assert len(load("gsm8k", train.parent, split="train")) == 300
    assert not any("<<" in item.reason or "####" in item.reason for item in items)
    assert load("gsm8k", write_rows(tmp_path, rows_of(test), form="snapshot")) == items
    # The published solution is read as its own answer, with its mark or by the last number.
    published = [row["answer"] for row in rows_of(test)]
    assert all(is_right(extract_answer(text, item), item) for text, item in zip(published, items, strict=True))
    assert all(is_right(extract_answer(chat_answer(item), item), item) for item in items)


def test_bbh(public_data: Path, tmp_path: Path) -> None:
    there(public_data / "bbh", *(f"{task}.json" for task in BBH))
    items = load("bbh", public_data / "bbh")
    assert Counter((item.subject, item.form) for item in items) == dict.fromkeys(BBH.items(), 250)
    assert {item.answer for item in items if item.subject == "formal_fallacies"} == {"valid", "invalid"}
    forms: list[Form] = ["snapshot", "dict"]
    for form in forms:
        for task in BBH:
            examples = json.loads((public_data / "bbh" / f"{task}.json").read_text())["examples"]
            write_rows(tmp_path / form, examples, form=form, config=task)
        assert load("bbh", tmp_path / form) == items
    # Every key, said as a model would say it, is read as that key.
    for spoken in ("{}", "So the answer is {}.", "Answer: {}", "{}\n\nQuestion: next?\nAnswer: no"):
        for item in items:
            assert is_right(extract_answer(spoken.format(item.answer), item), item), (spoken, item)


def test_ceval(public_data: Path, tmp_path: Path) -> None:
    (path,) = there(public_data / "ceval", "ceval-5-subjects.zip")
    found = read("ceval", path, duplicates="report")
    assert Counter(item.subject for item in found.items) == dict(zip(CEVAL, (19, 19, 19, 24, 22, 23), strict=True))
    assert (len(found.duplicates), len(found.repeated_options)) == (0, 1)
    pool = load("ceval", path, split="dev")
    assert Counter(item.subject for item in pool) == dict.fromkeys(CEVAL, 5)
    assert all(item.reason for item in pool)
    for item in found.items:
        assert {shot.subject for shot in exemplars_for(item, pool, 5, 0)} == {item.subject}
    with pytest.raises(ValueError, match="split test are not published"):
        load("ceval", path, split="test")
    with zipfile.ZipFile(path) as archive:
        for subject in CEVAL:
            text = archive.read(f"val/{subject}_val.csv").decode()
            rows = [{**row, "id": int(row["id"])} for row in csv.DictReader(io.StringIO(text))]
            write_rows(tmp_path, rows, form="snapshot", split="val", config=subject)
    assert load("ceval", tmp_path, duplicates="report") == found.items


def test_mmlu(public_data: Path, tmp_path: Path) -> None:
    (path,) = there(public_data / "mmlu", "mmlu.zip")
    val = load("mmlu", path, split="val", duplicates="report")
    hugging = [
        {"question": i.question, "subject": i.subject, "choices": list(i.choices), "answer": "ABCD".index(i.answer)}
        for i in val
    ]
    assert ids(load("mmlu", write_rows(tmp_path, hugging, form="dict", split="val"), duplicates="report")) == ids(val)
    pool = load("mmlu", path, split="dev", duplicates="report")
    counts = Counter(item.subject for item in pool)
    # One exemplar of college_physics is published twice.
    assert len(counts) == 57
    assert {subject: n for subject, n in counts.items() if n != 5} == {"college_physics": 4}
    shots = {item.subject: exemplars_for(item, pool, 5, 0) for item in val}
    assert {len(chosen) for subject, chosen in shots.items() if subject != "college_physics"} == {5}
    assert len(shots["college_physics"]) == 4
    assert all(shot.subject == subject for subject, chosen in shots.items() for shot in chosen)


def test_mt_bench(public_data: Path) -> None:
    questions, _ = there(public_data / "mt_bench", "question.jsonl", "reference_answer_gpt-4.jsonl")
    items = load("mt_bench", questions)
    assert load("mt_bench", questions.parent) == items
    categories = ["writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"]
    assert Counter(item.subject for item in items) == dict.fromkeys(categories, 10)
    assert [item.source_id for item in items] == [str(n) for n in range(81, 161)]
    assert {len(item.followups) for item in items} == {1}
    assert Counter(item.subject for item in items if item.references) == {
        "reasoning": 10,
        "math": 10,
        "coding": 10,
        "roleplay": 1,
        "extraction": 5,
        "stem": 4,
    }
