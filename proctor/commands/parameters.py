"""Options that several verbs take, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Option("--out", help="Folder for the results.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of everything that is drawn.")]
Engine = Annotated[str, typer.Option(help="auto, vllm, transformers or scripted.")]
Dtype = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
Schedule = Annotated[str, typer.Option(help="lockstep, batch-invariant or fast.")]
Length = Annotated[int | None, typer.Option(min=64, help="Context in tokens (the models' own if left out).")]
Options = Annotated[list[str], typer.Option("-o", "--option", help="Protocol option key=value (YAML value).")]
Format = Annotated[str | None, typer.Option(help="See 'proctor list benchmarks'; jsonl where left out.")]
Split = Annotated[str | None, typer.Option(help="Split of the benchmark.")]
Columns = Annotated[str | None, typer.Option(help="Column map (format table), as YAML: {question: q}.")]
Duplicates = Annotated[str, typer.Option(help="error, or report and leave out.")]
Drawn = Annotated[int | None, typer.Option("--limit", min=1, help="Only so many items, drawn with the seed.")]
Candidates = Annotated[list[str], typer.Option("--candidate", help="NAME=DIR of a model (repeatable).")]
