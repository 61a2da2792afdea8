"""proctor conversations: what was said in an exam, in the form that the recipes' chat data has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evaluation.exam_set import read_exam
from evaluation.formats import chat_question
from proctor.cli import app
from serving.files import read_jsonl, write_jsonl
from tests.proctor.command import proctor
from tests.proctor.scripted import do, scripted
from training.corpora import read_chat

Write = Callable[[str, str], Path]
TWO_TURNS = {"question_id": 81, "category": "writing", "turns": ["Name a river.", "And its country?"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interviews and two-turn conversations; the candidate says nothing about some of the questions."""
    folder = tmp_path_factory.mktemp("conversations")
    write_jsonl(
        folder / "question.jsonl", [TWO_TURNS, {**TWO_TURNS, "question_id": 82, "turns": ["Be silent.", "Now?"]}]
    )
    silent = [{"match": "user: Be silent.$", "reply": " "}]
    value = scripted(
        models={"m": {"path": "none", "engine": "scripted", "engine_args": {"replies": silent}}},
        candidates={"one": {"model": "m"}},
        exams={
            "kieval": {"protocol": "kieval", "limit": 2, "options": {"rounds": 2}},
            "static": {"protocol": "static"},
            "bench": {
                "protocol": "mt_bench",
                "benchmark": {"format": "mt_bench", "path": str(folder / "question.jsonl")},
            },
        },
        detection=None,
    )
    return do(folder, value, "exam", "exam.bench", "kieval.one", "static.one", "bench.one")


def write(source: Path, out: Path) -> str:
    result = CliRunner().invoke(app, ["conversations", str(source), "--out", str(out)])
    assert result.exception is None, result.exception
    return result.output


def refuse(source: Path, out: Path) -> str:
    result = CliRunner().invoke(app, ["conversations", str(source), "--out", str(out)])
    assert isinstance(result.exception, ValueError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def test_interviews(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "chat.jsonl"
    assert write(run / "stages" / "kieval.one", out) == f"4 conversations: {out}\n"
    data = read_chat(out)
    assert (len(data.rows), data.duplicates) == (4, ())
    items = {item.id: item for item in read_exam(run / "exam").items}
    records = read_jsonl(run / "stages" / "kieval.one" / "records.jsonl")
    for row, record in zip(data.rows, records, strict=True):
        said = [chat_question(items[record["item_id"]]), record["first_answer"]["text"]]
        for turn in record["rounds"]:
            said += [turn["question"], turn["reply"]]
        assert [message.content for message in row.messages] == said
        assert [message.role for message in row.messages] == ["user", "assistant"] * 3


def test_conversations_of_a_judge_end_where_the_candidate_says_nothing(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "chat.jsonl"
    assert write(run / "stages" / "bench.one", out) == (
        f"1 conversations: {out}\n1 records without a reply are left out\n"
    )
    (row,) = read_chat(out).rows
    assert [message.content for message in row.messages][::2] == TWO_TURNS["turns"]
    (first,) = [r for r in read_jsonl(run / "stages" / "bench.one" / "records.jsonl") if r["source_id"] == "81"]
    assert [message.content for message in row.messages][1::2] == [turn["reply"] for turn in first["turns"]]


def test_a_later_turn_without_a_reply(tmp_path: Path) -> None:
    turns = [{"question": "One?", "reply": "Yes."}, {"question": "Two?", "reply": ""}, {"question": "3?", "reply": "3"}]
    write_jsonl(tmp_path / "records.jsonl", [{"item_id": "x", "turns": turns}])
    write(tmp_path, tmp_path / "chat.jsonl")
    (row,) = read_chat(tmp_path / "chat.jsonl").rows
    assert [(message.role, message.content) for message in row.messages] == [("user", "One?"), ("assistant", "Yes.")]


@pytest.mark.parametrize("hostile", ['"}\n{"messages": []}', "\u2028</script>\x00\x1b[0m", "half \ud83d of a pair"])
def test_hostile_replies_stay_in_their_row(tmp_path: Path, hostile: str) -> None:
    row = json.dumps({"item_id": "x", "turns": [{"question": "One?", "reply": hostile}]})
    (tmp_path / "records.jsonl").write_text(f"{row}\n", encoding="utf-8")
    write(tmp_path, tmp_path / "chat.jsonl")
    (read,) = read_chat(tmp_path / "chat.jsonl").rows
    assert read.messages[1].content == hostile.replace("\ud83d", "\ufffd")


def test_a_second_call_does_nothing(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "chat.jsonl"
    first = write(run / "stages" / "kieval.one", out)
    before = (out.read_bytes(), out.stat().st_mtime_ns)
    assert write(run / "stages" / "kieval.one", out) == f"nothing to do: done already\n{first}"
    assert (out.read_bytes(), out.stat().st_mtime_ns) == before


def test_refusals(run: Path, tmp_path: Path, write_text: Write) -> None:
    out = tmp_path / "chat.jsonl"
    assert "has no records.jsonl; give a finished stage" in refuse(tmp_path / "nowhere", out)
    assert "holds no conversations; only mt_bench, pairwise and kieval have them" in refuse(
        run / "stages" / "static.one", out
    )
    rejudged: dict[str, Any] = {"item_id": "x", "rounds": [{"overall": 3, "verdict": None}], "scores": {}}
    write_jsonl(tmp_path / "again" / "records.jsonl", [rejudged])
    assert "holds no conversations" in refuse(tmp_path / "again", out)
    write_jsonl(tmp_path / "alone" / "records.jsonl", read_jsonl(run / "stages" / "kieval.one" / "records.jsonl"))
    assert "the items of these records are not found" in refuse(tmp_path / "alone", out)
    items = [item.to_json() for item in read_exam(run / "exam").items]
    write_jsonl(tmp_path / "alone" / "items.jsonl", [{**item, "id": f"not {item['id']}"} for item in items])
    assert "is not among the exam's items" in refuse(tmp_path / "alone", out)
    assert not out.exists()
    for text in ("mine", '{"messages": []}\n', ""):
        taken = write_text("taken.jsonl", text)
        assert "taken.jsonl exists and holds something else" in refuse(run / "stages" / "kieval.one", taken)
        assert taken.read_text(encoding="utf-8") == text
    assert "exists and holds something else" in refuse(run / "stages" / "kieval.one", tmp_path)


def test_the_exit_code_of_a_refusal(tmp_path: Path) -> None:
    result = proctor("conversations", tmp_path, "--out", tmp_path / "out")
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
