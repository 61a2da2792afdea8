"""Questions out of odd and hostile text, domains out of taxonomies, levels out of replies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.items import make_item
from evaluation.lm_examiner.levels import LEVEL_FORM, level_of, read_levels, shares, source_id
from evaluation.lm_examiner.questions import find_questions, question_word, rouge_l, sift
from evaluation.lm_examiner.taxonomy import draw_domains, read_taxonomy
from tests.evaluation.exam_driver import said

TEN = "\n".join(f"{n}. What is the {word} of a cell?" for n, word in enumerate("abcdefghij", 1))


def texts(text: str, **how: Any) -> list[str]:
    return [found.text for found in find_questions(text, **how)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Sure! Here are 2 questions:\n\n1. What is a cat?\n2. Why do dogs bark?",
            ["What is a cat?", "Why do dogs bark?"],
        ),
        ("1) **What is a cat?**\n(2) _Why do dogs bark?_", ["What is a cat?", "Why do dogs bark?"]),
        ('Question 1: "What is a cat?"\nQ2. Why do dogs bark?', ["What is a cat?", "Why do dogs bark?"]),
        ("**1.** What is a cat?\n**2.** Why do dogs bark?", ["What is a cat?", "Why do dogs bark?"]),
        ("一、猫为什么喜欢睡觉?\n二、狗是什么动物?", ["猫为什么喜欢睡觉?", "狗是什么动物?"]),
        ("①什么是猫？\n②什么是狗？", ["什么是猫？", "什么是狗？"]),
        ("１．What is a cat?", ["What is a cat?"]),
        ("- What is a cat?\n* Why do dogs bark?\nThat is all.", ["What is a cat?", "Why do dogs bark?"]),
        ("| 1. What is a cat?", ["What is a cat?"]),
        ("Here you are:\nWhat is a cat?", ["What is a cat?"]),
        ("Question: What is a cat?\nAnswer: 1.\n**Question:** Why so?", ["What is a cat?", "Why so?"]),
        ("I can't help with that.", []),
        ("", []),
        ("1990 was the year. 3.5 is a number.", []),
    ],
)
def test_questions_are_found_in_odd_lists(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_numbers_are_read_as_they_were_written() -> None:
    found = find_questions("十二、什么是猫?\n③什么是狗?\n14. What is a bird?\n二十、什么是鱼?")
    assert [one.number for one in found] == [12, 3, 14, 20]
    assert all(one.numbered for one in found)
    assert [one.numbered for one in find_questions("What is a cat?\nWhy do dogs bark?")] == [False, False]


def test_a_cut_line_is_no_question() -> None:
    assert texts("1. What is a cat?\n2. Why do dogs", cut=True) == ["What is a cat?"]
    assert texts("1. What is a cat?\n2. Why do dogs bark?", cut=True) == ["What is a cat?", "Why do dogs bark?"]


def test_what_is_refused_and_why() -> None:
    lines = [
        "1. What is the largest planet of the solar system?",
        "2. What is the largest planet in the solar system?",  # ROUGE-L 8/9 with the first
        "3. Jupiter is the largest planet.",
        "4. What is a moon? It goes around a planet.",
        "5. Why?",
        "6. ??!",
        "7. Explain why the sky is blue.",
        f"8. What {'very ' * 300}long?",
        "9. How far is the Moon?",
    ]
    sifted = sift(find_questions("\n".join(lines)), wanted=2)
    assert list(sifted.kept) == ["What is the largest planet of the solar system?", "Explain why the sky is blue."]
    assert sifted.counts() == {
        "empty": 1, "statement": 2, "too_short": 1, "too_long": 1, "duplicate": 1, "surplus": 1
    }  # fmt: skip


def test_nine_questions_are_nine() -> None:
    nine = "\n".join(TEN.split("\n")[:9])
    assert len(sift(find_questions(nine), wanted=10).kept) == 1  # they differ in one letter only
    different = "\n".join(f"{n}. {w} {w}a {w}b {w}c?" for n, w in enumerate("qwertzuio", 1))
    assert len(sift(find_questions(different), wanted=10).kept) == 9


def test_questions_of_earlier_attempts_are_duplicates() -> None:
    sifted = sift(find_questions("1. What is a black cat?"), wanted=1, before=["What is a black cat?"])
    assert sifted.kept == ()
    assert sifted.counts() == {"duplicate": 1}


def test_rouge_l_by_hand() -> None:
    # longest common subsequence "what is cat" of 4 and 3 words: precision 1, recall 3/4
    assert rouge_l("What is a cat?", "what is cat") == pytest.approx(2 * 0.75 / 1.75)
    assert rouge_l("", "what") == 0.0


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("What is a cat?", "what"),
        ("In 1969, who walked on the Moon?", "who"),
        ("Whose cat is it?", "who"),
        ("Could cats fly?", "can"),
        ("Were there cats?", "is"),
        ("Explain what a cat is.", "request"),
        ("猫是什么?", "other"),
        ("", "other"),
    ],
)
def test_question_words(question: str, word: str) -> None:
    assert question_word(question) == word


def test_our_taxonomy_has_its_leaves_once() -> None:
    taxonomy = read_taxonomy()
    names = [leaf.name for leaf in taxonomy.leaves]
    assert len(names) == len(set(names)) == 208
    assert len({leaf.path[1] for leaf in taxonomy.leaves}) == 26
    drawn = draw_domains(taxonomy, 20, seed=1)
    assert drawn == draw_domains(taxonomy, 20, seed=1)
    assert drawn != draw_domains(taxonomy, 20, seed=2)
    assert len({domain.name for domain in drawn}) == 20


def test_a_leaf_under_two_parents_is_one_domain(write_text: Callable[[str, str], Path]) -> None:
    leaf, twin = {"id": 7, "name": "Chess"}, {"id": 8, "name": "chess "}
    tree = {"id": 0, "name": "All", "children": [
        {"id": 1, "name": "Games", "children": [leaf, twin]}, {"id": 2, "name": "Sports", "children": [leaf]},
    ]}  # fmt: skip
    taxonomy = read_taxonomy(write_text("tree.json", json.dumps(tree)))
    assert (taxonomy.nodes, taxonomy.ids, len(taxonomy.leaves)) == (6, 5, 2)
    assert [domain.name for domain in draw_domains(taxonomy, 1, seed=0)] in (["Chess"], ["chess"])
    with pytest.raises(ValueError, match="asked for 2 domains, but the taxonomy has 1"):
        draw_domains(taxonomy, 2, seed=0)


def test_google_trends(public_data: Path) -> None:
    taxonomy = read_taxonomy(public_data / "taxonomy" / "google-trends-categories.json")
    # the root, which is no category, is a node too
    assert (taxonomy.nodes - 1, taxonomy.ids - 1, len(taxonomy.leaves)) == (1426, 1132, 831)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "is no node"),
        ('{"id": 1, "name": " "}', "is no node"),
        ('{"name": "a"}', "its id is None"),
        ('{"id": true, "name": "a"}', "its id is True"),
        ('{"id": 1, "name": "a", "children": "b"}', "children is 'b'"),
        ("[]", "has no leaves"),
    ],
)
def test_a_broken_taxonomy_is_named(write_text: Callable[[str, str], Path], tree: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_taxonomy(write_text("tree.json", tree))


def test_levels_are_read_and_never_guessed() -> None:
    assert LEVEL_FORM.read(said('{"level": "analysis"}')) == "analysis"
    assert LEVEL_FORM.read(said('{"level": "recall"}')) is None
    assert LEVEL_FORM.read(said('{"level": "anal')) is None
    assert LEVEL_FORM.read(said("[1]")) is None


def test_a_level_travels_with_the_item(write_text: Callable[[str, str], Path]) -> None:
    item = make_item(
        benchmark="b", split="test", subject="s", question="q?", choices=(), answer="a",
        source_id=source_id("101", 3, "analysis"),
    )  # fmt: skip
    assert level_of(item) == "analysis"
    assert level_of(item, {item.id: "comprehension"}) == "comprehension"
    foreign = make_item(benchmark="b", split="", subject="", question="q?", choices=(), answer="a", source_id="x/y")
    assert level_of(foreign) == "unclassified"
    path = write_text("levels.jsonl", '{"item_id": "a", "level": "analysis"}\n{"item_id": "b", "level": null}\n')
    assert read_levels(path) == {"a": "analysis"}
    with pytest.raises(ValueError, match=r"levels\.jsonl:1, column level: level is 'hard'"):
        read_levels(write_text("levels.jsonl", '{"item_id": "a", "level": "hard"}\n'))


def test_shares_of_levels() -> None:
    found = shares(["analysis", "analysis", "memorization", None])
    assert found["shares"] == {"memorization": 1 / 3, "comprehension": 0.0, "analysis": 2 / 3}
    assert found["unclassified"] == 1
    assert shares([])["shares"]["analysis"] is None
