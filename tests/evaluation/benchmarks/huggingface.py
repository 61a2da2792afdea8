"""Writes rows in the forms in which Hugging Face's libraries keep them on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

Rows = Sequence[Mapping[str, Any]]
Form = Literal["dataset", "dict", "snapshot", "parquet", "arrow"]
FORMS: tuple[Form, ...] = ("dataset", "dict", "snapshot", "parquet", "arrow")

# The names that Hugging Face's repositories give the splits.
_NAMES = {"val": "validation"}


def write_rows(folder: Path, rows: Rows, *, form: Form, split: str = "test", config: str = "main") -> Path:
    """The rows under ``folder``, in one form; returns the path to load."""
    import datasets

    datasets.disable_progress_bars()
    data = datasets.Dataset.from_list([dict(row) for row in rows])
    name = _NAMES.get(split, split)
    home = folder / config
    home.mkdir(parents=True, exist_ok=True)
    if form == "dataset":
        data.save_to_disk(home / name)
        return home / name
    if form == "dict":
        datasets.DatasetDict({name: data}).save_to_disk(home)
        return home
    if form == "arrow":
        data.save_to_disk(home / name)
        return next((home / name).glob("*.arrow"))
    file = home / f"{name}-00000-of-00001.parquet"
    data.to_parquet(file)
    return file if form == "parquet" else folder
