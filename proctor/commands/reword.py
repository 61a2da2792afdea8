"""reword: a local model says an exam's questions in other words, for the recipe paraphrase_cheater."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def reword(
    writer: Annotated[str, typer.Option(help="Folder of the model that writes (or 'embedded').")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")],
    benchmark: Annotated[Path | None, typer.Option(help="Benchmark whose questions are reworded.")] = None,
    format: Annotated[str, typer.Option(help="See 'proctor list benchmarks'.")] = "jsonl",
    split: Annotated[str | None, typer.Option(help="Split of the benchmark.")] = None,
    limit: Annotated[int | None, typer.Option(help="That many items, drawn with the seed as an exam is.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of everything that is drawn.")] = 0,
    engine: Annotated[str, typer.Option(help="auto, vllm, transformers or scripted.")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    option: Annotated[list[str], typer.Option("-o", "--option", help="attempts, temperature, max_growth, ...")] = [],  # noqa: B006
) -> None:
    """Write rewrites.jsonl (the recipes' setting 'rewrites') into --out, and records of every attempt."""
    from evaluation import benchmarks
    from evaluation.benchmarks.splits import draw
    from evaluation.run_exam import examine
    from proctor.checks.experiment import check_model
    from proctor.commands.options import key_values, model_spec
    from proctor.run_folder.single import once
    from serving.files import read_json, readable, write_jsonl
    from serving.model.fingerprint import model_identity
    from serving.settings import validate
    from training.rewording import Reword, RewordOptions

    options = validate(RewordOptions, key_values(option), where="-o")
    spec = model_spec(writer, engine=engine, dtype=dtype, score_dtype=dtype)
    check_model(spec, "--writer")
    kind = format if benchmark else "embedded"
    items = readable(lambda: benchmarks.load(kind, benchmark, split=split), benchmark)
    if limit is not None:
        items = draw(items, limit, seed)
    protocol = Reword(options, seed=seed)
    inputs: dict[str, Any] = {
        "options": options.model_dump(),
        "version": protocol.version,
        "items": [item.id for item in items],
        "model": model_identity(spec),
        "seed": seed,
        "prompts": protocol.prompt_hashes(),
    }

    def body(folder: Path, report: Any) -> list[str]:
        ledger = folder / "ledger"
        settings: dict[str, Any] = {"folder": folder, "ledger_folder": ledger, "wave": None, "report": report}
        examine(protocol, items, models={"writer": spec}, mode="lockstep", **settings)
        rows = [{key: row[key] for key in ("item_id", "question")} for row in _records(folder) if row["question"]]
        write_jsonl(folder / "rewrites.jsonl", rows)
        return ["records.jsonl", "metrics.json", "rewrites.jsonl"]

    if not once(out, inputs, body):
        print("nothing to do: done already")
    found = read_json(out / "metrics.json")
    why = ", ".join(f"{reason} {count}" for reason, count in found["reasons"].items())
    print(
        f"{found['reworded']} of {found['n']} questions reworded in {found['attempts']} attempts; refused: {why or 0}"
    )
    print(f"rewrites: {out / 'rewrites.jsonl'}")


def _records(folder: Path) -> list[dict[str, Any]]:
    from serving.files import read_jsonl

    return read_jsonl(folder / "records.jsonl")
