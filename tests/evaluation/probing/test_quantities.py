from __future__ import annotations

import time

import pytest

from evaluation.probing.checks import check_numbers
from evaluation.probing.quantities import quantities, units


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 kg and five kilograms", ["5 kg", "5 kg"]),
        ("twenty-five apples, two dozen eggs", ["25", "24"]),
        ("one hundred and five or two thousand three hundred and two", ["105", "2302"]),
        ("half of $3,000 and 50% at 7am", ["0.5", "3000 $", "50 %", "7 am"]),
        ("for $400 000 and 3% or 1,080.50", ["400000 $", "3 %", "1080.5"]),
        ("12/25/1937 and 1/2 cup and two thirds", ["12", "25", "1937", "0.5", "0.666667"]),
        ("from -8 degrees to minus five, 3 degrees below zero", ["-8 degree", "-5", "-3 degree"]),
        ("potassium-40, 5-6 apples", ["40", "5", "6"]),
        ("ten and six", ["10", "6"]),
        ("a 3.5-pound bag, 5 hours", ["3.5 pound", "5 hour"]),
        ("no number", []),
    ],
)
def test_numbers_in_digits_and_words(text: str, expected: list[str]) -> None:
    assert [str(quantity) for quantity in quantities(text) if not quantity.weak] == expected


def test_words_with_other_meanings_are_weak() -> None:
    text = "One by one, the second man took a pair of shoes at once, ten degrees below zero"
    assert [str(q) for q in quantities(text) if not q.weak] == ["-10 degree"]


def test_units_that_a_text_names() -> None:
    assert units("so many kilograms, at 5 m/s, for $3") == {"kg", "m", "$"}


@pytest.mark.parametrize("text", ["1 000 ", "5-6 ", "$ ", "a third ", "one hundred and ", "-", "1/", "( not "])
def test_a_hostile_text_is_read_in_time(text: str) -> None:
    begin = time.process_time()
    check_numbers(text * 4000, text * 4000)
    assert time.process_time() - begin < 5
