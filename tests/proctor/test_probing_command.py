"""Probing through the experiment and the verb ``proctor probing``, with scripted models."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evaluation.exam_set import read_exam
from evaluation.items import Item, make_item
from proctor.cli import app
from serving.files import read_json, read_jsonl, write_json, write_jsonl
from tests.proctor.scripted import do, scripted


def call(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["probing", *map(str, arguments)])
    if result.exception:
        raise result.exception
    return result.output


def exam(folder: Path, items: list[Item], marks: str, options: int = 2) -> Path:
    """A finished static exam: ``+-`` by item."""
    folder.mkdir(parents=True)
    write_jsonl(folder / "items.jsonl", [item.to_json() for item in items])
    write_jsonl(
        folder / "records.jsonl",
        [
            {"item_id": item.id, "subject": item.subject, "correct": mark == "+", "options": options}
            for item, mark in zip(items, marks, strict=True)
        ],
    )
    return folder


def items(n: int, *, of: list[Item] | None = None) -> list[Item]:
    return [
        make_item(
            benchmark="b",
            split="test",
            subject="odd" if i % 2 else "even",
            question=f"Question {i}" + (" again?" if of else "?"),
            choices=["yes it is", "no it is not"],
            answer="A",
            source_id=of[i].id if of else "",
        )
        for i in range(n)
    ]


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    vanilla = items(6)
    probed = items(6, of=vanilla)
    return {
        "base:vanilla": exam(tmp_path / "v", vanilla, "+++---"),
        "base:all": exam(tmp_path / "a1", probed, "++----", 5),
        "base:all.set-2": exam(tmp_path / "a2", probed, "+-----", 5),
        "cheater:vanilla": exam(tmp_path / "cv", vanilla, "++++++"),
        "cheater:all": exam(tmp_path / "ca1", probed, "+++---", 5),
        "cheater:all.set-2": exam(tmp_path / "ca2", probed, "+-----", 5),
    }


def named(folders: dict[str, Path]) -> list[str]:
    return [f"{name}={path}" for name, path in folders.items()]


def test_compare_by_hand(folders: dict[str, Path], tmp_path: Path) -> None:
    build, judge = tmp_path / "build", tmp_path / "judge"
    first = read_jsonl(folders["base:vanilla"] / "items.jsonl")[0]["id"]
    write_json(build / "metrics.json", {"fallbacks": {"all": {first: ["p1"]}, "all.set-2": {}}})
    write_json(judge / "metrics.json", {"pairs": 121, "recall": 0.5, "recall_interval": None, "false_alarms": 0.25,
               "false_alarms_interval": None, "informedness": 0.25})  # fmt: skip
    out = tmp_path / "out"
    text = call("compare", *named(folders), "--out", out, "--built", build, "--calibration", judge, "--clean", "base",
                "--contaminated", "cheater", "--size", "base=0.135")  # fmt: skip
    assert "judge: recall 0.500, false alarms 0.250" in text
    assert "warning: the judge turned down 50% of the broken rewrites" in text
    metrics = read_json(out / "metrics.json")
    row = metrics["candidates"]["base"]["b"]["sets"]["all"]
    assert row["over_sets"]["vanilla"]["mean"] == 0.5
    assert row["over_sets"]["probed"]["mean"] == pytest.approx(0.25)  # 2/6 and 1/6
    assert row["over_sets"]["probed"]["sd"] == pytest.approx(0.1178511, abs=1e-6)
    assert row["sets"]["1"]["churn"]["counts"] == {"OT/PT": 2, "OT/PF": 1, "OF/PT": 0, "OF/PF": 3}
    assert row["fallback_rate"]["mean"] == pytest.approx(1 / 12)
    assert row["without_fallbacks"]["n"] == [5, 6]
    assert row["without_fallbacks"]["delta"]["mean"] == pytest.approx((-0.2 - 2 / 6) / 2)
    against = metrics["contamination"]["candidates"]["cheater"]["all"]
    assert against["fidelity"]["mean"] == pytest.approx((5 / 6 + 4 / 6) / 2)
    assert against["resistance"]["mean"] == pytest.approx((5 / 6 + 1) / 2)
    assert against["resistance_vanilla"]["value"] == 0.5
    assert against["excess_drop"]["mean"] == pytest.approx(((3 - 1) / 6 + (5 - 2) / 6) / 2)
    assert "no evidence of contamination" in metrics["contamination"]["caution"]
    assert [row["subject"] for row in metrics["candidates"]["base"]["b"]["subjects"]] == ["even", "odd"]
    assert metrics["abilities"]["points"] == 2
    assert "nothing to do" in call("compare", *named(folders), "--out", out, "--built", build, "--calibration", judge,
                                   "--clean", "base", "--contaminated", "cheater", "--size", "base=0.135")  # fmt: skip


def test_without_calibration_there_is_a_warning(folders: dict[str, Path], tmp_path: Path) -> None:
    assert "the judge was not calibrated" in call("compare", *named(folders), "--out", tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["base=x"], "not of the form CANDIDATE:SET=FOLDER"),
        (["base:p9=x"], "no set 'p9'"),
        (["base:all={base:all}"], "base has no vanilla exam"),
        (["base:vanilla={base:vanilla}"], "base has no probed exam"),
        (["base:vanilla={base:vanilla}", "base:all={base:vanilla}"], "has no source_id"),
        (["base:vanilla={base:vanilla}", "base:vanilla={base:vanilla}"], "named twice"),
        (["base:vanilla={base:vanilla}", "base:all={base:all}", "--clean", "x"], "no such candidate"),
        (["base:vanilla={base:vanilla}", "base:all={base:all}", "--size", "base=big"], "in billions"),
        (["base:vanilla={base:vanilla}", "base:all={base:all}", "--contaminated", "base"], "give --clean"),
        (["base:vanilla={base:vanilla}", "base:all={base:all}", "--built", "nowhere"], "no metrics.json"),
    ],
)
def test_what_compare_refuses(folders: dict[str, Path], tmp_path: Path, arguments: list[str], message: str) -> None:
    given = list(arguments)
    for name, path in folders.items():
        given = [text.replace(f"{{{name}}}", str(path)) for text in given]
    with pytest.raises(ValueError, match=message):
        call("compare", *given, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


REPLIES = [
    {"match": "The new question:", "reply": "Tell me, if you can, what this asks for in other words?"},
    {"match": "The background:", "reply": "People have wondered about such things for ages."},
    {"match": "The new option:", "reply": "Something that nobody has thought of"},
]


def test_probing_in_an_experiment(tmp_path: Path) -> None:
    """From the build to the human check; scripted agents: no option can be reworded, numbers get lost."""
    models = {
        "m": {"path": "none", "engine": "scripted"},
        "w": {"path": "w", "engine": "scripted", "engine_args": {"replies": REPLIES}},
        "j": {"path": "j", "engine": "scripted",
              "engine_args": {"replies": [{"match": "May the new", "reply": '{"comment": "x", "verdict": "yes"}'}]}},
    }  # fmt: skip
    builds = {
        "probed": {
            "builder": "probing",
            "roles": {"prober": "w", "evaluator": "j"},
            "options": {"probes": ["all", "p1", "p5"], "sets": 2, "attempts": 2},
        }
    }
    exams = {
        "vanilla": {"protocol": "static"},
        "all": {"protocol": "static", "build": "probed"},
        "all2": {"protocol": "static", "build": "probed", "set": "all.set-2"},
        "p5": {"protocol": "static", "build": "probed", "set": "p5"},
        "judge": {"protocol": "probing.calibrate"},
    }
    value: dict[str, Any] = scripted(
        models=models, candidates={"one": {"model": "m"}}, builds=builds, exams=exams, detection=None,
        benchmark={"format": "embedded", "limit": 40},
    )  # fmt: skip
    run = do(tmp_path, value)
    build = run / "stages" / "build.probed"
    metrics = read_json(build / "metrics.json")
    assert set(metrics["stages"]) == {"p1", "p1+p4", "p2", "p2+p5", "p5"}
    assert metrics["stages"]["p2"]["accepted"] == 0  # "This is scripted reply": no options
    assert metrics["stages"]["p5"]["fallback"] == 0
    assert "code: number changed" in metrics["stages"]["p1"]["turned_down"]
    vanilla, probed = read_exam(run / "exam"), read_exam(build)
    assert [item.source_id for item in probed.items] == [item.id for item in vanilla.items]
    assert all(len(item.choices) == 5 for item in probed.items)
    stages = run / "stages"
    out = tmp_path / "compared"
    text = call("compare", f"one:vanilla={stages / 'vanilla.one'}", f"one:all={stages / 'all.one'}",
                f"one:all.set-2={stages / 'all2.one'}", f"one:p5={stages / 'p5.one'}", "--built", build,
                "--calibration", stages / "judge.one", "--out", out)  # fmt: skip
    assert "one on embedded: 40 items" in text
    assert "RE(p5)" in text
    row = read_json(out / "metrics.json")["candidates"]["one"]["embedded"]["sets"]["all"]
    assert row["sets"]["1"]["chance"] == {"vanilla": pytest.approx(0.25), "probed": pytest.approx(0.2)}
    assert row["without_fallbacks"]["n"][0] < 40
    check_people(tmp_path, build, run / "exam" / "items.jsonl")
    same = call("agents", build, build, "--out", tmp_path / "agents")
    assert "p1" in same
    assert read_json(tmp_path / "agents" / "metrics.json")["stages"]["p1"]["attempts"]["difference"] == 0.0


def check_people(tmp_path: Path, build: Path, vanilla: Path) -> None:
    out = tmp_path / "sheet"
    call("export", build, "--vanilla", vanilla, "--out", out, "--n", 6, "--annotators", 2, "--sets", "p1,p5")
    key = read_jsonl(out / "key.jsonl")
    assert sorted(row["ability"] for row in key) == ["DK", "DK", "DK", "LU", "LU", "LU"]
    rows = list(csv.reader(io.StringIO((out / "sheet.csv").read_text(encoding="utf-8-sig"))))
    assert rows[0][5:] == ["same (rater_1)", "right (rater_1)", "same (rater_2)", "right (rater_2)"]
    assert "set" not in rows[0]
    for number, row in enumerate(rows[1:]):
        row[5:] = ["yes", "yes", "Yes" if number else "no", ""]
    filled = tmp_path / "filled.csv"
    with filled.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=";").writerows(rows)
    call("import", "--sheet", filled, "--key", out / "key.jsonl", "--out", tmp_path / "people",
         "--group", "rater_1=experts")  # fmt: skip
    metrics = read_json(tmp_path / "people" / "metrics.json")
    assert metrics["same"]["yes"] == pytest.approx(11 / 12)
    assert metrics["right"] == {**metrics["right"], "yes": 1.0, "n": 6, "agreement": None}
    assert metrics["same"]["groups"]["experts"]["yes"] == 1.0
    assert metrics["same"]["groups"]["others"]["yes"] == pytest.approx(5 / 6)
    assert metrics["same"]["agreement"]["fleiss_kappa"]["n"] == 6
    filled.write_text(filled.read_text().replace("Yes", "perhaps"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"filled.csv:\d+, column same \(rater_2\): 'perhaps' is no answer"):
        call("import", "--sheet", filled, "--key", out / "key.jsonl", "--out", tmp_path / "no")
