"""proctor rate: out to annotators, back, and on to proctor agree."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evaluation.items import make_item
from proctor.cli import app
from tests.proctor.command import proctor

Write = Callable[[str, str], Path]

ITEMS = [
    make_item(benchmark="arc", split="test", subject="s", question=f"Question {i}?", choices=["a", "b"], answer="A")
    for i in range(6)
]


def jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with two candidates' interviews, a letter exam and a detection stage."""
    folder = tmp_path / "run"
    files = {"experiment.yaml": "name: r\n", "exam/items.jsonl": jsonl([item.to_json() for item in ITEMS])}
    for offset, candidate in enumerate(("normal", "cheater")):
        files[f"stages/kieval.{candidate}/records.jsonl"] = jsonl(
            [
                {
                    "item_id": item.id,
                    "first_answer": {"text": "A. a", "letter": "A", "correct": True},
                    "rounds": [
                        {
                            "question": f"={candidate}{number}?",
                            "reply": f"because {number}",
                            "verdict": None,
                            "overall": 1 + (number + offset) % 4,
                        }
                    ],
                    "stop_reason": "rounds",
                }
                for number, item in enumerate(ITEMS)
            ]
        )
    letter = {"item_id": ITEMS[0].id, "mode": "letter", "correct": True, "answer": "A", "prediction": "A"}
    files["stages/static.normal/records.jsonl"] = jsonl([letter])
    files["stages/detect.normal/records.jsonl"] = jsonl([{"question": "a text", "answer": "not a conversation"}])
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def call(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["rate", *map(str, arguments)])
    assert result.exception is None, result.exception
    return result.output


