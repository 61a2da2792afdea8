"""proctor agree, from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from proctor.cli import app
from tests.proctor.command import proctor

Write = Callable[[str, str], Path]

ROWS = """\
anna,ben,judge,set,reference,reply
1,2,0.2,x,the cat sat on the mat,a cat sat on mat
2,1,0.1,x,the cat sat on the mat,
3,4,0.4,x,,a cat
4,,0.3,y,a dog ran,a dog ran
,5,0.5,y,a dog ran,a dog
,,0.9,y,a dog ran,a dog
5,5,,y,a dog ran,dogs run
"""


def metrics(out: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    return value


def refuse(*arguments: object) -> str:
    """The message of a refused call."""
    result = CliRunner().invoke(app, ["agree", *map(str, arguments)])
    assert isinstance(result.exception, ValueError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def test_scores_of_two_annotators(write_text: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    data = write_text("data.csv", ROWS)
    call = ["agree", "--data", data, "--human", "anna", "--human", "ben", "--score", "judge", "--by", "set"]
    done = proctor(*call, "--reference", "reference", "--reply", "reply", "--resamples", 200, "--out", out)
    assert done.returncode == 0, done.stderr
    found = metrics(out)
    assert found["n_rows"] == 7
    judge = found["scores"]["judge"]
    # means 1.5 1.5 3.5 4 5 against 0.2 0.1 0.4 0.3 0.5: 8 of 9 untied pairs in order
    assert judge["n"] == 5
    assert judge["left_out"] == {"human: no value": 1, "score: no value": 1}
    assert judge["kendall"]["value"] == pytest.approx(7 / (9 * 10) ** 0.5)
    assert judge["pairwise_accuracy"] == {
        "value": pytest.approx(8 / 9), "n": 9, "human_ties": "left_out", "score_ties": "half",
    }  # fmt: skip
    assert found["scores"]["rouge1"]["left_out"] == {"human: no value": 1, "score: no reference text": 1}
    assert "tok:13a" in found["text_baselines"]["bleu"]
    assert "exact and stem matching only" in done.stdout
    # anna and ben share 4 rows: 1 of 4 right, by chance (1 + 1 + 0 + 0 + 1) / 16
    assert found["annotators"]["cohen_kappa"]["mean"] == pytest.approx((1 / 4 - 3 / 16) / (1 - 3 / 16))
    assert found["annotators"]["fleiss_kappa"]["rows_left_out"] == 3
    groups = found["by"]["values"]
    assert {name: (part["n_rows"], part["scores"]["judge"]["n"]) for name, part in groups.items()} == {
        "x": (3, 3), "y": (4, 2),
    }  # fmt: skip
    assert groups["y"]["scores"]["judge"]["pearson"]["reason"] == "n is 2; a correlation needs at least 3 rows"
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (rows[0]["row"], rows[0]["human"], rows[0]["left_out"]) == (2, 1.5, {})
    assert rows[6]["left_out"] == {"judge": "score: no value"}

    files = {path.name: path.read_bytes() for path in out.iterdir()}
    again = proctor(*call, "--reference", "reference", "--reply", "reply", "--resamples", 200, "--out", out)
    assert again.returncode == 0
    assert again.stdout.startswith("nothing to do: done already")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == files
    other = proctor(*call, "--resamples", 200, "--out", out)
    assert other.returncode == 2
    assert "holds the results of other inputs" in other.stderr


def test_labels(write_text: Write, tmp_path: Path) -> None:
    rows = [{"h": h, "s": s} for h, s in zip("aaabbb", "aabbba", strict=True)]
    data = write_text("data.jsonl", "".join(json.dumps(row) + "\n" for row in [*rows, {"h": None, "s": "a"}]))
    result = CliRunner().invoke(
        app,
        [
            "agree",
            "--kind",
            "labels",
            "--data",
            str(data),
            "--human",
            "h",
            "--score",
            "s",
            "--out",
            str(tmp_path / "o"),
        ],
    )
    assert result.exception is None, result.output
    found = metrics(tmp_path / "o")["scores"]["s"]
    assert found["cohen_kappa"]["value"] == pytest.approx(1 / 3)
    assert found["cohen_kappa"]["interval"][0] < 1 / 3 < found["cohen_kappa"]["interval"][1]
    assert found["confusion"] == {"labels": ["a", "b"], "human_by_score": [[2, 1], [1, 2]]}
    assert found["left_out"] == {"human: no value": 1}
    assert "kappa 0.3333" in result.output
    assert "left out of s: 1 (human: no value)" in result.output


def test_weights_reach_both_kappas(write_text: Write, tmp_path: Path) -> None:
    data = write_text("data.csv", "a,b,s\n1,1,1\n2,2,2\n3,1,1\n3,3,3\n")
    options = [
        "--kind",
        "labels",
        "--weights",
        "quadratic",
        "--human",
        "a",
        "--score",
        "b",
        "--out",
        str(tmp_path / "o"),
    ]
    assert CliRunner().invoke(app, ["agree", "--data", str(data), *options]).exception is None
    assert metrics(tmp_path / "o")["scores"]["b"]["cohen_kappa"]["value"] == pytest.approx(1 - 1 / 1.625)
    options = ["--weights", "linear", "--human", "a", "--human", "b", "--score", "s", "--out", str(tmp_path / "p")]
    assert CliRunner().invoke(app, ["agree", "--data", str(data), *options]).exception is None
    assert metrics(tmp_path / "p")["annotators"]["cohen_kappa"]["mean"] == pytest.approx(0.5)


VOTES = [
    ("ant", "bee", 1, 1, "model_a"), ("bee", "ant", 1, 1, "model_b"), ("cat", "bee", 1, 2, "model_a"),
    ("ant", "cat", 2, 1, "tie"), ("ant", "bee", 2, 2, "model_a"), ("bee", "ant", 2, 2, "model_a"),
]  # fmt: skip
VERDICTS = [
    ("bee", "ant", 1, 1, "model_b"), ("bee", "cat", 1, 2, "model_b"), ("cat", "ant", 2, 1, "tie (inconsistent)"),
    ("ant", "bee", 2, 2, "model_b"),
]  # fmt: skip


def votes(rows: list[tuple[str, str, int, int, str]]) -> str:
    names = ("model_a", "model_b", "question_id", "turn", "winner")
    return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)


def test_votes(write_text: Write, tmp_path: Path) -> None:
    human, judge = write_text("human.jsonl", votes(VOTES)), write_text("judge.jsonl", votes(VERDICTS))
    call = ["agree", "--kind", "votes", "--data", human, "--judge-data", judge, "--by", "turn", "--out", tmp_path / "o"]
    done = proctor(*call)
    assert done.returncode == 0, done.stderr
    found = metrics(tmp_path / "o")
    # people: first, second, tie, tie; judge: first, second, tie, second
    assert found["scores"]["with_ties"]["n"] == 4
    assert found["scores"]["with_ties"]["cohen_kappa"]["value"] == pytest.approx((3 / 4 - 5 / 16) / (1 - 5 / 16))
    assert found["scores"]["ties_dropped"]["cohen_kappa"]["value"] == 1
    assert found["scores"]["ties_dropped"]["n"] == 2
    assert found["by"]["values"]["2"]["n_rows"] == 2
    assert (found["human_votes"], found["judge_votes"]) == (6, 4)
    assert "kappa 0.6364" in done.stdout


def test_what_the_command_refuses(write_text: Write, tmp_path: Path) -> None:
    data, out = write_text("data.csv", ROWS), tmp_path / "out"
    base = ("--data", data, "--out", out)
    one = (*base, "--human", "anna", "--score", "judge")
    assert "--kind is 'ranks'; it must be one of scores, labels, votes" in refuse(*base, "--kind", "ranks")
    assert "whose ratings? give --human COL" in refuse(*base)
    assert "what is to agree with them?" in refuse(*base, "--human", "anna")
    assert refuse(*one, "--by", "sets").endswith(
        "data.csv has no column 'sets'; it has: anna, ben, judge, set, reference, reply"
    )
    assert "no column 'eve'" in refuse(*one, "--human", "eve")
    assert "--score judge is given twice" in refuse(*one, "--score", "judge")
    assert "--score anna is a --human column" in refuse(*one, "--score", "anna")
    assert "data.csv:2, column set: 'x' is not a number" in refuse(*one, "--score", "set")
    assert "--reference needs both --reference COL and --reply COL" in refuse(*one, "--reference", "reference")
    assert "--wordnet needs both" in refuse(*one, "--wordnet", tmp_path)
    texts = ("--reference", "reference", "--reply", "reply")
    assert "they need --kind scores" in refuse(*one, *texts, "--kind", "labels")
    assert "is not a folder of WordNet's database files" in refuse(*one, *texts, "--wordnet", tmp_path)
    assert "nothing is downloaded" in refuse(*one, *texts, "--bertscore-model", "roberta-large")
    assert "--bertscore-layer needs --bertscore-model" in refuse(*one, *texts, "--bertscore-layer", 3)
    assert "weights linear needs labels that are numbers, but one is 'x'" in refuse(
        *base, "--human", "anna", "--score", "set", "--kind", "labels", "--weights", "linear"
    )
    assert "belongs to --kind votes" in refuse(*one, "--judge-data", data)
    assert "give --judge-data FILE" in refuse(*base, "--kind", "votes")
    assert "--human has no meaning for --kind votes" in refuse(*one, "--kind", "votes", "--judge-data", data)
    assert "has no column 'question_id'" in refuse(*base, "--kind", "votes", "--judge-data", data)
    assert "there is no file" in refuse("--data", tmp_path / "none.csv", "--out", out, "--human", "a", "--score", "b")
    assert not out.exists()


def test_the_exit_code_of_a_refusal(write_text: Write, tmp_path: Path) -> None:
    done = proctor(
        "agree", "--data", write_text("data.csv", ROWS), "--human", "x", "--score", "judge", "--out", tmp_path / "o"
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")


def test_votes_that_share_nothing(write_text: Write, tmp_path: Path) -> None:
    human, judge = write_text("human.jsonl", votes(VOTES[:1])), write_text("judge.jsonl", votes(VERDICTS[3:]))
    call = ("--kind", "votes", "--data", human, "--judge-data", judge, "--out", tmp_path / "o")
    assert "have no (question, turn, pair of models) in common" in refuse(*call)
    assert "--by judge: votes can be parted by question_id, turn" in refuse(*call, "--by", "judge")
