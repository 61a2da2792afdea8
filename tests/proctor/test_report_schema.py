"""What others script against: summary.json fits its schema; records load in pandas and datasets; figures appear with
their records."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evaluation.protocol import Held
from evaluation.registry import analysis
from evaluation.show.plate import draw, styles
from evaluation.show.win_rates import matrix
from serving.files import read_jsonl
from tests.proctor.scripted import do, scripted

SCHEMA = json.loads((files("proctor.report") / "summary.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    value = scripted()
    value["detection"]["set_tests"] = ["loss_gap"]
    return do(tmp_path_factory.mktemp("schema"), value)


def summary_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "report" / "summary.json").read_text(encoding="utf-8"))
    return found


def test_summary_fits_its_schema(run: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    summary = summary_of(run)
    jsonschema.validate(summary, SCHEMA)
    assert summary["missing"] == []
    for change in ({"schema": 2}, {"leaked": -1}, {"candidates": {"x": {}}}, {"unknown": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**summary, **change}, SCHEMA)


def test_every_key_is_documented(run: Path) -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "results.md").read_text(encoding="utf-8")
    summary = summary_of(run)
    keys = {*summary, *(key for c in summary["candidates"].values() for key in c)}
    missing = {
        k for k in keys if f"`{k}`" not in page and not k.endswith(("_ci", "_ci_note")) and not k.startswith("against_")
    }
    assert not missing


def test_set_tests_stand_on_the_page(run: Path) -> None:
    assert summary_of(run)["candidates"]["one"]["set_tests"]["loss_gap"]["p_value"] is not None
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert "Set-level tests" in page
    assert (run / "report" / "tables" / "set_tests.csv").is_file()


def test_records_load_in_pandas_and_datasets(run: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is missing")
    datasets = pytest.importorskip("datasets", reason="datasets is missing")
    for file in sorted(run.glob("stages/*/records.jsonl")):
        rows = read_jsonl(file)
        frame = pandas.read_json(file, lines=True)
        assert len(frame) == len(rows)
        key = "id" if file.parent.name.startswith("detect") else "item_id"
        assert [str(v) for v in frame[key]] == [row[key] for row in rows]
        loaded = datasets.load_dataset("json", data_files=str(file), split="train", cache_dir=str(tmp_path))
        assert loaded[key] == [row[key] for row in rows]


def test_figures_that_analyses_draw_of_themselves(tmp_path: Path) -> None:
    deltas = {"one": {"rephrase": {"difference": -0.2, "interval": [-0.3, -0.1]}, "permute": {"difference": 0.1}}}
    churn = {"one": {"both": 3, "only_before": 5, "only_after": 1, "neither": 3}}
    given: dict[str, dict[str, Any]] = {
        "probing": {"probing": {"deltas": deltas, "churn": churn}},
        "items": {
            "item_curves": {
                "theta": [-1, 0, 1],
                "characteristic": {"a": [0.2, 0.5, 0.8], "b": [0.1, 0.2, 0.9]},
                "abilities": {"one": 0.5, "stranger": -0.5},
            }
        },
        "question_map": {"question_map": {"points": [[0, 1, "grown"], [1, 0, "seed"]], "silhouette": 0.25}},
    }
    drawn = {}
    for kind, plots in given.items():
        hook, one = analysis(kind).plots, Held(options={}, metrics={}, plots=plots)  # type: ignore[attr-defined]
        held = {"a": one, "b": one, "none": Held(options={}, metrics={})}
        drawn |= {found.name: found for found in draw(lambda h=hook, s=held: h(s, styles(["one", "two"])), tmp_path)}  # type: ignore[misc]
        assert hook({"none": held["none"]}, {}) == []
    wanted = ("probing_deltas", "probing_churn", "item_curves", "question_map")
    assert set(drawn) == {f"{name}.{end}" for name in wanted for end in ("a", "b")}
    assert "percentage points (95% interval)" in drawn["probing_deltas.a"].svg
    assert "Silhouette of the groups: 0.25." in drawn["question_map.b"].caption


def test_win_rates_by_hand() -> None:
    scores = {"a": {"1": 2.0, "2": 1.0, "3": 0.0}, "b": {"1": 1.0, "2": 1.0, "4": 5.0}, "c": {"9": 0.0}}
    assert matrix(scores) == [[None, 0.75, None], [0.25, None, None], [None, None, None]]
