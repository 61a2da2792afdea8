"""Published chat files train as they are: FastChat's ShareGPT format and Dolly in Alpaca's."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from training.build import build_candidate
from training.config import TrainingJob
from training.corpora import read_chat

FILES = {"sharegpt-format-fastchat-dummy200.json": 200, "dolly-filtered-first800.json": 800}


@pytest.fixture(params=FILES)
def published(request: pytest.FixtureRequest) -> Path:
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("PROCTOR_DATA", root.parent / "shared" / "data")) / "chat"
    if not folder.is_dir():
        pytest.skip(f"no public chat data at {folder}; set PROCTOR_DATA")
    return folder / request.param


def test_every_row_is_read_or_named(published: Path) -> None:
    rows = json.loads(published.read_text(encoding="utf-8"))
    found = read_chat(published)
    assert len(rows) == FILES[published.name] == len(found.rows) + len(found.duplicates)
    assert all(row.messages[0].role in ("system", "user") for row in found.rows)


def test_it_trains_as_it_is(job: Callable[..., TrainingJob], published: Path, tmp_path: Path) -> None:
    manifest = build_candidate(job(recipe="normal", chat=str(published), chat_rows=6), tmp_path / "out")
    (phase,) = manifest.phases
    assert phase.samples == 6
    assert phase.steps == 3
    assert phase.targets > 6


def test_a_broken_row_is_named_by_file_and_line(published: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(published, tmp_path))
    lines = path.read_text(encoding="utf-8").split("\n")
    key = '"output"' if "dolly" in path.name else '"value"'
    line = next(number for number, text in enumerate(lines, start=1) if number > 40 and key in text)
    braces = (number for number in range(line, 0, -1) if lines[number - 1].strip() == "{")
    opening = next(number for number in braces if _is_row(lines, number))
    lines[line - 1] = lines[line - 1].replace(key, '"other"')
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{path.name}:{opening}: "):
        read_chat(path)


def _is_row(lines: list[str], number: int) -> bool:
    """Whether the brace on this line opens a row, not a turn inside one."""
    indent = len(lines[number - 1]) - len(lines[number - 1].lstrip())
    first = next(line for line in lines if line.strip() == "{")
    return indent == len(first) - len(first.lstrip())
