"""What broke readers once: replies of line breaks only, numbers of thousands of digits, sheets with blank lines."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from evaluation.idgen.duplicates import near_duplicates
from evaluation.item_analysis.matrix import from_records, read_csv
from evaluation.items import make_item
from evaluation.lm_examiner import marking
from evaluation.lm_examiner.annotation import read_rankings
from evaluation.lm_examiner.embeddings import project
from evaluation.lm_examiner.taxonomy import read_taxonomy
from evaluation.probing.checks import check_answers, check_numbers
from evaluation.probing.compose import compose
from evaluation.probing.quantities import quantities

MARKS = "Accuracy: 3\nCoherence: 3\nFactuality: 3\nComprehensive: 3\n"


@pytest.mark.parametrize("text", ["\n" * 200_000, "* \n" * 70_000, "a" * 200_000 + " b", " \t" * 100_000])
@pytest.mark.parametrize("cut", [False, True])
def test_long_replies_of_nothing_are_read_at_once(text: str, cut: bool) -> None:
    start = time.perf_counter()  # it was quadratic: minutes
    assert marking.read_free_marks(text, cut=cut) is None
    assert marking.read_free_choice(text, cut=cut) is None
    assert check_answers("x", text) is None
    assert time.perf_counter() - start < 5


def test_marks_and_choices_are_read_as_before() -> None:
    found = marking.read_free_marks(f"  > * {MARKS}\n\n - **Overall**: 5/5\n")
    assert found is not None
    assert found.overall == 5
    assert marking.read_free_marks(f"{MARKS}Overall: 5 4", cut=True) is not None
    assert marking.read_free_marks(f"{MARKS}Overall: 55", cut=True) is None
    assert marking.read_free_choice("\n\n __Choice__: Response 2\n") == 2


@pytest.mark.parametrize("mark", ["9" * 5000, "5/" + "5" * 5000, "5 out of " + "9" * 5000, "7", "0"])
def test_marks_out_of_range_are_none(mark: str) -> None:
    assert marking.read_free_marks(f"{MARKS}Overall: {mark}") is None


def test_numbers_of_thousands_of_digits() -> None:
    long = "9" * 5000
    (found,) = quantities(f"about {long} kg")
    assert str(found) == "of very many digits kg"
    assert str(quantities(f"{long}.5")[0]) == "of very many digits"
    assert check_numbers(f"add {long}", f"sum {long}") is None
    fault = check_numbers(f"add {long}", f"sum {long[1:]}")
    assert fault is not None
    assert fault.kind == "number changed"


def test_a_matrix_with_blank_lines_and_names(tmp_path: Path) -> None:
    file = tmp_path / "m.csv"
    file.write_text("candidate,i,j\na,1,2\n,,\nb,0,3\n", encoding="utf-8")
    assert read_csv(file, 3.0).candidates == ("a", "b")
    for text, said in (
        ("candidate,i,j\n,1,2\n", r"m.csv:2, column 1: the candidate has no name"),
        ("candidate,i,\na,1,2\n", r"m.csv:1, column 3: the item has no name"),
        ("candidate;i\na;1,5\n", "m.csv:2, column i: '1,5' is no score"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=said):
            read_csv(file, 3.0)


@pytest.mark.parametrize("best", ["null", '"x"', "true"])
def test_a_maximum_that_is_no_number(tmp_path: Path, best: str) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(f'{{"item_id": "i", "score": 1, "max_score": {best}}}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"records.jsonl:1: what is the score here"):
        from_records({"a": file})


def test_a_question_ranked_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rankings.csv"
    file.write_text("item_id,ranking\nx,2>1\nx,1>2\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"rankings.csv:3, column item_id: the item 'x' is repeated; it stands at .*rankings.csv:2"
    ):
        read_rankings(file, {"x": 2})
    file.write_text(f"item_id,ranking\nx,{'9' * 5000}>1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="is no ranking; it must be like"):
        read_rankings(file, {"x": 2})


@pytest.mark.parametrize("node", ['{"id": "", "name": "A"}', '{"id": "\\ud800", "name": "A"}'])
def test_a_domain_needs_an_id_that_can_be_written(tmp_path: Path, node: str) -> None:
    file = tmp_path / "taxonomy.json"
    file.write_text(f"[{node}]", encoding="utf-8")
    with pytest.raises(ValueError, match="has a blank id, or half a character"):
        read_taxonomy(file)


@pytest.mark.parametrize("how", ["pca", "tsne"])
def test_equal_questions_have_one_place(how: str) -> None:
    points = project(np.ones((5, 8)), how, seed=1)  # type: ignore[arg-type]
    assert points.tolist() == [[0.0, 0.0]] * 5


def test_two_items_that_an_agent_makes_one() -> None:
    """A build whose items share an id would be thrown away whole: the second item stays as it was."""
    items = [
        make_item(benchmark="t", split="test", subject="s", question=question, choices=(), answer="yes")
        for question in ("Is the sky blue above us?", "Does the sun rise each morning?", "Would one say so?")
    ]
    row = {"status": "accepted", "reason": "", "attempts": [], "stem": "Would one say so?"}
    records = [{"item_id": item.id, "set": 1, "question": {"p1": row}, "choices": {}} for item in items]
    part = compose(items, records, ["p1"], 1, seed=0)["p1", 1]
    assert [item.question for item in part.items] == ["Would one say so?", "Does the sun rise each morning?"]
    assert part.fallbacks == {items[1].id: ["p1"]}
    assert part.left_out == [items[2].id]  # it is what the first was made into


def test_the_same_question_twice_is_one_whatever_the_threshold() -> None:
    twins = near_duplicates(["Why is the sea salt?", "Why is the sea blue?", "why is the sea salt"], 1.0)
    assert [(twin.index, twin.of, twin.similarity) for twin in twins] == [(2, 0, 1.0)]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_sheets_as_spreadsheet_programs_save_them(tmp_path: Path, mark: str) -> None:
    file = tmp_path / "sheet.csv"
    file.write_text("\ufeffcandidate,i,j\r\na,1,2\r\n".replace(",", mark), encoding="utf-8")
    assert read_csv(file, 3.0).items == ("i", "j")
    file.write_text("\ufeffitem_id,ranking\r\nx,2>1\r\n".replace(",", mark), encoding="utf-8")
    assert read_rankings(file, {"x": 2}) == ({"x": {2: 1, 1: 2}}, 0)
