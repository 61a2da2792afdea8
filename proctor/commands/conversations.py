"""conversations: what was said in an exam, as chat data that recipes train on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def conversations(
    source: Annotated[Path, typer.Argument(help="Folder with records.jsonl of mt_bench, pairwise or kieval.")],
    out: Annotated[Path, typer.Option("--out", help="File to write, one {'messages': [...]} a line.")],
) -> None:
    """Write an exam's conversations as chat data (the recipes' setting 'chat' reads them)."""
    from proctor.atomic import write_jsonl
    from proctor.commands.rejudge import read_exam_items, read_records

    records, rows = read_records(source)
    items = read_exam_items(source)[1] if any(_is_interview(row) for row in rows) else {}
    unknown = [row["item_id"] for row in rows if _is_interview(row) and row["item_id"] not in items]
    if unknown:
        raise ValueError(f"{records}: item {unknown[0]} is not among the exam's items; are these another exam's?")
    found = [_messages(row, items) for row in rows]
    kept = [messages for messages in found if messages]
    if not kept:
        raise ValueError(f"{records} holds no conversations; only mt_bench, pairwise and kieval have them")
    chat = [{"messages": messages} for messages in kept]
    if out.exists():
        if not _holds(out, chat):
            raise ValueError(f"--out {out} exists and holds something else; choose another file")
        print("nothing to do: done already")
    else:
        write_jsonl(out, chat)
    print(f"{len(kept)} conversations: {out}")
    if len(kept) < len(rows):
        print(f"{len(rows) - len(kept)} records without a reply are left out")


def _holds(file: Path, rows: list[dict[str, Any]]) -> bool:
    from proctor.atomic import read_jsonl

    try:
        return file.is_file() and read_jsonl(file) == rows
    except ValueError:
        return False


def _is_interview(row: dict[str, Any]) -> bool:
    """Whether it is a record of kieval; rejudge's have rounds without texts."""
    return "rounds" in row and "first_answer" in row


def _messages(row: dict[str, Any], items: dict[str, Any]) -> list[dict[str, str]]:
    """User and assistant in turn, up to the first turn without a reply."""
    from evaluation.formats import chat_question

    turns: list[tuple[str, str]] = []
    said = row.get("turns", [])
    if _is_interview(row):
        turns.append((chat_question(items[row["item_id"]]), row["first_answer"]["text"]))
        said = row["rounds"]
    turns += [(turn["question"], turn["reply"]) for turn in said]
    messages: list[dict[str, str]] = []
    for question, reply in turns:
        if not (question or "").strip() or not (reply or "").strip():
            break
        messages += [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]
    return messages
