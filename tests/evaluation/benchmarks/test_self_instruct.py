from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks import load


def task(**changed: Any) -> dict[str, Any]:
    return {
        "id": "seed_task_1",
        "name": "antonyms",
        "instruction": "What is the opposite?",
        "instances": [{"input": "hot", "output": "cold"}, {"input": "up", "output": "down"}],
        "is_classification": False,
        **changed,
    }


def write(folder: Path, *tasks: dict[str, Any]) -> Path:
    file = folder / "seed_tasks.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in tasks), encoding="utf-8")
    return file


def test_a_task_is_an_item(tmp_path: Path) -> None:
    file = write(tmp_path, task(), task(id="seed_task_2", instances=[{"input": "", "output": ""}]))
    first, second = load("self_instruct", file)
    assert first.question == "What is the opposite?\n\nhot"
    assert (first.answer, first.subject, first.source_id) == ("cold", "generation", "seed_task_1")
    assert (second.question, second.answer) == ("What is the opposite?", "")


def test_a_generated_task_is_read_too(tmp_path: Path) -> None:
    row = {"instruction": "Add.", "input": "1, 2", "output": "3", "is_classification": True}
    (item,) = load("self_instruct", write(tmp_path, row))
    assert (item.question, item.answer, item.subject) == ("Add.\n\n1, 2", "3", "classification")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"instances": []}, r"seed_tasks.jsonl:1: field 'instances' is \[\]; it must be a list of objects"),
        ({"instances": [{"input": 1}]}, "'input' of the first instance is 1; it must be text"),
        ({"is_classification": "no"}, "'is_classification' is 'no'"),
        ({"instruction": " "}, "the question is empty"),
    ],
)
def test_broken_tasks(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load("self_instruct", write(tmp_path, task(**changed)))


def test_the_published_seed_tasks(public_data: Path) -> None:
    items = load("self_instruct", public_data / "self_instruct")
    assert len(items) == 175
    assert items[0].source_id == "seed_task_0"
    assert all(item.answer for item in items)
