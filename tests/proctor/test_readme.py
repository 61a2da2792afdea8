"""The README is true: its commands run, its files exist, its figures are the demo's columns."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from proctor.report.contamination import header
from tests.proctor.command import proctor, write_experiment

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    """Every ``proctor`` line of the README's code blocks."""
    blocks = re.findall(r"^```\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line.startswith("proctor ")]


@pytest.fixture(scope="module")
def scripted_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a scripted model: no weights, no torch."""
    folder = tmp_path_factory.mktemp("scripted")
    value = {
        "name": "scripted",
        "models": {"m": {"path": "none", "engine": "scripted"}},
        "base": "m",
        "roles": {"interactor": "m", "evaluator": "m"},
        "benchmark": {"format": "embedded", "limit": 20},
        "candidates": {"normal": {"model": "m"}},
        "exams": {
            "static": {"protocol": "static"},
            "kieval": {"protocol": "kieval", "limit": 3, "options": {"rounds": 2}},
        },
    }
    result = proctor("run", write_experiment(folder, value), "--out", folder / "run")
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / "run"


@pytest.fixture(scope="module")
def benchmark_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small ARC file, MMLU folder, GSM8K file and MT-Bench folder in their publishers' layouts."""
    folder = tmp_path_factory.mktemp("benchmarks")
    arc = folder / "arc.jsonl"
    arc.write_text(
        "".join(
            json.dumps(
                {
                    "id": f"x{i}",
                    "question": {
                        "stem": f"Which number follows {i}?",
                        "choices": [{"text": str(i + 1), "label": "A"}, {"text": str(i + 3), "label": "B"}],
                    },
                    "answerKey": "A",
                }
            )
            + "\n"
            for i in range(70)
        ),
        encoding="utf-8",
    )
    mmlu = folder / "mmlu"
    for split, count in (("dev", 6), ("test", 4)):
        (mmlu / split).mkdir(parents=True)
        rows = [f"In {split}: what is {i} + 1?,{i},{i + 1},{i + 2},{i + 3},B" for i in range(count)]
        (mmlu / split / f"counting_{split}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    gsm8k = folder / "test.jsonl"
    sums = [{"question": f"Ann has {i} pens and buys 4.", "answer": f"So {i + 4}.\n#### {i + 4}"} for i in range(4)]
    gsm8k.write_text("".join(json.dumps(row) + "\n" for row in sums), encoding="utf-8")
    mt_bench = folder / "mt_bench"
    mt_bench.mkdir()
    turns = [{"question_id": i, "category": "writing", "turns": [f"Name river {i}.", "Why?"]} for i in range(3)]
    (mt_bench / "question.jsonl").write_text("".join(json.dumps(row) + "\n" for row in turns), encoding="utf-8")
    return {"arc": arc, "mmlu": mmlu, "gsm8k": gsm8k, "mt_bench": mt_bench}


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory, scripted_run: Path) -> dict[str, Path]:
    """What stands between the commands on human ratings: the key, a filled sheet, the imported ratings."""
    folder = tmp_path_factory.mktemp("rated")
    result = proctor("rate", "export", "--records", scripted_run, "--out", folder / "rating")
    assert result.returncode == 0, result.stderr
    with (folder / "rating" / "sheet.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for number, row in enumerate(rows):
        row |= {"rater_1": str(1 + number % 4), "rater_2": str(1 + number % 3)}
    with (folder / "anna.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    key = folder / "rating" / "key.jsonl"
    result = proctor("rate", "import", "--sheet", folder / "anna.csv", "--key", key, "--out", folder / "rated")
    assert result.returncode == 0, result.stderr
    return {
        "anna.csv": folder / "anna.csv",
        "out/rating/key.jsonl": key,
        "out/rated/ratings.jsonl": folder / "rated" / "ratings.jsonl",
    }


@pytest.mark.parametrize("command", commands())
def test_commands_run(
    command: str,
    tmp_path: Path,
    smollm: Path,
    tiny_model: Path,
    scripted_run: Path,
    benchmark_files: dict[str, Path],
    rated: dict[str, Path],
) -> None:
    words = shlex.split(command)[1:]
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"text": "One text.", "label": 0}\n{"text": "Another one.", "label": 1}\n', encoding="utf-8")
    kind = words[words.index("--format") + 1] if "--format" in words else "arc"
    swap = {
        "DIR": str(tiny_model),
        "PATH": str(benchmark_files[kind]),
        "runs/demo": str(scripted_run),
        "runs/other": str(scripted_run),
        "texts.jsonl": str(texts),
        "runs/demo/stages/kieval.normal": str(scripted_run / "stages/kieval.normal"),
        "configs/experiments/demo.yaml": str(ROOT / "configs/experiments/demo.yaml"),
        **{name: str(path) for name, path in rated.items()},
    }
    words = [swap.get(word, word) for word in words]
    if words[0] == "evaluate":
        words += ["--engine", "transformers", "--limit", "2"]
    if "generate" in words:
        words += ["-o", "max_tokens=8"]
    if "mt_bench" in words:
        words += ["-o", "comment_length=4", "-o", "candidate_tokens=8"]
    if words[0] == "rejudge":
        words += ["--engine", "transformers", "-o", "comment_length=4"]
    if "kieval" in words:
        words += ["-o", "rounds=1", "-o", "comment_length=4", "-o", "candidate_tokens=8", "-o", "interactor_tokens=8"]
    if words[0] == "train":
        words += ["-s", "repeats=1", "-s", "chat_rows=2"]
    result = proctor(*words, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout


def test_its_files_exist() -> None:
    for target in re.findall(r"\]\(([^)h][^)]*)\)", README):
        assert (ROOT / target).is_file(), target
    for folder in re.findall(r"^(\w+)/ ", README, flags=re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder


def test_its_table_has_the_columns_of_the_report() -> None:
    for name in header()[:-1]:
        assert name in README


def test_make_targets() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", text, flags=re.MULTILINE), target
