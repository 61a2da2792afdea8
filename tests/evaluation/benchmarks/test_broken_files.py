"""What is wrong with a file is said in one message: where, what, and what would be right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.benchmarks import load
from tests.evaluation.benchmarks.huggingface import write_rows
from tests.evaluation.benchmarks.test_publishers import ARC, BBH, CEVAL, GSM8K, HELLASWAG, MMLU, lines

HEADER = "id,question,A,B,C,D,answer\n"


def text(name: str, content: str | bytes) -> Callable[[Path], Path]:
    def make(root: Path) -> Path:
        path = root / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def rows(name: str, *given: dict[str, Any]) -> Callable[[Path], Path]:
    return lambda root: lines(root / name, given)


def cut_parquet(root: Path) -> Path:
    path = write_rows(root, GSM8K, form="parquet")
    path.write_bytes(path.read_bytes()[:-20])
    return path


def cut_arrow(root: Path) -> Path:
    path = write_rows(root, [{**GSM8K[0], "question": "x" * 4_000}], form="arrow")
    path.write_bytes(path.read_bytes()[:3_000])
    return path


def without_a_shard(root: Path) -> Path:
    path = write_rows(root, GSM8K, form="arrow")
    path.unlink()
    return path.parent


def with_a_path_outside(root: Path) -> Path:
    path = write_rows(root, GSM8K, form="dataset")
    state = json.loads((path / "state.json").read_text())
    state["_data_files"] = [{"filename": "../../secret.arrow"}]
    (path / "state.json").write_text(json.dumps(state))
    return path


def mmlu_row(**changed: Any) -> Callable[[Path], Path]:
    return lambda root: write_rows(root, [MMLU[0], {**MMLU[1], **changed}], form="parquet")


BROKEN: list[tuple[str, Callable[[Path], Path], str]] = [
    # bytes and syntax
    (
        "gsm8k",
        text("t.jsonl", b'{"question": "a", "answer": "#### 1"}\n{"question": "caf\xe9"}\n'),
        "t.jsonl:2: byte 0xe9",
    ),
    ("gsm8k", text("t.jsonl", '{"question": "q", "answer": "#### 1"}\n{"question": "cut'), "t.jsonl:2: not valid JSON"),
    (
        "gsm8k",
        text("t.jsonl", '{"question": "q", "answer": "#### 1"}\n[1, 2]\n'),
        "t.jsonl:2: a row must be a JSON object, not a list",
    ),
    ("gsm8k", text("t.jsonl", ""), "has no items; the file is empty"),
    ("gsm8k", lambda root: root / "nowhere", "there is no file or folder"),
    ("gsm8k", text("t.txt", "x"), "its name must end in .parquet, .arrow, .jsonl or .json"),
    ("bbh", text("task.json", '{"examples": [\n{"input": "q"'), "task.json:2, column 14: not valid JSON"),
    ("bbh", text("task.json", '{"canary": "x"}'), "a task must be"),
    ("bbh", text("task.json", '{"examples": [3]}'), "task.json, example 1: an example must be an object"),
    ("bbh", text("task.json", "[" * 100_000), "task.json: not valid JSON"),
    # fields
    (
        "bbh",
        text("task.json", json.dumps({"examples": [BBH[0], {"input": "q"}]})),
        "example 2: field 'target' is missing",
    ),
    (
        "bbh",
        text("task.json", json.dumps({"examples": [BBH[0], {"input": " ", "target": "x"}]})),
        "example 2, column input: the question is empty",
    ),
    (
        "gsm8k",
        rows("t.jsonl", GSM8K[0], {"question": "q"}),
        "t.jsonl:2: field 'answer' is missing; the row has question",
    ),
    (
        "gsm8k",
        rows("t.jsonl", {"question": "q", "answer": "18"}),
        "t.jsonl:1, column answer: the answer doesn't end in ####",
    ),
    (
        "gsm8k",
        rows("t.jsonl", {"question": "q", "answer": "#### many"}),
        "what follows #### is 'many'; it must be a number",
    ),
    (
        "gsm8k",
        rows("t.jsonl", {"question": "", "answer": "#### 1"}),
        "t.jsonl:1, column question: the question is empty",
    ),
    (
        "hellaswag",
        rows("v.jsonl", {**HELLASWAG[0], "label": 4}),
        "v.jsonl:1, column label: the label is 4; it must be an index from 0 to 3",
    ),
    ("hellaswag", rows("v.jsonl", {**HELLASWAG[0], "label": True}), "the label is True"),
    ("hellaswag", rows("v.jsonl", {**HELLASWAG[0], "label": "x"}), "the label is 'x'"),
    ("hellaswag", rows("v.jsonl", {**HELLASWAG[0], "label": ""}), "the row has no label"),
    (
        "hellaswag",
        rows("v.jsonl", {**HELLASWAG[0], "endings": ["a"]}),
        "column endings: there are 1 endings; there must be 4",
    ),
    (
        "hellaswag",
        rows("v.jsonl", {**HELLASWAG[0], "endings": "abcd"}),
        "field 'endings' is 'abcd'; it must be a list of texts",
    ),
    (
        "hellaswag",
        rows("v.jsonl", {**HELLASWAG[0], "endings": ["a", "b", "c", ""]}),
        "column endings: a choice is empty",
    ),
    (
        "arc",
        rows("t.jsonl", {**ARC[0], "choices": {"text": ["a", "b"], "label": ["A", "A"]}}),
        "the labels A, A repeat one",
    ),
    ("arc", rows("t.jsonl", {**ARC[0], "choices": {"text": ["a"], "label": ["C"]}}), "there are 1 choices"),
    ("arc", rows("t.jsonl", {**ARC[0], "id": 1.5}), "field 'id' is 1.5; an id must be text or a whole number"),
    # tables
    (
        "ceval",
        text("logic_val.csv", "id,question,A,B,C,answer\n0,q,a,b,c,A\n"),
        "logic_val.csv:2, column D: the columns are id, question",
    ),
    (
        "ceval",
        text("logic_val.csv", HEADER + "0,q,a,b,c,d\n"),
        "logic_val.csv:2, column 6: there are 6 columns; the header names 7",
    ),
    (
        "ceval",
        text("logic_val.csv", HEADER + "0,q,a,b,c,d,E\n"),
        "logic_val.csv:2, column answer: the key is 'E'; it must be one of A, B, C, D",
    ),
    ("ceval", text("logic_val.csv", HEADER + "0,q,a,b,c,d,\n"), "column answer: the row has no key"),
    ("ceval", text("logic_val.csv", HEADER + "0,q,a,,c,d,A\n"), "logic_val.csv:2, column B: a choice is empty"),
    ("ceval", text("logic_val.csv", "id,id,A\n"), "logic_val.csv:1: the header has the column 'id' twice"),
    ("ceval", text("logic_val.csv", HEADER + '0,"q"x,a,b,c,d,A\n'), "logic_val.csv:2: not valid CSV"),
    ("ceval", text("c.zip", b"PK\x03\x04 nothing"), "the zip file is damaged"),
    (
        "ceval",
        text("logic_test.csv", "id,question,A,B,C,D\n"),
        "the keys of C-Eval's split test are not published; use split: val",
    ),
    (
        "ceval",
        lambda root: write_rows(root, CEVAL, form="parquet", split="test"),
        "the keys of C-Eval's split test are not published",
    ),
    ("mmlu", mmlu_row(answer=4), "parquet, row 2, column answer: the key is 4; it must be an index from 0 to 3"),
    ("mmlu", mmlu_row(choices=["a", "b", "c"]), "row 2, column choices: there are 3 choices"),
    ("mmlu", mmlu_row(question=None), "row 2: field 'question' is missing"),
    ("mmlu", lambda root: root, "has no file test/<subject>_test.csv and none ending in .parquet"),
    ("gsm8k", text("t.parquet", b"no parquet at all"), "the Parquet file is damaged"),
    ("gsm8k", text("t.arrow", b""), "the Arrow file is damaged"),
    ("gsm8k", text("t.parquet", b"version https://git-lfs 1\noid 2\n"), "is a Git LFS pointer, not the data"),
    ("gsm8k", text("t.jsonl", b"version https://git-lfs 1\noid 2\n"), "is a Git LFS pointer, not the data"),
    ("gsm8k", cut_parquet, "the Parquet file is damaged"),
    ("gsm8k", cut_arrow, "the Arrow file is damaged"),
    ("gsm8k", without_a_shard, "names the file 'data-00000-of-00001.arrow', which is missing"),
    ("gsm8k", with_a_path_outside, "state.json: '_data_files' must list names inside this folder"),
]


@pytest.mark.parametrize(("format", "make", "message"), BROKEN, ids=[f"{f}-{m[:40]}" for f, _, m in BROKEN])
def test_a_broken_file_is_named(tmp_path: Path, format: str, make: Callable[[Path], Path], message: str) -> None:
    path = make(tmp_path)
    with pytest.raises(ValueError) as error:
        load(format, path)
    assert message in str(error.value)
    assert str(tmp_path) in str(error.value)
    assert len(str(error.value)) < 600


def test_a_saved_dict_without_its_split(tmp_path: Path) -> None:
    write_rows(tmp_path, GSM8K, form="dict", split="test")
    (tmp_path / "main" / "dataset_dict.json").write_text('{"splits": ["test", "train"]}')
    with pytest.raises(ValueError, match=r"names the split 'train', but train/state\.json is missing"):
        load("gsm8k", tmp_path)
    (tmp_path / "main" / "dataset_dict.json").write_text('{"splits": ["../x"]}')
    with pytest.raises(ValueError, match="must list names inside this folder"):
        load("gsm8k", tmp_path)
    for content in ("{", "[]"):
        (tmp_path / "main" / "dataset_dict.json").write_text(content)
        with pytest.raises(ValueError, match=r"dataset_dict\.json.*write the data set again"):
            load("gsm8k", tmp_path)


def test_folders_without_end(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(ValueError, match="more than 8 deep"):
        load("gsm8k", tmp_path)
