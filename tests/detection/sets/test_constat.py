from __future__ import annotations

import numpy as np
import pytest

from detection import sets
from detection.method import Context
from detection.sets.constat import expected_accuracy, read_standings

HEADER = "model,accuracy,reference_accuracy,items,reference_items\n"


def table(candidate, models=6):
    """Reference models that are 0.1 better on the benchmark than on the reference benchmark."""
    rows = [f"m{i},{0.4 + 0.08 * i:.2f},{0.3 + 0.08 * i:.2f},1000,1000\n" for i in range(models)]
    return HEADER + "".join(rows) + f"x,{candidate},0.5,1000,1000\n"


def run(drive, path, **options):
    context = Context(seed=1, options={"constat": {"file": str(path), "resamples": 100, **options}})
    return drive(sets.build(["constat"], context)[0].examine([], []), None)


def test_a_straight_line_is_continued_and_stays_within_0_and_1():
    x = np.array([0.2, 0.3, 0.4, 0.5, 0.6])
    assert expected_accuracy(0.45, x, x + 0.1) == pytest.approx(0.55)
    assert expected_accuracy(0.8, x, x + 0.1) == pytest.approx(0.9)
    assert expected_accuracy(1.0, x, x + 0.1) == 1.0
    assert expected_accuracy(0.0, x, x - 0.1) == 0.0
    assert expected_accuracy(0.3, x[:4], x[:4]) is None
    assert expected_accuracy(0.3, x[:4], x[:4], (0.25, 0.25)) == pytest.approx(0.3)
    ties = np.append(x, 0.6)
    assert expected_accuracy(0.6, ties, np.append(x + 0.1, 0.9)) == pytest.approx(0.8, abs=0.1)  # mean of the two


def test_a_model_above_the_line_is_contaminated_and_one_on_it_is_not(drive, write_text):
    found, asked = run(drive, write_text("a.csv", table(0.8)), model="x")
    assert asked in ([], [[]])
    assert found["n"] == 6
    assert found["expected"] == pytest.approx(0.6, abs=0.01)
    assert found["delta"] == pytest.approx(0.2, abs=0.01)
    assert 0.1 < found["delta_ci"][0] < found["delta"] < found["delta_ci"][1] < 0.3
    assert found["p_value"] == 1 / 101
    assert found["extrapolated"] is False
    clean, _ = run(drive, write_text("b.csv", table(0.6)), model="x")
    assert 0.1 < clean["p_value"] < 0.9
    forgiven, _ = run(drive, write_text("c.csv", table(0.8)), model="x", margin=0.3)
    assert forgiven["p_value"] > 0.9


def test_the_examined_models_accuracies_may_be_options(drive, write_text):
    path = write_text("a.csv", table(0.6).rsplit("x,", 1)[0])
    named = {"accuracy": 0.8, "reference_accuracy": 0.9, "items": 200, "reference_items": 200}
    found, _ = run(drive, path, **named)
    assert (found["n"], found["extrapolated"]) == (6, True)
    for text in (table(0.6).rsplit("x,", 1)[0], "model,accuracy,reference_accuracy\n"):
        with pytest.raises(ValueError, match=r"constat.accuracy: name the examined model's row|no column 'items'"):
            run(drive, write_text("b.csv", text))


def test_five_reference_models_are_the_least(drive, write_text):
    assert run(drive, write_text("five.csv", table(0.8, models=5)), model="x")[0]["n"] == 5
    with pytest.raises(ValueError, match="4 reference models; constat needs at least 5"):
        run(drive, write_text("four.csv", table(0.8, models=4)), model="x")


def test_equal_reference_accuracies_give_no_spline(drive, write_text):
    rows = "".join(f"m{i},0.5,0.5,100,100\n" for i in range(6))
    found, _ = run(drive, write_text("flat.csv", HEADER + rows + "x,0.9,0.5,100,100\n"), model="x")
    assert found["p_value"] is None
    assert "fewer than 5 different" in found["reason"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,accuracy\n", r"s.csv:1: no column 'reference_accuracy'"),
        ("", r"s.csv:1: no column 'model'"),
        (HEADER + "a,1.5,0.5,9,9\n", r"s.csv:2: column accuracy is '1.5'"),
        (HEADER + "a,0.5,nan,9,9\n", r"s.csv:2: column reference_accuracy is 'nan'"),
        (HEADER + "a,0.5,0.5,0,9\n", r"s.csv:2: column items is '0'"),
        (HEADER + "a,0.5\n", r"s.csv:2: column reference_accuracy is None"),
        (HEADER + "a,0.5,0.5,9,9\na,0.5,0.5,9,9\n", r"s.csv:3: column model is 'a'"),
    ],
)
def test_wrong_tables_are_named(write_text, text, message):
    with pytest.raises(ValueError, match=message):
        read_standings(write_text("s.csv", text), None, None)


def test_bytes_that_are_no_text_and_missing_options(tmp_path, write_text):
    (tmp_path / "b.csv").write_bytes(b"model,\xff\n")
    with pytest.raises(ValueError, match=r"b.csv: byte 7 is not UTF-8"):
        read_standings(tmp_path / "b.csv", 1, 1)
    with pytest.raises(ValueError, match=r"constat.file: Field required"):
        sets.build(["constat"], Context())
    with pytest.raises(ValueError, match="has no row for 'y'; its models: m0"):
        run(None, write_text("a.csv", table(0.6)), model="y")
    with pytest.raises(ValueError, match="both chance and reference_chance"):
        run(None, write_text("a.csv", table(0.6)), model="x", chance=0.25)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x" * 140_000 + ",0.5,0.5,100,100", r"c\.csv:2: not CSV: field larger than field limit"),
        ("a,0.5,0.5,1" + "0" * 5000 + ",100", r"c\.csv:2: column items is '10+'; it must be a number of items, from 1"),
        ("a,0.5,0.5,100,1" + "0" * 30, r"c\.csv:2: column reference_items is '10+'; it must be a number of items"),
    ],
    ids=["field", "digits", "items"],
)
def test_what_is_too_large_is_named(write_text, row, message):
    path = write_text("c.csv", f"model,accuracy,reference_accuracy,items,reference_items\n{row}\n")
    with pytest.raises(ValueError, match=message):
        read_standings(path, None, None)
