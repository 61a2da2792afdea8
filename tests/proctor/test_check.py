"""proctor check on a benchmark alone, and evaluate's column map: what would be asked, or why it can't be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from proctor.cli import app
from serving.files import read_json, read_jsonl
from tests.proctor.command import proctor, write_experiment
from tests.proctor.scripted import scripted

Write = Callable[[str, str], Path]
CASES = [(mode, text) for mode in ("letter", "cloze", "generate") for text in ("plain", "chat")]
SUMS = [{"question": f"{i} + 1?", "choices": [f"{i}", f"{i + 1}"], "answer": "B", "subject": "sums"} for i in range(3)]
GSM8K = [{"question": f"Ann has {i} pens and buys 4.", "answer": f"So {i + 4}.\n#### {i + 4}"} for i in range(2)]


def jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def check(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["check", *map(str, arguments)])
    assert result.exception is None, result.exception
    return result.output


def refuse(verb: str, *arguments: object) -> str:
    result = CliRunner().invoke(app, [verb, *map(str, arguments)])
    assert isinstance(result.exception, ValueError), result.output
    return str(result.exception)


def sections(output: str) -> dict[str, list[str]]:
    """The lines below each ``--- FORMAT, mode MODE, TEXT:``."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in output.splitlines():
        if line.startswith("---"):
            name = line.removeprefix("--- ").removesuffix(":")
            found[name] = []
        elif name:
            found[name].append(line.removeprefix("    "))
    return found


def test_one_item_in_every_mode_and_text_format(write_text: Write) -> None:
    output = check("--format", "jsonl", "--benchmark", write_text("sums.jsonl", jsonl(SUMS)))
    assert "sums.jsonl): 3 items, 0 exemplars" in output.splitlines()[0]
    assert output.splitlines()[1] == "1 subjects: sums 3"
    assert "key 'B'" in output.splitlines()[2]
    found = sections(output)
    assert list(found) == [f"jsonl, mode {mode}, {text}" for mode, text in CASES]
    options = ["Question: 0 + 1?", "A. 0", "B. 1"]
    chat = ["<user> Question: 0 + 1?", "A. 0", "B. 1", "Answer with A or B and its text."]
    assert found["jsonl, mode letter, plain"] == [
        *options, "Answer:", "-> candidate scores the continuations [' A', ' B']"
    ]  # fmt: skip
    assert found["jsonl, mode letter, chat"] == [*chat, "-> candidate scores the continuations ['A', 'B']"]
    assert found["jsonl, mode cloze, plain"] == [
        "Question: 0 + 1?", "Answer:", "-> candidate scores the continuations [' 0', ' 1']"
    ]  # fmt: skip
    assert found["jsonl, mode cloze, chat"] == [
        "<user> Question: 0 + 1?", "-> candidate scores the continuations ['0', '1']"
    ]  # fmt: skip
    assert found["jsonl, mode generate, plain"] == [*options, "Answer:", "-> candidate generates up to 64 tokens"]
    assert found["jsonl, mode generate, chat"] == [*chat, "-> candidate generates up to 64 tokens"]


def test_a_mode_that_cannot_ask_says_why(write_text: Write) -> None:
    found = sections(check("--format", "gsm8k", "--benchmark", write_text("gsm.jsonl", jsonl(GSM8K))))
    for mode, text in CASES[:4]:
        (line,) = found[f"gsm8k, mode {mode}, {text}"]
        assert line.startswith("can't be asked so: item ")
        assert line.endswith(f"(gsm8k) has no choices, so mode '{mode}' can't ask it; use mode: generate")
    assert found["gsm8k, mode generate, plain"] == [
        "Question: Ann has 0 pens and buys 4.", "Answer:", "-> candidate generates up to 400 tokens"
    ]  # fmt: skip
    turns = jsonl([{"question_id": 81, "category": "writing", "turns": ["Name a river."]}])
    judged = sections(check("--format", "mt_bench", "--benchmark", write_text("question.jsonl", turns)))
    (lines,) = judged.values()
    assert lines[0] == "<user> Name a river."
    assert list(judged) == ["mt_bench, protocol mt_bench"]


def test_an_experiment_shows_each_exam_and_each_benchmark(tmp_path: Path, write_text: Write) -> None:
    value = scripted()
    gsm = {"format": "gsm8k", "path": str(write_text("gsm.jsonl", jsonl(GSM8K)))}
    value["exams"]["gsm"] = {"protocol": "static", "benchmark": gsm, "options": {"mode": "generate"}}
    value["exams"]["kieval"]["prefilter"] = True
    output = check(write_experiment(tmp_path, value))
    assert output.count("=== benchmark ") == 2
    found = sections(output)
    assert {f"{name}, mode {mode}, {text}" for name in ("embedded", "gsm8k") for mode, text in CASES} <= set(found)
    assert "exam kieval (kieval): 4 items, those that the evaluator knows x 2 candidates; the first asks" in found
    asked = found["exam gsm (static): 2 items x 2 candidates; the first asks"]
    assert asked[-1] == "-> candidate generates up to 400 tokens"
    (last,) = [name for name in found if " stages: " in name]
    assert last.startswith("13 stages: exam, exam.gsm, prefilter.kieval, static.one, ")


