from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detection.detectors.cdd import edit_distance


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("kitten", "sitting", 3),
        ("intention", "execution", 5),
        ("", "abc", 3),
        ("abc", "", 3),
        ("", "", 0),
        ("abc", "abc", 0),
        ("ab", "ba", 2),
    ],
)
def test_known_distances(first, second, distance):
    assert edit_distance(first, second) == distance


def test_tokens_are_compared_as_wholes():
    assert edit_distance([7, 12, 300], [7, 13, 300]) == 1
    assert edit_distance(["a", "bc"], ["ab", "c"]) == 2


def by_table(first, second):
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        new = [i]
        for j, b in enumerate(second, start=1):
            new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (a != b)))
        row = new
    return row[-1]


@given(st.lists(st.integers(0, 3), max_size=80), st.lists(st.integers(0, 3), max_size=80))
def test_it_equals_the_plain_table(first, second):
    assert edit_distance(first, second) == by_table(first, second) == edit_distance(second, first)


def test_fifty_answers_of_a_hundred_tokens_take_little_time():
    answers = [[(i * j) % 97 for j in range(100)] for i in range(1, 51)]
    started = time.perf_counter()
    for answer in answers:
        edit_distance(answers[0], answer)
    assert time.perf_counter() - started < 1.0  # measured on a busy machine: 6 ms
