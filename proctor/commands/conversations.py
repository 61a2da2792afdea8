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
    from evaluation.items import Item
    from proctor.atomic import read_jsonl, write_jsonl
    from proctor.commands.options import readable
    from proctor.commands.rejudge import items_file

    records = source / "records.jsonl"
    if not records.is_file():
        raise ValueError(f"{source} has no records.jsonl; give a finished stage (RUN/stages/EXAM.CANDIDATE)")
    if out.exists():
        raise ValueError(f"--out {out} exists; choose another file")
    rows = readable(lambda: read_jsonl(records), records)
    items: dict[str, Item] = {}
    if any("rounds" in row for row in rows):
        file = items_file(source)
        items = {row["id"]: Item.from_json(row) for row in readable(lambda: read_jsonl(file), file)}
    found = [_messages(row, items) for row in rows]
    kept = [messages for messages in found if messages]
    if not kept:
        raise ValueError(f"{records} holds no conversations; only mt_bench, pairwise and kieval have them")
    write_jsonl(out, [{"messages": messages} for messages in kept])
    print(f"{len(kept)} conversations: {out}")
    if len(kept) < len(rows):
        print(f"{len(rows) - len(kept)} records without a reply are left out")


def _messages(row: dict[str, Any], items: dict[str, Any]) -> list[dict[str, str]]:
    """User and assistant in turn, up to the first turn without a reply."""
    from evaluation.formats import chat_question

    turns: list[tuple[str, str]] = []
    if "rounds" in row and row["item_id"] in items:
        turns.append((chat_question(items[row["item_id"]]), row["first_answer"]["text"]))
    turns += [(turn["question"], turn["reply"]) for turn in row.get("turns", row.get("rounds", []))]
    messages: list[dict[str, str]] = []
    for question, reply in turns:
        if not (question or "").strip() or not (reply or "").strip():
            break
        messages += [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]
    return messages
