"""The command itself: light, offline, and what it lists."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proctor.command import proctor

HEAVY = ("torch", "transformers", "vllm", "numpy", "scipy", "sklearn", "pydantic", "datasets", "peft", "omegaconf")


def test_help_imports_nothing_heavy() -> None:
    code = f"import sys, proctor.cli; print([m for m in {HEAVY!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_help_names_every_verb() -> None:
    text = proctor("--help").stdout
    for verb in ("run", "status", "report", "check", "stage", "evaluate", "detect", "train", "list", "models"):
        assert verb in text


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            "protocols",
            (
                *("static", "kieval", "mt_bench", "pairwise", "lm_examiner", "question_levels"),
                *("probing.calibrate", "idgen"),
            ),
        ),
        ("builders", ("lm_examiner", "probing", "idgen")),
        ("analyses", ("probing", "items", "question_map")),
        (
            "detectors",
            (
                *("loss", "zlib", "min_k", "min_k_plus_plus", "lowercase", "reference", "neighbour", "recall"),
                *("con_recall", "dc_pdd", "pac", "cdd", "guided", "quiz", "ngram_accuracy", "ts_guessing"),
                *("loss_gap", "exchangeability", "codec", "constat", "overlap", "guided_set"),
            ),
        ),
        (
            "benchmarks",
            (
                *("jsonl", "arc", "mmlu", "hellaswag", "ceval", "gsm8k", "bbh", "mt_bench", "self_instruct"),
                *("table", "embedded"),
            ),
        ),
        (
            "recipes",
            (
                *("normal", "pt_cheater", "sft_cheater", "mt_bench_cheater", "washed", "paraphrase_cheater"),
                "augmented",
            ),
        ),
        ("engines", ("vllm", "transformers", "scripted")),
    ],
)
def test_lists(kind: str, expected: tuple[str, ...]) -> None:
    lines = proctor("list", kind).stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(expected)


def test_detect_interface(tmp_path: Path, tiny_model: Path, write_text: Callable[[str, str], Path]) -> None:
    rows = [
        {"text": f"Text number {i} speaks of {'apples' if i % 2 else 'stars and of ships'}.", "label": i % 2}
        for i in range(12)
    ]
    rows += [{"text": "", "label": 0, "id": "empty"}, {"text": "No label here, but an id.", "id": "mine"}]
    data = write_text("texts.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    arguments = ("detect", "--model", tiny_model, "--data", data, "--engine", "transformers")
    arguments += ("--methods", "min_k,min_k_plus_plus,loss,zlib", "--out", tmp_path / "out")
    result = proctor(*arguments)
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in (tmp_path / "out" / "scores.jsonl").read_text().splitlines()]
    assert len(lines) == len(rows)
    assert [line["id"] for line in lines[-2:]] == ["empty", "mine"]
    assert set(lines[0]["scores"]) >= {"loss", "zlib", "min_k@20", "min_k_plus_plus@20"}
    assert lines[-2]["scores"]["loss"] is None
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["min_k@20"]["n"] == 12
    assert 0 <= metrics["min_k@20"]["auc"] <= 1
    assert len(metrics["min_k@20"]["auc_ci"]) == 2
    assert "tpr_at_5" in metrics["min_k@20"]
    again = proctor(*arguments)
    assert (again.returncode, "nothing to do" in again.stdout) == (0, True)
    other = proctor(*arguments, "--seed", "7")
    assert other.returncode == 2
    assert "other inputs" in other.stderr


def test_evaluate_interface(tmp_path: Path, tiny_model: Path) -> None:
    out = tmp_path / "out"
    result = proctor(
        "evaluate", "--protocol", "static", "--mode", "letter", "--shots", "5", "--candidate", tiny_model,
        "--format", "embedded", "--limit", "10", "--engine", "transformers", "--out", out,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert len(rows) == 10
    for row in rows:
        assert set(row) >= {"item_id", "correct", "prediction", "answer", "log_likelihoods"}
        best = max(range(4), key=lambda i: row["log_likelihoods"][i])
        assert row["prediction"] == "ABCD"[best]
        assert row["correct"] == (row["prediction"] == row["answer"])
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["accuracy"] == sum(row["correct"] for row in rows) / 10


def test_models_import_and_inspect(tmp_path: Path, tiny_model: Path) -> None:
    result = proctor("models", "import", tiny_model, tmp_path / "copy")
    assert result.returncode == 0, result.stderr
    text = proctor("models", "inspect", tmp_path / "copy").stdout
    assert "LlamaForCausalLM" in text
    assert "context       4096 tokens" in text
    result = proctor("models", "import", tiny_model, tmp_path / "copy")
    assert result.returncode == 2
