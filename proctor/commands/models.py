"""models import, models inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evaluation.show.terminal_text import harmless

app = typer.Typer(help="Import and inspect model folders.", no_args_is_help=True)


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(metavar="GGUF|DIR")],
    out: Annotated[Path, typer.Argument(metavar="OUT")],
    base: Annotated[str | None, typer.Option(help="Of an adapter: its base; what it names by default.")] = None,
) -> None:
    """Turn a GGUF file, a model folder or an adapter (merged into its base) into a safetensors folder."""
    from serving.importing import import_model

    print(f"model: {import_model(source, out, base=base)}")


@app.command("inspect")
def inspect(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Model folder, adapter or GGUF file (or 'embedded').")],
) -> None:
    """Show a model's architecture, size, context, template, special tokens and memory."""
    from serving.inspecting import inspect_model

    for line in filter(None, inspect_model(folder)):
        print(harmless(line))
