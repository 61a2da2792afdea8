from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluation.human_rating.sheet import read_sheets, write_sheet
from evaluation.idgen import human_check
from evaluation.items import Item, make_item


def made(question: str, reference: str, number: str = "") -> Item:
    return make_item(
        benchmark="idgen",
        split="",
        subject="science",
        question=question,
        choices=(),
        answer=number,
        form="number" if number else "text",
        references=(reference,),
        source_id=f"seed of {question}",
    )


ITEMS = [made("Q1?", "good"), made("Q2?", "so #### 4", "4"), made("Q3?", "bad")]


def records() -> list[dict[str, Any]]:
    answers = {"Q1?": ("good", "other"), "Q2?": ("so #### 4", "so #### 5"), "Q3?": ("bad", "bad")}
    return [
        {
            "item_id": item.source_id,
            "drafts": [
                {
                    "question": item.question,
                    "reference": {
                        "answers": [
                            {"role": f"answerer_{n}", "text": text} for n, text in enumerate(answers[item.question], 1)
                        ],
                        "chosen": 0,
                        "tie": False,
                    },
                }
            ],
        }
        for item in ITEMS
    ]


def test_references_there_and_back(tmp_path: Path) -> None:
    chosen, key = human_check.references_sheet(ITEMS, records(), seed=0)
    assert len(chosen) == 5  # equal answers stand once
    sheet = tmp_path / "sheet.csv"
    text = write_sheet(chosen, ["ann"])
    assert "answerer" not in text
    right = {"good", "so #### 5"}
    lines = text.splitlines()
    filled = [lines[0]] + [
        line.removesuffix(",") + f",{int(row['text'] in right)}" for line, row in zip(lines[1:], key, strict=True)
    ]
    sheet.write_text("\n".join(filled), encoding="utf-8")
    ratings = read_sheets([sheet], [row["id"] for row in key], (0, 1))
    figures = human_check.reference_figures(key, ratings)
    assert (figures["rated"], figures["without_a_right_answer"]) == (3, 1)
    assert figures["all"]["chosen"]["share"] == pytest.approx(1 / 3)
    assert figures["answered"]["chosen"]["share"] == 0.5
    assert figures["answered"]["models"]["answerer_2"]["share"] == 0.5
    items, counts = human_check.checked_items(ITEMS, key, ratings)
    assert counts == {"kept": 1, "replaced": 1, "dropped": 1, "unrated": 0}
    assert [item.id for item in items] == [ITEMS[0].id, ITEMS[1].id]
    assert (items[1].answer, items[1].references) == ("5", ("so #### 5",))


def test_usability_by_the_majority() -> None:
    _, key = human_check.usability_sheet(ITEMS)
    ratings = {"ann": {"q0001": 1, "q0002": 1}, "bob": {"q0001": 1, "q0002": 0}}
    figures = human_check.usability_figures(key, ratings)
    assert (figures["share"], figures["n"], figures["unrated"]) == (0.5, 2, 1)  # a tie is no majority


def test_answers_become_a_matrix() -> None:
    exam = [{"item_id": ITEMS[0].id, "question": "Q1?", "reply": "R", "max_score": 3}]
    chosen, key = human_check.answers_sheet({"weak": exam, "strong": exam}, {item.id: item for item in ITEMS}, seed=0)
    assert all(one.context == "Reference answer: good" for one in chosen.values())
    by_name = {row["candidate"]: row["id"] for row in key}
    matrix = human_check.answers_matrix(
        key, {"ann": {by_name["weak"]: 0, by_name["strong"]: 3}, "bob": {by_name["weak"]: 1}}
    )
    scores = dict(zip(matrix.candidates, matrix.scores[:, 0].tolist(), strict=True))
    assert scores == {"weak": 0.5, "strong": 3}
    with pytest.raises(ValueError, match="hold no answers"):
        human_check.answers_sheet({"a": [{"item_id": "1"}]}, {}, seed=0)


def test_ratings_off_the_scale_are_refused(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("id,ann\nq0001,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"'2' is no rating; it must be 0, 1 or blank"):
        read_sheets([tmp_path / "s.csv"], ["q0001"], (0, 1))
