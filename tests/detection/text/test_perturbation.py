from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detection.method import Text
from detection.text.perturbation import neighbours, swapped_copies

TEXTS = st.text(alphabet="ab 日本\n\t.", max_size=40)


def differing_words(before: str, after: str) -> int:
    return sum(a != b for a, b in zip(before.split(), after.split(), strict=True))


def test_one_swap_moves_two_words_and_leaves_white_space_where_it_was():
    text = Text(id="a", text="  one two\n\nthree  ")
    for copy in swapped_copies(text, copies=20, percent=30, seed=1):
        assert copy.text.replace("one", "_").replace("two", "_").replace("three", "_") == "  _ _\n\n_  "
        assert differing_words(text.text, copy.text) == 2
        assert sorted(copy.text.split()) == ["one", "three", "two"]


@pytest.mark.parametrize(("words", "swaps"), [(3, 1), (6, 1), (7, 2), (10, 3)])
def test_three_swaps_in_ten_words(words, swaps):
    text = Text(id="a", text=" ".join(f"w{i}" for i in range(words)))
    changed = {differing_words(text.text, copy.text) for copy in swapped_copies(text, copies=60, percent=30, seed=0)}
    assert max(changed) == 2 * swaps
    assert min(changed) >= 2


def test_prompt_and_answer_keep_their_own_words():
    text = Text(id="a", text="Which planet is red? The fourth one", prompt="Which planet is red?")
    for copy in [*swapped_copies(text, copies=9, percent=30, seed=3), *neighbours(text, copies=9, percent=10, seed=3)]:
        assert copy.text == copy.prompt + copy.answer
        assert set(copy.prompt.split()) <= set(text.prompt.split())
        assert set(copy.answer.split()) <= set(text.answer.split())
        assert copy.prompt != text.prompt
        assert copy.answer != text.answer
        assert copy.answer.startswith(" ")


def test_an_answer_of_one_word_stays():
    text = Text(id="a", text="Which planet? Mars", prompt="Which planet?")
    assert {copy.answer for copy in neighbours(text, copies=9, percent=100, seed=0)} == {" Mars"}


def test_a_neighbour_of_two_words_is_a_swap_a_word_less_or_a_word_twice():
    found = {copy.text for copy in neighbours(Text(id="a", text="one two"), copies=200, percent=5, seed=0)}
    assert found == {"two one", "one", "two", "one one", "two two"}


def test_without_spaces_every_ideograph_is_a_word():
    copies = swapped_copies(Text(id="a", text="火星は赤い"), copies=5, percent=1, seed=0)
    assert all(Counter(copy.text) == Counter("火星は赤い") and copy.text != "火星は赤い" for copy in copies)


@given(TEXTS, st.integers(1, 100), st.integers(0, 9))
def test_a_copy_is_never_the_text_and_always_one_of_its_form(string, percent, seed):
    cut = len(string) // 2
    text = Text(id="a", text=string, prompt=string[:cut])
    for make in (swapped_copies, neighbours):
        copies = make(text, copies=3, percent=percent, seed=seed)
        assert copies == make(text, copies=3, percent=percent, seed=seed)
        assert len(copies) in (0, 3)
        for copy in copies:
            assert (copy.prompt, copy.answer) != (text.prompt, text.answer)
            assert bool(copy.prompt) == bool(text.prompt)
            assert set(copy.text) <= set(string)


def test_a_long_text_takes_no_longer_than_its_words():
    text = Text(id="a", text="word " * 20_000 + "other")
    assert len(swapped_copies(text, copies=1, percent=30, seed=0)) == 1
