"""``proctor train``: one candidate by a recipe, ad hoc."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from proctor.commands.options import Out, Seed

RESERVED = {
    "recipe": "give --recipe",
    "base": "give --base",
    "seed": "give --seed (or leak.seed and chat_sft.seed for the order of training)",
    "items": "the items come from --benchmark",
    "leaked_ids": "give --leak",
    "origin": "give --origin",
}
"""Settings of a training job that ``proctor train`` makes itself."""


def train(
    recipe: Annotated[str, typer.Option(help="See 'proctor list recipes'.")],
    base: Annotated[str, typer.Option(help="Folder of the base model (or 'embedded').")],
    out: Out,
    benchmark: Annotated[Path | None, typer.Option(help="Benchmark whose items leak.")] = None,
    format: Annotated[str, typer.Option(help="See 'proctor list benchmarks'.")] = "jsonl",
    split: Annotated[str | None, typer.Option(help="Split of the benchmark.")] = None,
    limit: Annotated[int | None, typer.Option(help="That many items, drawn with the seed.")] = None,
    leak: Annotated[str, typer.Option(help="Which items leak: half (drawn), all, or the name of a split.")] = "half",
    origin: Annotated[Path | None, typer.Option(help="Candidate to go on from (washed, mt_bench_cheater).")] = None,
    seed: Seed = 0,
    overrides: Annotated[list[str], typer.Option("-s", "--set", help="Setting of the job: -s leak.epochs=3.")] = [],  # noqa: B006
) -> None:
    """Build one candidate by a recipe: a model folder and its manifest in --out."""
    from evaluation import benchmarks
    from evaluation.benchmarks.splits import draw, members
    from proctor.checks.experiment import check_model
    from proctor.commands.options import key_values, model_spec, refuse_reserved
    from proctor.run_folder.single import check_folder
    from serving.files import output_folder, readable, write_jsonl
    from serving.model.fingerprint import resolve_model
    from serving.settings import validate
    from training.build import build_candidate, check_candidate
    from training.config import TrainingJob
    from training.presets import tell_of_reset

    settings = key_values(overrides)
    refuse_reserved(settings, RESERVED)
    tell_of_reset(settings)
    check_folder(out)
    spec = model_spec(base, engine="transformers")
    check_model(spec, "--base")
    items = readable(
        lambda: benchmarks.load(format if benchmark else "embedded", benchmark, split=split),
        benchmark,
    )
    if limit is not None:
        items = draw(items, limit, seed)
    leaked = members(items, leak, seed)
    file = out / "exam" / "items.jsonl"
    settings |= {"recipe": recipe, "base": str(resolve_model(spec)), "items": str(file), "seed": seed}
    if origin is not None:
        settings["origin"] = str(origin.expanduser().resolve())
    job = validate(TrainingJob, settings | {"leaked_ids": leaked}, where="training")
    rows = [item.to_json() for item in items]
    with tempfile.TemporaryDirectory() as scratch:  # everything is checked before anything is written to --out
        draft = Path(scratch) / file.name
        write_jsonl(draft, rows)
        readable(lambda: check_candidate(job.model_copy(update={"items": str(draft)}), out), out)
    if not (out / "manifest.json").is_file() and not (out / ".partial" / "job.json").is_file() and out.is_dir():
        if any(entry.name not in ("exam", "logs", ".partial") for entry in out.iterdir()):
            raise ValueError(f"--out {out} is not empty and holds no candidate; choose another folder")
        if any("items.jsonl" not in entry.name for entry in (out / "exam").glob("*")):
            raise ValueError(f"{out / 'exam'} holds other files than this command's; choose another folder")
    output_folder(out)
    write_jsonl(file, rows)
    manifest = build_candidate(job, out)
    print(
        f"{manifest.recipe}: {manifest.steps} steps, {manifest.tokens} tokens, {len(manifest.leaked_ids)} leaked items"
    )
    print(f"model: {out / 'model'}")
