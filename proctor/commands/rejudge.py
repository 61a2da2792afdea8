"""rejudge: another evaluator judges stored KIEval interviews; the candidate is asked nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.commands.options import Engine, Out, Seed
from proctor.run_folder.finished import read_exam_items, read_records


def rejudge(
    source: Annotated[Path, typer.Argument(help="Folder with KIEval's records.jsonl: a stage's, or evaluate's --out.")],
    evaluator: Annotated[str, typer.Option(help="Model that judges (folder, or 'embedded').")],
    out: Out,
    votes: Annotated[int, typer.Option(min=1, help="Verdicts per round; of several, sampled, the median counts.")] = 1,
    seed: Seed = 0,
    engine: Engine = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    schedule: Annotated[str, typer.Option(help="lockstep, batch-invariant or fast.")] = "lockstep",
    option: Annotated[list[str], typer.Option("-o", "--option", help="Option of the judge key=value.")] = [],  # noqa: B006
) -> None:
    """Judge stored KIEval interviews again and report the agreement of the two evaluators."""
    from evaluation.kieval.options import RoundJudgeOptions
    from evaluation.kieval.rejudge import Rejudge
    from proctor.checks.experiment import check_model
    from proctor.commands.options import checked_schedule, key_values, model_spec, refuse_reserved
    from proctor.run_folder.single import examine_once
    from serving.files import readable
    from serving.model.fingerprint import file_hash, model_identity
    from serving.settings import checked_options

    mode = checked_schedule(schedule)
    settings = key_values(option)
    refuse_reserved(settings, {"votes": "give --votes"}, "-o")
    options = settings | {"votes": votes}
    spec = model_spec(evaluator, engine=engine, dtype=dtype, score_dtype=dtype)
    check_model(spec, "--evaluator")
    records, originals = read_records(source)
    exam, items = read_exam_items(source)
    unknown = [row.get("item_id") for row in originals if row.get("item_id") not in items]
    if unknown:
        raise ValueError(f"{records}: item {unknown[0]} is not in {exam}; are these another exam's records?")
    judge = Rejudge(checked_options("rejudge", RoundJudgeOptions, options), seed=seed, originals=originals)
    asked = [items[row["item_id"]] for row in originals]
    inputs: dict[str, Any] = {
        "version": judge.version,
        "options": options,
        "records": readable(lambda: file_hash(records), records),
        "items": readable(lambda: file_hash(exam), exam),
        "evaluator": model_identity(spec),
        "seed": seed,
        "schedule": schedule,
        "prompts": judge.prompt_hashes(),
    }
    examine_once(out, judge, asked, models={"evaluator": spec}, mode=mode, inputs=inputs)
    _show(out / "metrics.json")
    print(f"records: {out / 'records.jsonl'}")


def _show(path: Path) -> None:
    from serving.files import read_json

    metrics = read_json(path)
    agreement = metrics["agreement"]
    rounds, missing = metrics["rounds_judged"], metrics["missing_verdicts"]
    print(f"  n: {metrics['n']} interviews, {rounds} rounds, {missing} of them without verdict")
    print(f"  score: {metrics['score']}  {metrics['score_interval']}")
    for key, value in agreement.items():
        if not isinstance(value, dict | list):
            print(f"  agreement, {key}: {value}")
        elif isinstance(value, dict) and "value" in value:
            print(f"  agreement, {key}: {value['value']}" + (f" ({value['reason']})" if value.get("reason") else ""))


def conversations(
    source: Annotated[Path, typer.Argument(help="Folder with records.jsonl of mt_bench, pairwise or kieval.")],
    out: Annotated[Path, typer.Option("--out", help="File to write, one {'messages': [...]} a line.")],
) -> None:
    """Write an exam's conversations as chat data (the recipes' setting 'chat' reads them)."""
    from proctor.run_folder.finished import read_exam_items, read_records
    from serving.files import write_jsonl

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
    from serving.files import read_jsonl

    try:
        return file.is_file() and read_jsonl(file) == rows
    except ValueError:
        return False


def _is_interview(row: dict[str, Any]) -> bool:
    """Whether it is a record of kieval; rejudge's have rounds without texts."""
    return "rounds" in row and "first_answer" in row


def _messages(row: dict[str, Any], items: dict[str, Any]) -> list[dict[str, str]]:
    """User and assistant in turn, up to the first turn without a reply; half a surrogate pair becomes U+FFFD."""
    from evaluation.formats import chat_question
    from evaluation.templates import well_formed

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
        pair = (("user", question), ("assistant", reply))
        messages += [{"role": role, "content": well_formed(text)} for role, text in pair]
    return messages
