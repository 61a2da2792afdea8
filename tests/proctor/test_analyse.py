"""proctor analyse, and the verbs of proctor idgen, from the command line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation import run_builder as building
from evaluation.benchmarks import load
from evaluation.idgen.build import IDGen
from evaluation.items import Item, make_item
from evaluation.registry import build_builder as build
from proctor.checks.experiment import preflight
from proctor.cli import app
from proctor.experiment.experiment import Experiment
from proctor.experiment.load import resolve
from serving.files import read_json, read_jsonl, write_json, write_jsonl
from serving.model.spec import ModelSpec
from tests.proctor.scripted import scripted

MATRIX = "candidate,q1,q2,q3\nweak,0,0,1\nstrong,0,3,2\n"


def do(*arguments: object) -> None:
    app([str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "m.csv"
    path.write_text(MATRIX, encoding="utf-8")
    return path


def test_a_table_is_analysed_once(matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    line = ("analyse", "--matrix", matrix, "--out", out, "--short", 1, "--resamples", 20)
    do(*line)
    said = capsys.readouterr().out
    assert "warning: 2 candidates: the discrimination index is coarse" in said
    with (out / "items.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    shown = [(row["difficulty"], row["discrimination"], row["label_name"], row["label_of_the_index"]) for row in rows]
    # two candidates are no evidence of discrimination, and their resamples say so
    assert shown[:2] == [("3.0", "0.0", "Low", "0"), ("1.5", "1.0", "", "3")]
    assert "by chance: discrimination " in said
    assert len(read_json(out / "curves.json")["theta"]) == 81
    assert all((out / name).stat().st_size for name in ("items.svg", "curves.svg", "information.png", "matrix.csv"))
    before = (out / "items.svg").read_bytes()
    do(*line)
    assert "nothing to do" in capsys.readouterr().out
    assert (out / "items.svg").read_bytes() == before


def test_records_and_two_sets_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, score in (("a", 0), ("b", 3)):
        rows = [{"item_id": str(i), "score": score, "max_score": 3} for i in range(4)]
        write_jsonl(tmp_path / f"exam.{name}" / "records.jsonl", rows)
    files = [f"a={tmp_path / 'exam.a'}", f"b={tmp_path / 'exam.b' / 'records.jsonl'}"]
    do("analyse", "--records", files[0], "--records", files[1], "--out", tmp_path / "out", "--no-fit")
    assert "set: mean 50.000, variance 5000.000" in capsys.readouterr().out
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text("c,q,r\na,0,0\nb,3,3\n")
    other.write_text("c,x,y\na,1,1\nb,2,2\n")
    do("analyse", "--matrix", one, "--against", other, "--out", tmp_path / "both", "--no-fit")
    assert read_json(tmp_path / "both" / "metrics.json")["against"]["discrimination"]["difference"] == pytest.approx(
        2 / 3
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of --matrix FILE, --records"),
        (("--matrix", "{m}", "--short", 9), "--short is 9, but there are 3 items"),
        (("--matrix", "{m}", "--fraction", 0.7), "--fraction is 0.7"),
        (("--matrix", "{m}", "--cuts", "a,b"), "--cuts 'a,b': give three numbers"),
        (("--matrix", "{m}", "--cuts", "3,2,1"), "three that rise"),
        (("--matrix", "{m}", "--max-score", 2), "'3' is no score; it must be a number in 0..2"),
        (("--matrix", "{m}", "--generator", "weak"), "'weak' wrote the exam it sat; leave it out"),
        (("--matrix", "{m}", "--generator", "who"), "--generator who: there is no such candidate"),
        (("--matrix", "{m}.none"), "can't be read"),
        (("--run", "{m}.none", "--exam", "x"), "there is no folder 'stages' in it"),
        (("--run", "{m}.none"), "--run and --exam belong together"),
        (("--matrix", "{m}", "--score", "x"), "--score names a field of records"),
    ],
)
def test_what_cannot_be_analysed(matrix: Path, tmp_path: Path, arguments: tuple[Any, ...], message: str) -> None:
    filled = [str(argument).replace("{m}", str(matrix)) for argument in arguments]
    with pytest.raises(ValueError, match=message.replace("(", r"\(")) as caught:
        do("analyse", *filled, "--out", tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_the_generators_row_is_marked(matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    do("analyse", "--matrix", matrix, "--generator", "weak", "--allow-generator", "--no-fit", "--out", tmp_path / "out")
    assert "marked: weak wrote the exam it sat" in capsys.readouterr().out


def grown(number: int = 12) -> list[Item]:
    return [
        make_item(
            benchmark="idgen",
            split="",
            subject="science" if i % 2 else "history",
            question=f"{'prove' if i % 2 else 'name'} thing number {i}",
            choices=(),
            answer="",
            references=(f"R{i}",),
            source_id=f"s{i}",
        )
        for i in range(number)
    ]


@pytest.fixture
def built(tmp_path: Path) -> Path:
    items = grown()
    records = [
        {
            "item_id": item.source_id,
            "class": "general",
            "cost": {"generator": {"calls": 2, "prompt": 10, "output": 5}},
            "drafts": [
                {
                    "question": item.question,
                    "strategy": "field",
                    "step": "",
                    "reason": "",
                    "passed": ["instruction", "response", "usability", "reference"],
                    "critic": {"difficulty": index % 3},
                    "reference": {
                        "answers": [{"role": "answerer_1", "text": item.references[0]}],
                        "chosen": 0,
                        "tie": False,
                    },
                }
            ],
            "category": item.subject,
        }
        for index, item in enumerate(items)
    ]
    write_jsonl(tmp_path / "build" / "items.jsonl", [item.to_json() for item in items])
    write_jsonl(tmp_path / "build" / "records.jsonl", records)
    summary = build("idgen", {}, seed=0).finish([], records).summary
    write_json(tmp_path / "build" / "metrics.json", summary)
    write_json(tmp_path / "build" / "usage.json", {"roles": {"generator": {"seconds": 6.0}}})
    return tmp_path / "build"


def test_grown_items_are_a_benchmark(built: Path) -> None:
    assert [item.id for item in load("jsonl", built / "items.jsonl")] == [item.id for item in grown()]


def test_the_funnel_of_two_builds(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    do("idgen", "funnel", "--build", built, "--build", built, "--out", tmp_path / "f")
    said = capsys.readouterr().out
    assert "general  usability       24 came    24 went on" in said
    assert "per kept item:" in said
    found = read_json(tmp_path / "f" / "funnel.json")
    kept = found["kept"]
    assert found["funnel"]["general"][-1]["kept"] == kept
    assert found["cost"]["per_item"]["seconds"] == 12 / kept
    assert (tmp_path / "f" / "funnel.svg").stat().st_size


@pytest.mark.parametrize("kind", ["usability", "references"])
def test_sheets_go_out_and_come_back(
    kind: str, built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "x" / "sheet.csv"
    do("idgen", "export", kind, "--build", built, "--out", tmp_path / "x", "--annotator", "ann")
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    for row in rows[1:]:
        row[-1] = "1"
    with sheet.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    call = ["idgen", "import", "--key", tmp_path / "x" / "key.jsonl", "--sheet", sheet, "--out", tmp_path / "y"]
    do(*call, *(["--build", built] if kind == "references" else []))
    assert "100.0%" in capsys.readouterr().out
    if kind == "references":
        assert len(read_jsonl(tmp_path / "y" / "items.jsonl")) == 12
    with pytest.raises(ValueError, match="holds an export already"):
        do("idgen", "export", kind, "--build", built, "--out", tmp_path / "x", "--annotator", "ann")


def test_a_build_without_items_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no items\.jsonl; give a build that made items"):
        do("idgen", "export", "references", "--build", tmp_path, "--out", tmp_path / "x", "--annotator", "ann")
    assert not (tmp_path / "x").exists()


def test_estimators_are_trained_saved_and_applied(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"item": item.id, "label": 3 if i % 2 else 0, "difficulty": 1.0 + i % 2} for i, item in enumerate(grown())]
    write_jsonl(tmp_path / "analysis" / "rows.jsonl", rows)
    items, out = built / "items.jsonl", tmp_path / "e"
    call = ["idgen", "estimate", "--items", items, "--analysis", tmp_path / "analysis", "--out", out, "--folds", 4]
    do(*call, "--judged", built / "records.jsonl")
    assert "baseline: accuracy 1.000, majority class" in capsys.readouterr().out
    assert not [file for file in out.rglob("*") if file.suffix in (".pkl", ".pickle", ".joblib", ".bin")]
    do("idgen", "predict", "--estimators", out, "--items", items, "--out", tmp_path / "p.jsonl")
    found = read_jsonl(tmp_path / "p.jsonl")
    assert [row["label"] for row in found] == [3 if i % 2 else 0 for i in range(12)]
    assert all(abs(sum(row["probabilities"].values()) - 1) < 1e-5 for row in found)
    with pytest.raises(ValueError, match="--folds is 13, but only 12"):
        do(*call[:-1], 13, "--out", tmp_path / "z")


Value = Callable[..., dict[str, Any]]


def idgen_experiment(**options: Any) -> dict[str, Any]:
    roles = dict.fromkeys(("generator", "judge", "answerer_1", "answerer_2"), "q")
    return scripted(
        builds={"grown": {"builder": "idgen", "roles": roles, "options": {"classes": "general", **options}}},
        exams={"grown": {"protocol": "idgen", "build": "grown"}},
        detection=None,
    )


def test_the_generator_does_not_sit_its_own_exam() -> None:
    with pytest.raises(ValueError, match=r"candidate 'two' wrote the exam 'grown'.*allow_generator"):
        preflight(resolve(Experiment.model_validate(idgen_experiment())))
    preflight(resolve(Experiment.model_validate(idgen_experiment(allow_generator=True))))
    value = idgen_experiment()
    value["exams"]["grown"]["candidates"] = ["one"]
    preflight(resolve(Experiment.model_validate(value)))


def test_the_checkers_need_different_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_weights", lambda spec: (spec.path, None))
    models = {role: ModelSpec(path="m", engine="scripted") for role in ("checker_1", "checker_2")}
    made: IDGen = build("idgen", {}, seed=0)  # type: ignore[assignment]
    with pytest.raises(ValueError, match="checker_1 and checker_2 have the same weights"):
        building.check_weights(made, models)
    building.check_weights(made, {**models, "checker_2": ModelSpec(path="n", engine="scripted")})
    building.check_weights(build("idgen", {"same_checkers": True}, seed=0), models)
    building.check_weights(build("idgen", {"classes": "general"}, seed=0), {})


def test_predictions_are_json(built: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no baseline estimator"):
        do("idgen", "predict", "--estimators", built, "--items", built / "items.jsonl", "--out", tmp_path / "p.jsonl")
    assert json.loads((built / "metrics.json").read_text())["seeds"] == 12
