"""Faulty disks and other writers: outputs of the same size and other content, ledger lines of another shape, damaged
side files. Nothing of it is reported as true, and nothing of it ends a report."""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from proctor.cli import app
from proctor.report.write import write_report
from proctor.run_folder.run import open_run
from proctor.runner.local import mend
from proctor.runner.one_stage import do_stage
from serving.ledger import Ledger, read_lines
from tests.proctor.scripted import do, scripted


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    exams = {"static": {"protocol": "static"}}
    return do(tmp_path_factory.mktemp("damage"), scripted(exams=exams, benchmark={"format": "embedded", "limit": 6}))


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def damage(file: Path) -> bytes:
    """One digit becomes another; the former content."""
    data = bytearray(file.read_bytes())
    former = bytes(data)
    place = next(i for i in range(len(data) // 2, len(data)) if chr(data[i]).isdigit())
    data[place] = ord("1") if data[place] != ord("1") else ord("2")
    file.write_bytes(data)
    return former


@pytest.mark.parametrize("name", ["stages/static.one/records.jsonl", "stages/static.two/metrics.json"])
def test_changed_outputs_are_left_out_of_a_report(run: Path, name: str) -> None:
    damage(run / name)
    result = CliRunner().invoke(app, ["report", str(run)])
    assert result.exit_code == 0, result.output
    stage, file = name.split("/")[1:]
    assert f"warning: {stage} is left out: {file} changed after it was done" in result.output
    summary = json.loads((run / "report" / "summary.json").read_text(encoding="utf-8"))
    assert summary["damaged"] == [f"{stage}: {file}"]
    assert summary["missing"] == [stage]
    assert f"{stage}: {file}. These files are not what their stage wrote" in (run / "report" / "index.html").read_text()


def test_changed_items_are_not_reported(run: Path) -> None:
    damage(run / "exam" / "items.jsonl")
    with pytest.raises(ValueError, match=r"items.jsonl changed after stage exam was done, .* 'proctor run'"):
        write_report(open_run(run), run / "report")


@pytest.mark.parametrize("name", ["exam/items.jsonl", "stages/static.one/records.jsonl", "report/summary.json"])
def test_changed_outputs_are_made_again(run: Path, name: str) -> None:
    former = damage(run / name)
    opened = open_run(run)
    (line,) = mend(opened)
    assert f"{Path(name).name} changed after the stage was done" in line
    stage = "exam" if name.startswith("exam") else name.split("/")[-2]
    assert do_stage(opened, stage)
    assert (run / name).read_bytes() == former
    assert list(mend(opened)) == []


def test_a_marker_of_an_earlier_version_is_checked_too(run: Path) -> None:
    marker = run / "stages" / "static.one" / "DONE"
    row = json.loads(marker.read_text(encoding="utf-8"))
    del row["hashes"]
    marker.write_text(json.dumps(row), encoding="utf-8")
    assert open_run(run).stage("static.one").damaged() == []
    damage(marker.with_name("records.jsonl"))
    assert open_run(run).stage("static.one").damaged() == ["metrics.json", "records.jsonl"]


SHAPES = [
    {"batch": 5},
    {"batch": "b", "keys": "k", "requests": [], "answers": []},
    {"batch": "b", "keys": ["k"], "requests": [{"prompt": "p"}], "answers": [5]},
    {"batch": "b", "keys": ["k"], "requests": [{"prompt": "p"}], "answers": [{"text": "t"}]},
    {"batch": "b", "keys": ["k"], "requests": [{"prompt": "p"}], "answers": [{"logprobs": "x"}]},
    {
        "batch": "b",
        "keys": ["k"],
        "requests": [{"prompt": "p"}],
        "answers": [{"logprobs": [0.1], "ids": [], "segments": []}],
    },
    {"batch": "b", "keys": [["k"]], "requests": [{"prompt": "p"}], "answers": [{"text": "t"}]},
    {"batch": "b", "keys": ["k"], "requests": [7], "answers": [{"text": "t"}]},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_ledger_line_of_another_shape_is_a_bad_line(shape: dict[str, object], tmp_path: Path) -> None:
    body = json.dumps(shape).encode()
    (tmp_path / "a.jsonl").write_bytes(b"%08x %s\n" % (zlib.crc32(body), body))
    ledger = Ledger(tmp_path)
    assert (ledger.bad_lines, len(ledger)) == (1, 0)
    assert list(read_lines(tmp_path)) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"roles": [1], "seconds": {}}', "\xff", "[" * 100_000])
def test_damaged_side_files_do_not_end_a_report(run: Path, text: str) -> None:
    for name in ("usage.json", "time.json"):
        (run / "stages" / "static.one" / name).write_text(text, encoding="latin1")
    (run / "environment.json").write_text(text, encoding="latin1")
    write_report(open_run(run), run / "report")
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    if text != "[]":
        assert "usage.json" in page
        assert "damaged and left out" in page


def test_a_report_says_that_the_token_tables_are_gone(run: Path) -> None:
    shutil.rmtree(run / "ledger")
    write_report(open_run(run), run / "report")
    assert "The token tables of one are missing" in (run / "report" / "index.html").read_text(encoding="utf-8")