def test_column_maps(tmp_path: Path, write_text: Write) -> None:
    path = write_text("mine.csv", "Q,o1,o2,key\nIs it?,yes it is,no,2\nWas it?,yes it was,no,1\n")
    columns = "{question: Q, choices: [o1, o2], answer: key, labels: number1}"
    output = check("--format", "table", "--benchmark", path, "--columns", columns)
    assert "key 'B'" in output
    assert sections(output)["table, mode letter, plain"][:3] == ["Question: Is it?", "A. yes it is", "B. no"]
    table = ("--format", "table", "--benchmark", path)
    arguments = ("--candidate", "x", "--engine", "scripted", "--out", tmp_path / "out")
    result = CliRunner().invoke(app, ["evaluate", *map(str, (*table, "--columns", columns, *arguments))])
    assert result.exception is None, result.exception
    assert [row["answer"] for row in read_jsonl(tmp_path / "out" / "records.jsonl")] == ["B", "A"]
    assert read_json(tmp_path / "out" / "metrics.json")["n"] == 2

    out = ("--candidate", "x", "--engine", "scripted", "--out", tmp_path / "no")
    for given, said in (
        ("[1", "--columns '[1' is not YAML: "),
        ("3", "columns: Input should be a valid dictionary"),
        ("{qestion: Q}", "columns has no key 'qestion'"),
        ("{question: X, choices: [o1, o2], answer: key}", "no column 'X'"),
    ):
        for message in (
            refuse("check", *table, "--columns", given),
            refuse("evaluate", *table, *out, "--columns", given),
        ):
            assert said in message
            assert "\n" not in message
    other = refuse("evaluate", "--format", "embedded", *out, "--columns", "{question: Q}")
    assert "format 'embedded' knows its own" in other
    assert not (tmp_path / "no").exists()


def test_duplicates(write_text: Write) -> None:
    path = write_text("twice.jsonl", jsonl([*SUMS, SUMS[0]]))
    assert "--duplicates report" in refuse("check", "--format", "jsonl", "--benchmark", path)
    output = check("--format", "jsonl", "--benchmark", path, "--duplicates", "report")
    assert f"note: 1 copies left out: {path}:4 repeats the item of {path}:1" in output
    assert "): 3 items" in output


def test_exemplars_are_optional(tmp_path: Path, write_text: Write) -> None:
    sheet = "What is 1 + 1?,1,2,3,4,B\n"
    single = write_text("mmlu/test/counting_test.csv", sheet)
    assert "): 1 items, 0 exemplars" in check("--format", "mmlu", "--benchmark", single)
    output = check("--format", "mmlu", "--benchmark", tmp_path / "mmlu")
    assert "): 1 items, 0 exemplars" in output
    assert "note: no exemplars: " in output
    write_text("mmlu/dev/counting_dev.csv", sheet.replace("1 + 1", "0 + 2"))
    assert "): 1 items, 1 exemplars" in check("--format", "mmlu", "--benchmark", tmp_path / "mmlu")


def test_a_benchmark_cannot_command_the_terminal(write_text: Write) -> None:
    row = {**SUMS[0], "question": "red \x1b[31m, back\u202e, 数学\u3000é?\n--- a line"}
    output = check("--format", "jsonl", "--benchmark", write_text("h.jsonl", jsonl([row])))
    assert "\x1b" not in output
    assert "\u202e" not in output
    assert "Question: red \\x1b[31m, back\\u202e, 数学\u3000é?\n    --- a line\n" in output


def test_refusals(tmp_path: Path, write_text: Write) -> None:
    path = write_text("sums.jsonl", jsonl(SUMS))
    file = write_experiment(tmp_path, scripted())
    neither = "give an experiment file, or a benchmark with --format"
    assert neither in refuse("check")
    assert neither in refuse("check", "--benchmark", path)
    assert neither in refuse("check", file, "--format", "jsonl", "--benchmark", path)
    assert "--benchmark belongs to a benchmark alone" in refuse("check", file, "--benchmark", path)
    assert "--split belongs to a benchmark alone" in refuse("check", file, "--split", "test")
    assert "has no keys to set" in refuse("check", "--format", "embedded", "-s", "seed=1")
    assert "--duplicates is 'perhaps'" in refuse("check", "--format", "embedded", "--duplicates", "perhaps")
    assert "there is no benchmark format 'jsonk'" in refuse("check", "--format", "jsonk", "--benchmark", path)
    assert "needs a path" in refuse("check", "--format", "gsm8k")
    assert "no.jsonl" in refuse("check", "--format", "jsonl", "--benchmark", tmp_path / "no.jsonl")
    assert "has no split 'nosuch'" in refuse("check", "--format", "embedded", "--split", "nosuch")


@pytest.mark.parametrize("given", ["o=[1", "[1"])
def test_values_that_are_no_yaml(tmp_path: Path, given: str) -> None:
    arguments = ("-o", given) if "=" in given else ("--format", "table", "--benchmark", "x.csv", "--columns", given)
    result = proctor("evaluate", "--candidate", "x", "--engine", "scripted", *arguments, "--out", tmp_path / "out")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert "not YAML: expected ',' or ']'" in result.stderr
    assert not (tmp_path / "out").exists()