def refuse(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["rate", *map(str, arguments)])
    assert isinstance(result.exception, ValueError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def fill(sheet: Path, out: Path, rate: Callable[[int, str], object]) -> Path:
    """A filled copy, as a spreadsheet program saves it; ``rate`` gives the cell of (row, column)."""
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for number, row in enumerate(rows):
        row |= {name: str(rate(number, name)) for name in row if name.startswith("rater_")}
    with out.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    return out


def test_out_back_and_on_to_agree(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "rate"
    said = call("export", "--records", run, "--n", 8, "--seed", 5, "--parts", "rounds", "--out", out)
    assert "8 conversations of 2 benchmark x candidate" in said
    key = [json.loads(line) for line in (out / "key.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(row["candidate"] for row in key) == ["cheater"] * 4 + ["normal"] * 4
    assert {row["benchmark"] for row in key} == {"arc"}
    assert all(row["question"].startswith("=") for row in key)
    sheet = (out / "sheet.csv").read_text(encoding="utf-8-sig")
    assert sheet.count(",'=") == 8
    assert "kieval.normal" not in sheet + (out / "rate.html").read_text(encoding="utf-8")
    assert "nothing to do" in call("export", "--records", run, "--n", 8, "--seed", 5, "--parts", "rounds", "--out", out)
    assert "other inputs" in refuse("export", "--records", run, "--n", 7, "--out", out)

    overall = [int(row["kieval_overall"]) for row in key]
    filled = fill(
        out / "sheet.csv", tmp_path / "f.csv", lambda i, name: overall[i] if name == "rater_1" else (i and 2) or ""
    )
    back = tmp_path / "back"
    said = call("import", "--sheet", filled, "--key", out / "key.jsonl", "--out", back)
    assert "rater_1                rated 8 of 8" in said
    assert "rater_2                rated 7 of 8" in said
    found = json.loads((back / "metrics.json").read_text(encoding="utf-8"))
    assert found["rated"] == {"rater_1": 8, "rater_2": 7}
    assert found["cohen_kappa"]["mean"] == 0  # a constant annotator agrees by chance only
    assert found["cohen_kappa"]["pairs"][0]["n"] == 7
    assert found["fleiss_kappa"]["rows_left_out"] == 1
    ratings, agreement = str(back / "ratings.jsonl"), str(tmp_path / "a")
    columns = ["--human", "rater_1", "--score", "kieval_overall"]
    done = CliRunner().invoke(app, ["agree", "--data", ratings, *columns, "--out", agreement])
    assert done.exception is None, done.exception
    agreed = json.loads((tmp_path / "a" / "metrics.json").read_text(encoding="utf-8"))
    assert agreed["scores"]["kieval_overall"]["spearman"]["value"] == pytest.approx(1)
    assert agreed["scores"]["kieval_overall"]["n"] == 8


def test_first_answers_and_files_outside_a_run(run: Path, tmp_path: Path, write_text: Write) -> None:
    records = run / "stages" / "kieval.normal" / "records.jsonl"
    assert "6 conversations (all there are; 100 were asked for)" in call(
        "export", "--records", f"mine={records}", "--parts", "answers", "--items", run / "exam" / "items.jsonl",
        "--out", tmp_path / "a",
    )  # fmt: skip
    key = [json.loads(line) for line in (tmp_path / "a" / "key.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["candidate"] for row in key} == {"mine"}
    assert {row["reference"] for row in key} == {"A. a"}
    # without items the first answers can't be shown; a user's own file says what it holds
    own = write_text("own.jsonl", jsonl([{"question": "q", "reply": "r", "candidate": "c", "benchmark": "b"}]))
    said = call("export", "--records", run / "stages" / "kieval.normal", "--records", own, "--out", tmp_path / "b")
    assert "7 conversations" in said
    assert "2 benchmark x candidate" in said


def test_a_run_that_has_not_begun(tmp_path: Path, write_text: Write) -> None:
    begun = write_text("begun/experiment.yaml", "name: b\n").parent
    said = " ".join(refuse("export", "--records", begun, "--out", tmp_path / "out").split())
    assert "has no finished exam" in said
    assert not (tmp_path / "out").exists()


def test_refused_exports(run: Path, tmp_path: Path, write_text: Write) -> None:
    out = ("--out", tmp_path / "o")
    assert "there is no such file or folder" in refuse("export", "--records", tmp_path / "none", *out)
    assert "neither experiment.yaml (a run) nor records.jsonl" in refuse("export", "--records", run / "stages", *out)
    letters = run / "stages" / "static.normal"
    assert "no record holds a question and a reply to rate" in refuse("export", "--records", letters, *out)
    assert "--parts is 'some'" in refuse("export", "--records", run, "--parts", "some", *out)
    broken = write_text("broken.jsonl", '{"question": "q"}\n{"\n')
    assert "broken.jsonl:2: not valid JSON" in refuse("export", "--records", broken, *out)
    assert "broken.jsonl:1: not an exam item" in refuse(
        "export", "--records", run, "--items", write_text("broken.jsonl", '{"question": "q"}\n'), *out
    )
    assert not (tmp_path / "o").exists()


def test_refused_imports(run: Path, tmp_path: Path, write_text: Write) -> None:
    export, out = tmp_path / "rate", ("--out", tmp_path / "o")
    call("export", "--records", run, "--n", 4, "--out", export)
    key = ("--key", export / "key.jsonl")
    assert "nothing is rated" in refuse("import", "--sheet", export / "sheet.csv", *key, *out)
    wrong = fill(export / "sheet.csv", tmp_path / "w.csv", lambda i, name: 5 if i == 1 else 2)
    assert "column rater_1: '5' is no rating" in refuse("import", "--sheet", wrong, *key, *out)
    name = json.loads((export / "key.jsonl").read_text(encoding="utf-8").splitlines()[0])["id"]
    taken = write_text("t.csv", f"id,candidate\n{name},3\n")
    assert "annotator 'candidate': the name must be" in refuse("import", "--sheet", taken, *key, *out)
    other = write_text("other.jsonl", jsonl([{"id": "z", "candidate": "c", "question": "q", "reply": "r"}] * 2))
    assert "other.jsonl:2, column id: the id 'z' is repeated" in refuse(
        "import", "--sheet", wrong, "--key", other, *out
    )
    assert not (tmp_path / "o").exists()


def test_the_exit_code_of_a_refusal(tmp_path: Path) -> None:
    done = proctor("rate", "export", "--records", tmp_path / "none", "--out", tmp_path / "o")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
