"""Reading a user's file of ratings, and FastChat's votes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.agreement.report import AgreementSettings, Column, label_section, majority_label, mean_rating, usable
from evaluation.agreement.rows import read_table
from evaluation.agreement.votes import labelled, majority, measure, read_votes

Write = Callable[[str, str], Path]


def test_numbers_and_why_there_is_none(write_text: Write) -> None:
    table = read_table(write_text("a.jsonl", '{"s": 1}\n{"s": "2.5"}\n{"s": true}\n{"s": NaN}\n{"s": ""}\n{"t": 1}\n'))
    assert table.columns == ("s", "t")
    values, reasons = table.numbers("s")
    assert values == [1, 2.5, 1, None, None, None]
    assert reasons == ["", "", "", "not a finite number", "no value", "no value"]


def test_labels_are_one_whatever_the_file_writes(write_text: Write) -> None:
    table = read_table(
        write_text("a.jsonl", '{"s": 2}\n{"s": 2.0}\n{"s": " 2"}\n{"s": "win "}\n{"s": null}\n{"s": " "}\n')
    )
    assert table.labels("s") == ["2", "2", "2", "win", None, None]


def test_csv_and_parquet(write_text: Write, tmp_path: Path) -> None:
    table = read_table(write_text("a.csv", 'human,text\n3,"a\nb"\n,c\n'))
    assert table.numbers("human")[0] == [3, None]
    assert table.texts("text") == ["a\nb", "c"]
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"human": [1.0, None], "n": [1, 2]}), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table.numbers("human") == ([1, None], ["", "no value"])
    assert table.columns == ("human", "n")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"s": 1}\n{"s": "high"}\n', r"a\.jsonl:2, column s: 'high' is not a number"),
        ("a.jsonl", '{"s": 1}\n{"s": {"x": 1}}\n', r"a\.jsonl:2, column s: .* is not a number"),
        ("a.jsonl", "\n", "holds no rows"),
        ("a.csv", "s\n", "holds no rows"),
        ("a.txt", "s\n", "must end in"),
    ],
)
def test_what_is_no_file_of_numbers(write_text: Write, name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(write_text(name, text)).numbers("s")


def test_a_missing_column_names_those_there_are(write_text: Write) -> None:
    table = read_table(write_text("a.csv", "human,score\n1,2\n"))
    with pytest.raises(ValueError, match=r"a\.csv has no column 'humn'; it has: human, score"):
        table.check(["score", "humn"])


def test_annotators_put_together() -> None:
    mean = mean_rating([Column([1, None, None], ["", "no value", "no value"]), Column([4, 3, None], ["", "", "x"])])
    assert (mean.values, mean.reasons) == ([2.5, 3, None], ["", "", "no value"])
    most = majority_label([["a", "a", None, "b"], ["a", "b", None, None], ["b", None, None, None]])
    assert most.values == ["a", None, None, "b"]
    assert most.reasons == ["", "the annotators are tied", "no value", ""]
    assert usable(mean, Column([None, 1, 1], ["no value", "", ""])) == (
        [1],
        {0: "score: no value", 2: "human: no value"},
    )


def test_a_label_section_by_hand() -> None:
    human, score = Column(["x", "x", "y", None], ["", "", "", "no value"]), Column(["x", "y", "y", "y"], [""] * 4)
    (found,) = label_section(human, {"judge": score}, AgreementSettings(resamples=10)).values()
    assert found["n"] == 3
    assert found["left_out"] == {"human: no value": 1}
    assert found["confusion"] == {"labels": ["x", "y"], "human_by_score": [[1, 1], [0, 1]]}
    assert found["raw_agreement"]["value"] == pytest.approx(2 / 3)
    assert found["cohen_kappa"]["value"] == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))


def votes(rows: list[tuple[str, str, int, str]]) -> str:
    """Model a, model b, question, winner."""
    return "".join(
        json.dumps({"judge": "j", "model_a": a, "model_b": b, "question_id": q, "turn": 1, "winner": winner}) + "\n"
        for a, b, q, winner in rows
    )


def test_majority() -> None:
    assert majority(["first"]) == "first"
    assert majority(["first", "second"]) == "tie"
    assert majority(["first", "tie", "first"]) == "first"
    assert majority(["first", "first", "second", "second", "tie"]) == "tie"


def test_votes_are_turned_to_one_order_and_counted(write_text: Write) -> None:
    human = write_text(
        "human.jsonl",
        votes(
            [
                ("ant", "bee", 1, "model_a"),
                ("bee", "ant", 1, "model_b"),  # ant again
                ("bee", "ant", 2, "model_a"),
                ("ant", "bee", 2, "model_a"),  # one vote each: a tie
                ("cat", "bee", 10, "model_a"),
                ("ant", "cat", 9, "tie"),
                ("ant", "dog", 9, "model_b"),  # the judge has no verdict
            ]
        ),
    )
    judge = write_text(
        "judge.jsonl",
        votes(
            [
                ("bee", "ant", 1, "model_b"),
                ("ant", "bee", 2, "tie (inconsistent)"),
                ("bee", "cat", 10, "model_a"),
                ("cat", "ant", 9, "model_a"),
                ("ant", "bee", 3, "model_a"),
            ]
        ),
    )
    rows = labelled(read_votes(human), read_votes(judge))
    assert [(row["question_id"], row["model_first"], row["human"], row["judge"]) for row in rows] == [
        ("1", "ant", "first", "first"),
        ("2", "ant", "tie", "tie"),
        ("9", "ant", "tie", "second"),
        ("10", "bee", "second", "first"),
    ]
    assert rows[1]["human_votes"] == {"first": 1, "second": 1}
    figures = measure(rows, "question_id", AgreementSettings(resamples=10))
    # 2 of 4 agree; by chance (1 * 2 + 1 * 1 + 2 * 1) / 16
    assert figures["scores"]["with_ties"]["cohen_kappa"]["value"] == pytest.approx((0.5 - 5 / 16) / (1 - 5 / 16))
    assert figures["scores"]["ties_dropped"]["n"] == 2
    assert figures["scores"]["ties_dropped"]["cohen_kappa"]["value"] == 0
    assert list(figures["by"]["values"]) == ["1", "2", "9", "10"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("ant", "ant", 1, "tie"), "model_a and model_b are both 'ant'"),
        (("ant", "bee", 1, "model_c"), r"a\.jsonl:1, column winner: winner is 'model_c'; it must be one of model_a"),
        ((" ", "bee", 1, "tie"), "model_a is ' '; it must be a text"),
    ],
)
def test_rows_that_are_no_vote(write_text: Write, row: tuple[str, str, int, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_votes(write_text("a.jsonl", votes([row])))


def test_the_published_agreement_of_gpt4_with_people(public_data: Path) -> None:
    """MT-Bench human votes: 0.5047 on 1814 comparisons, 0.767 on 1078 without ties; by turn 0.5158 and 0.4922."""
    folder = public_data / "mt_bench" / "human_judgments"
    if not folder.is_dir():
        pytest.skip(f"no MT-Bench human votes at {folder}")
    rows = labelled(read_votes(folder / "human.jsonl"), read_votes(folder / "gpt4_pair.jsonl"))
    figures = measure(rows, "turn", AgreementSettings(resamples=500))

    def kappa(section: dict[str, dict[str, dict[str, dict[str, float]]]], name: str) -> tuple[float, int]:
        figure = section["scores"][name]["cohen_kappa"]
        return round(figure["value"], 4), int(figure["n"])

    assert kappa(figures, "with_ties") == (0.5047, 1814)
    assert kappa(figures, "ties_dropped") == (0.7670, 1078)
    assert kappa(figures["by"]["values"]["1"], "with_ties") == (0.5158, 910)
    assert kappa(figures["by"]["values"]["2"], "with_ties") == (0.4922, 904)
    agreement = {name: round(row["raw_agreement"]["value"], 4) for name, row in figures["scores"].items()}
    assert agreement == {"with_ties": 0.672, "ties_dropped": 0.884}
    # another implementation's interval, from other resamples
    assert figures["scores"]["with_ties"]["cohen_kappa"]["interval"] == pytest.approx([0.4719, 0.5378], abs=0.01)
