"""What a model says is data: it breaks no prompt, no record, no page."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from proctor.report.columns import Cell, figure
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
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_shows_hostile_text_as_text(hostile_run: Path) -> None:
    page = (hostile_run / "report" / "index.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    assert not {"script", "img", "iframe", "link"} & set(tags.seen)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7*7 }}" in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_records_keep_it_whole(hostile_run: Path) -> None:
    lines = (hostile_run / "stages" / "kieval.x" / "records.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 4
    assert all(row["rounds"][0]["reply"] == HOSTILE for row in rows)
    assert all(row["rounds"][0]["verdict"] for row in rows)


def test_figures() -> None:
    assert figure(None, None, 100, 1) == Cell("-")
    assert figure(0.6875, [0.514, 0.8204], 100, 1) == Cell("68.8 [51.4, 82.0]", 0.6875)
    assert figure(0.0, None, 1, 2) == Cell("0.00", 0.0)


def test_report_of_an_unfinished_run_is_refused(hostile_run: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(hostile_run, copy)
    (copy / "stages" / "kieval.x" / "DONE").unlink()
    result = proctor("report", copy)
    assert result.returncode == 2
    assert "not done yet: kieval.x" in result.stderr
    result = proctor("report", tmp_path)
    assert result.returncode == 2
    assert "is not a run folder" in result.stderr
