from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detection.text.cutting import halves, pieces


def test_words_keep_the_white_space_before_them():
    assert pieces("One two,\n three. ") == ["One", " two,", "\n three."]


def test_chinese_and_japanese_characters_are_words():
    assert pieces("a 日本語。かb") == ["a", " 日", "本", "語", "。", "か", "b"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one two", ("one", " two")),
        ("one two three", ("one", " two three")),
        (" one two three four\n", (" one two", " three four")),
        ("日本", ("日", "本")),
        ("one", None),
        (" \n", None),
        ("", None),
    ],
)
def test_the_middle(text, parts):
    assert halves(text) == parts


@given(st.text(alphabet="ab 日\n", max_size=30))
def test_the_pieces_are_the_text(text):
    assert "".join(pieces(text)) == text.rstrip()
