"""Exams of people's own files, through the command: what the records, the metrics and the report say of each fault."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from proctor.report.provenance import failures
from proctor.report.run_data import RunData
from proctor.run_folder.run import open_run
from serving.files import read_json, read_jsonl
from tests.proctor.command import experiment, proctor, write_experiment
from tests.serving.serving_models import byte_tokenizer, save_model

HEADER = ["id", "question", "A", "B", "C", "D", "answer"]
LONG = "The quick brown fox jumps over the lazy dog. "
EXAM = [
    ["plain", "Which planet is known as the red one?", "Venus", "Mars", "Jupiter", "Saturn", "B"],
    ["padded", "What is 2 + 2?", "3", "4", "5", "N/A", "B"],
    ["long", "NOT " * 900 + "Which fox is quick?", "brown", "red", "white", "grey", "A"],
    ["wide", LONG * 20 + "Who jumps?", "fox", "dog", "cat", "bird", "A"],
]
POOL = [
    ["copy", "what is  2 + 2", "4", "3", "6", "5", "A"],
    ["p1", LONG + "Which is a colour?", "red", "two", "dog", "fox", "A"],
    ["p2", LONG + "Which is a number?", "red", "two", "dog", "fox", "B"],
]


def table(path: Path, rows: list[list[str]], delimiter: str) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=delimiter).writerows([HEADER, *rows])
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exam by semicolons, a pool by tabs, and a model with a context of 512 tokens."""
    folder = tmp_path_factory.mktemp("faults")
    save_model(folder / "model", byte_tokenizer(adds_bos=True), max_position_embeddings=512)
    table(folder / "exam_test.csv", EXAM, ";")
    table(folder / "pool.tsv", POOL, "\t")
    return folder


@pytest.fixture(scope="module")
def run(files: Path) -> Path:
    """One run with the exam in two modes."""
    value: dict[str, Any] = experiment(
        files / "model",
        models={"m": {"path": str(files / "model"), "engine": "transformers"}},
        benchmark={
            "format": "table",
            "path": str(files / "exam_test.csv"),
            "exemplars": str(files / "pool.tsv"),
        },
        candidates={"given": {"model": "m"}},
        detection=None,
        exams={
            mode: {"protocol": "static", "options": {"mode": mode, "shots": 2}, "limit": None}
            for mode in ("letter", "generate")
        },
    )
    del value["training"], value["roles"]
    result = proctor("run", write_experiment(files, value), "--out", files / "run")
    assert result.returncode == 0, result.stdout + result.stderr
    return files / "run"


def by_name(run: Path, stage: str) -> dict[str, dict[str, Any]]:
    items = {row["id"]: row["source_id"] for row in read_jsonl(run / "exam" / "items.jsonl")}
    return {items[row["item_id"]]: row for row in read_jsonl(run / "stages" / stage / "records.jsonl")}


def test_records(run: Path) -> None:
    letter, generate = by_name(run, "letter.given"), by_name(run, "generate.given")
    for found in (letter, generate):
        assert found["plain"].keys().isdisjoint({"tied", "exemplar_copies", "exemplars_dropped", "cut"})
        assert found["padded"]["exemplar_copies"] == 1
        assert found["padded"]["options"] == 3
        assert (found["long"]["status"], found["long"]["correct"]) == ("unscored", None)
        assert found["wide"]["exemplars_dropped"] >= 1
        assert found["wide"]["status"] != "unscored"
    assert letter["long"]["cut"] > 2000
    assert (generate["long"]["finish_reason"], generate["long"]["reply"]) == ("context", "")


def test_metrics(run: Path) -> None:
    for stage in ("letter.given", "generate.given"):
        found = read_json(run / "stages" / stage / "metrics.json")
        assert (found["n"], found["overlong"], found["unscored"]) == (4, 1, 1)
        assert (found["fewer_exemplars"], found["exemplar_copies"], found["tied"]) == (1, 1, 0)
        assert found["accuracy"] == found["right"] / 3
        assert found["chance"] == pytest.approx((1 / 4 + 1 / 3 + 1 / 4) / 3)


def test_report(run: Path) -> None:
    said = {row["what"]: row["count"] for row in failures(RunData(open_run(run))) if row["stage"] == "letter.given"}
    assert said == {
        "items without a result": 1,
        "items longer than the model's context, not scored": 1,
        "items with fewer exemplars, to fit the context": 1,
        "items with copies among the exemplars, left out": 1,
    }
    pages = "".join(page.read_text(encoding="utf-8") for page in sorted((run / "report" / "transcripts").glob("*.js")))
    assert "tokens longer than the context" in pages
    assert "exemplars did not fit" in pages
    assert "1 items without the N/A or null among their options" in (run / "exam" / "log.txt").read_text("utf-8")


def test_ties_and_sums_ad_hoc(files: Path, tmp_path: Path) -> None:
    """A model whose head is 0 finds all options of a length alike: the keys' places must not matter."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(files / "model")
    with torch.no_grad():
        model.get_output_embeddings().weight.zero_()
    model.save_pretrained(tmp_path / "flat")
    byte_tokenizer(adds_bos=True).save_pretrained(tmp_path / "flat")
    exam = table(tmp_path / "ties.csv", [[f"i{n}", f"Which letter, {n}?", *"wxyz", "A"] for n in range(4)], ",")
    result = proctor(
        "evaluate", "--candidate", tmp_path / "flat", "--format", "table", "--benchmark", exam, "--mode", "cloze",
        "--engine", "transformers", "--out", tmp_path / "out",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "  tied: 4" in result.stdout
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert (metrics["accuracy"], metrics["acc_norm"], metrics["acc_bytes"]) == (0.25, 0.25, 0.25)
    (first, *_) = read_jsonl(tmp_path / "out" / "records.jsonl")
    assert (first["status"], first["tied"], first["credit"], first["correct"]) == ("tied", list("ABCD"), 0.25, None)
