"""The dose-response table and figure: passes through origins, gains by hand, the same bytes again."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from evaluation.show.plate import LOOK, Drawing, save
from proctor.experiment.experiment import Experiment
from proctor.report.dose import _difference, passes, plate, table
from proctor.report.item_score import Scored

CANDIDATES: dict[str, Any] = {
    "pt_10_washed": {"recipe": "washed", "origin": "pt_10"},
    "pt_10": {"recipe": "pt_cheater"},
    "pt_3": {"recipe": "pt_cheater", "options": {"repeats": 3}},
    "normal": {"recipe": "normal"},
}


def experiment(candidates: dict[str, Any]) -> Experiment:
    return Experiment.model_validate(
        {"name": "dose", "models": {"smol": "embedded"}, "base": "smol", "candidates": candidates}
    )


@pytest.fixture
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.stages.train.resolve_model", lambda spec: Path("model"))


@pytest.mark.usefixtures("_no_model")
def test_a_washed_candidate_has_the_passes_of_its_origin() -> None:
    found = experiment(CANDIDATES)
    assert found.in_training_order() == ["pt_10", "pt_10_washed", "pt_3", "normal"]
    assert passes(found) == {"normal": 0, "pt_3": 3, "pt_10": 10, "pt_10_washed": 10}


def test_origins_in_a_circle_and_unknown_ones_are_refused() -> None:
    circle = {"a": {"recipe": "washed", "origin": "b"}, "b": {"recipe": "washed", "origin": "a"}}
    with pytest.raises(ValueError, match="go round in a circle: a <- b <- a"):
        experiment(circle)
    with pytest.raises(ValueError, match="origin: 'pt_1' is not an entry of candidates; did you mean 'pt_10'"):
        experiment({"pt_10": {"recipe": "pt_cheater"}, "w": {"recipe": "washed", "origin": "pt_1"}})
    with pytest.raises(ValueError, match="'other' is not trained here, so nobody knows what it has seen"):
        experiment({"other": {"model": "smol"}, "w": {"recipe": "washed", "origin": "other"}})


def test_a_gain_is_paired_item_by_item() -> None:
    mine, theirs = (
        [
            Scored(str(i), half, right, True)
            for i, (half, right) in enumerate([("leaked", x)] * 3 + [("untouched", 0.0)])
        ]
        for x in (1.0, 0.0)
    )
    assert _difference(mine, theirs, "leaked", 0) == {
        "value": 1.0,
        "ci": None,
        "ci_note": "3 of 3 at 1: up to 71 % may lie elsewhere",
    }
    assert _difference(mine, theirs, "untouched", 0)["ci"] is None
    assert _difference(mine[:3], theirs[:3], "untouched", 0) is None


def rows() -> list[dict[str, Any]]:
    def row(name: str, recipe: str, repeats: int, gain: float, auc: float, origin: str | None = None) -> dict[str, Any]:
        halves = {"leaked": {"value": gain, "ci": [gain - 0.1, gain + 0.1]}, "untouched": None}
        return {
            **{"candidate": name, "recipe": recipe, "origin": origin, "repeats": repeats, "gains": {"static": halves}},
            **{"since_origin": {"static": halves} if origin else {}, "auc": {"value": auc, "ci": [auc - 0.1, 1.0]}},
            **dict.fromkeys(("auc_over_base", "auc_against_pt", "auc_since_origin")),
        }

    return [
        row("normal", "normal", 0, 0.0, 0.6),
        row("pt_3", "pt_cheater", 3, 0.4, 0.9),
        row("pt_10", "pt_cheater", 10, 0.7, 1.0),
        row("w", "washed", 10, 0.65, 0.98, "pt_10"),
    ]


def test_the_table_says_what_was_measured() -> None:
    made = table(rows())
    assert made.header[3:6] == ("static: gain leaked", "static: gain untouched", "Min-K% AUC")
    body = [[cell.text for cell in row] for row in made.rows]
    assert body[2][:6] == ["pt_10", "pt_cheater", "10", "70.0 [60.0, 80.0]", "-", "1.00 [0.90, 1.00]"]
    assert (body[2][8], body[3][8]) == ("-", "65.0 [55.0, 75.0]")
    assert table([]).rows == []


def test_the_figure_has_axes_units_and_the_same_bytes_again(tmp_path: Path) -> None:
    from matplotlib import rc_context

    def drawn(folder: Path) -> Drawing:
        with rc_context(LOOK):
            return save(plate(rows(), {"auc": 0.64}), folder)

    one = drawn(tmp_path / "one").svg
    drawn(tmp_path / "two")
    for kind in ("svg", "png"):
        first = (tmp_path / "one" / f"dose_response.{kind}").read_bytes()
        assert first == (tmp_path / "two" / f"dose_response.{kind}").read_bytes()
    said = " ".join("".join(node.itertext()) for node in ElementTree.fromstring(one).iter())
    for words in ("passes over the leaked items", "points (static)", "Min-K% AUC", "pt_cheater, washed"):
        assert words in said
