"""What a model says is data: it breaks no prompt, no record, no page."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from evaluation.show.table import Cell, figure
from tests.proctor.command import proctor, write_experiment

HOSTILE = (
    "</div><script>alert(1)</script>{{ 7*7 }}{% raw %} \x1b[31mred\x1b[0m \u202eright to left <img src=x onerror=y>."
)


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    value = {
        "name": "hostile",
        "models": {
            "m": {"path": "none", "engine": "scripted"},
            "x": {
                "path": "none",
                "engine": "scripted",
                "engine_args": {"replies": [{"match": ".", "reply": HOSTILE}]},
            },
        },
        "base": "x",
        "roles": {"interactor": "x", "evaluator": "m"},
        "benchmark": {"format": "embedded", "limit": 4},
        "candidates": {"x": {"model": "x"}},
        "exams": {"kieval": {"protocol": "kieval", "options": {"rounds": 2}}},
        "detection": None,
    }
    result = proctor("run", write_experiment(folder, value), "--out", folder / "run")
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / "run"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_shows_hostile_text_as_text(hostile_run: Path) -> None:
    page = (hostile_run / "report" / "index.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    assert not {"img", "iframe", "link", "object"} & set(tags.seen)
    assert tags.seen.count("script") == 2  # data, and our own
    assert not re.search(r"(?:src|href)=.?(?:https?:)?//", page)
    pages = "".join(p.read_text(encoding="utf-8") for p in (hostile_run / "report" / "transcripts").glob("page-*.js"))
    assert "{{ 7*7 }}" in pages
    assert "</div><script>alert(1)</script>" in pages  # data in a script file; the page writes it as text


def test_the_records_keep_it_whole(hostile_run: Path) -> None:
    lines = (hostile_run / "stages" / "kieval.x" / "records.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 4
    assert all(row["rounds"][0]["reply"] == HOSTILE for row in rows)
    assert all(row["rounds"][0]["verdict"] for row in rows)


def test_figures() -> None:
    assert figure(None, None, 100, 1) == Cell("-")
    assert figure(0.6875, [0.514, 0.8204], 100, 1) == Cell("68.8 [51.4, 82.0]", 0.6875, 51.4, 82.04, 1)
    assert figure(0.0, None, 1, 2) == Cell("0.00", 0.0, digits=2)


def test_report_of_an_unfinished_run_says_what_is_missing(hostile_run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(hostile_run, copy)
    (copy / "stages" / "kieval.x" / "DONE").unlink()
    result = proctor("report", copy)
    assert result.returncode == 0, result.stderr
    assert "not finished: kieval.x" in result.stdout
    summary = json.loads((copy / "report" / "summary.json").read_text(encoding="utf-8"))
    assert summary["missing"] == ["kieval.x"]
    assert summary["candidates"]["x"]["kieval"] is None
    page = (copy / "report" / "index.html").read_text(encoding="utf-8")
    assert "This run is not finished." in page
    assert "Missing: kieval.x." in page


def test_nothing_to_report(hostile_run: Path, tmp_path: Path) -> None:
    result = proctor("report", tmp_path)
    assert result.returncode == 2
    assert "is not a run folder" in result.stderr
    shutil.copy(hostile_run / "experiment.yaml", tmp_path)
    result = proctor("report", tmp_path)
    assert result.returncode == 2
    assert "not even the exam is frozen" in result.stderr
    assert not (tmp_path / "report" / "index.html").exists()
