from __future__ import annotations

import pytest

from evaluation.probing.permutation import (
    Permuted,
    names_letters,
    names_positions,
    obstacle,
    permute,
    refers_to_others,
    speaks_of_others,
)


@pytest.mark.parametrize("n", range(2, 11))
def test_the_key_follows_whatever_the_number_of_options(n: int) -> None:
    choices = [f"text {i}" for i in range(n)]
    for seed in range(20):
        for answer in range(n):
            moved = permute(choices, answer, seed)
            assert isinstance(moved, Permuted)
            assert sorted(moved.choices) == sorted(choices)
            assert list(moved.choices) != choices
            assert moved.choices[moved.answer] == choices[answer]
            assert moved.order[moved.answer] == answer


def test_the_key_is_followed_by_place_where_texts_repeat() -> None:
    choices = ["same", "same", "other", "same"]
    for seed in range(30):
        for answer in range(4):
            moved = permute(choices, answer, seed)
            assert isinstance(moved, Permuted)
            assert moved.order[moved.answer] == answer
            assert moved.choices == tuple(choices[i] for i in moved.order)


def test_a_seed_gives_one_order_and_all_orders_occur() -> None:
    choices = ["a1", "b1", "c1"]
    assert permute(choices, 0, 5) == permute(choices, 0, 5)
    orders = {moved.order for seed in range(200) if isinstance(moved := permute(choices, 0, seed), Permuted)}
    assert len(orders) == 5  # 3! without the present one


def test_all_of_the_above_stays_below_those_it_speaks_of() -> None:
    choices = ["cats", "dogs", "both of these", "fish", "birds", "All of the above"]
    for seed in range(30):
        moved = permute(choices, 3, seed)
        assert isinstance(moved, Permuted)
        assert (moved.choices[2], moved.choices[5]) == ("both of these", "All of the above")
        assert set(moved.choices[:2]) == {"cats", "dogs"}
        assert moved.choices[moved.answer] == "fish"


def test_options_that_name_letters_are_not_moved() -> None:
    moved = permute(["cats", "dogs", "fish", "both A and C"], 3, 1)
    assert isinstance(moved, str)
    assert "names others by letter" in moved
    assert isinstance(permute(["x", "None of the above"], 0, 1), str)
    assert isinstance(permute(["x"], 0, 1), str)


@pytest.mark.parametrize(
    ("choice", "others", "letters"),
    [
        ("All of the above", True, False),
        ("none of these.", True, False),
        ("Neither", True, False),
        ("both A and C", False, True),
        ("A, B and C", False, True),
        ("(a) and (b)", False, True),
        ("A only", False, True),
        ("Only B", False, True),
        ("answer D", False, True),
        ("A dog and a cat", False, False),
        ("A cat or B cat", False, False),
        ("I and II only", False, False),
        ("vitamin C", False, False),
    ],
)
def test_what_speaks_of_other_options(choice: str, others: bool, letters: bool) -> None:
    assert (refers_to_others(choice), names_letters(choice, 4)) == (others, letters)


def test_what_stands_in_the_way_of_another_option() -> None:
    assert obstacle(["a1", "b1"]) == ""
    assert obstacle(["a1", "All of the above"]).startswith("option B")


LETTERS_NAMED = [
    "both a and b",
    "A/B",
    "A through C",
    "A和B",
    "Not A",
    "a or b",
    "A, B and C",
    "A & B",
    "A+B",
    "A-C",
    "A – C",
    "neither a nor b",
    "Only B",
    "A、B",
    "仅A",
    "Nicht A",
    "A und B",
    "A et C",
    "A y B",
    "A и B",
    "a, b, and c",
    "A but not B",
    "All except C",
    "All but b",
    "D",
    "Both (a) & (b)",
    "Options A and D",
    "A to D",
    "Ａ和Ｂ",
    "[A] and [B]",
    "A is correct",
    "A;B",
    "A) and B)",
    "A / B / C",
    "Same as A",
    "ABD",
    "选A",
    "A都对",
    "A...C",
    "Either A or B",
]
PLACES_NAMED = [
    "The first two options",
    "the last option",
    "The second and third options",
    "the latter",
    "Only the former",
    "the top two",
    "the first and the third",
    "Options 1 and 3",
    "option ii",
    "The previous answer",
    "The two options above",
    "first option",
    "前两项",
    "第一个",
    "最后一项",
    "both the first and second answers",
    "die ersten beiden Antworten",
    "las dos primeras opciones",
    "les deux premières réponses",
    "первые два варианта",
]
NO_OPTION_NAMED = [
    "A dog and a cat",
    "a solution of salt",
    "the first president",
    "first and second laws of thermodynamics",
    "He came to a place",
    "the last emperor",
    "Louis XIV",
    "In the first place",
    "above sea level",
    "two thirds",
    "5",
    "3/4",
    "10-20 km",
    "to a bar",
    "the other side of the road",
    "第一次世界大战",
    "the latter half of the century",
    "the first three months",
    "a man and a woman",
    "Type A blood",
    "Not a number",
    "vitamin D deficiency",
    "hepatitis B virus",
    "DNA and RNA",
    "an answer",
    "A cat or B cat",
]


@pytest.mark.parametrize(
    "choice",
    [
        *("Both of the previous ones", "Everything listed", "More than one is correct", "None apply", "les deux"),
        *("Nessuna delle precedenti", "Nenhuma das anteriores", "Нет правильного ответа", "上面都对", "全部"),
        *("どれでもない", "둘 다", "tất cả đáp án trên", "जो उपरोक्त हैं"),
    ],
)
def test_options_that_speak_of_all_in_more_languages(choice: str) -> None:
    assert refers_to_others(choice)
    assert speaks_of_others("Sowohl A als auch B", 4)


@pytest.mark.parametrize("choice", LETTERS_NAMED)
def test_options_that_name_letters(choice: str) -> None:
    assert names_letters(choice, 4)
    assert "by letter" in str(permute(["cats", "dogs", "fish", choice], 0, 1))


@pytest.mark.parametrize("choice", PLACES_NAMED)
def test_options_that_name_places(choice: str) -> None:
    assert names_positions(choice)
    assert "by their places" in str(permute(["cats", "dogs", "fish", choice], 0, 1))


@pytest.mark.parametrize("choice", NO_OPTION_NAMED)
def test_options_that_name_none(choice: str) -> None:
    assert not speaks_of_others(choice, 4)
    assert isinstance(permute(["cats", "dogs", "fish", choice], 0, 1), Permuted)
