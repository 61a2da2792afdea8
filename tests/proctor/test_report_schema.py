"""What others script against: summary.json fits its schema; records load in pandas and datasets; figures appear with
their records."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from proctor.report.figures.win_rates import matrix
from proctor.report.write import write_report
from proctor.run_folder.run import open_run
from serving.files import read_jsonl, write_json
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


def test_figures_of_other_stages_appear_with_their_data(run: Path) -> None:
    deltas = {"one": {"rephrase": {"difference": -0.2, "interval": [-0.3, -0.1]}, "permute": {"difference": 0.1}}}
    plots = {
        "win_rates": {"names": ["one", "two"], "matrix": [[None, 0.75], [0.25, None]], "about": "merge sort"},
        "probing": {
            "deltas": deltas,
            "churn": {"one": {"both": 3, "only_before": 5, "only_after": 1, "neither": 3}},
        },
        "item_curves": {
            "theta": [-1, 0, 1],
            "characteristic": {"a": [0.2, 0.5, 0.8], "b": [0.1, 0.2, 0.9]},
            "abilities": {"one": 0.5, "stranger": -0.5},
        },
        "question_map": {"points": [[0, 1, "grown"], [1, 0, "seed"]], "silhouette": 0.25},
    }
    before = {p.stem for p in (run / "report" / "figures").glob("*.svg")}
    write_json(run / "stages" / "static.one" / "plots.json", plots)
    names = write_report(open_run(run), run / "report")
    (run / "stages" / "static.one" / "plots.json").unlink()
    after = {Path(name).stem for name in names if name.endswith(".png")}
    wanted = {"win_rates", "probing_deltas", "probing_churn", "item_curves", "question_map"}
    assert wanted & before <= {"win_rates"}
    assert wanted <= after
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert "percentage points (95% interval)" in page
    assert "Silhouette of the groups: 0.25." in page


def test_win_rates_by_hand() -> None:
    scores = {"a": {"1": 2.0, "2": 1.0, "3": 0.0}, "b": {"1": 1.0, "2": 1.0, "4": 5.0}, "c": {"9": 0.0}}
    assert matrix(scores) == [[None, 0.75, None], [0.25, None, None], [None, None, None]]
