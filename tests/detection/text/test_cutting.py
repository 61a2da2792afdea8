from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detection.text.cutting import halves, pieces, words


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop, Ärger 3.5!", ["don", "t", "stop", "ärger", "3", "5"]),
        ("निम्नलिखित में", ["निम्नलिखित", "में"]),
        ("ที่นี่", ["ที่", "นี่"]),  # a character with its vowel sign and tone mark
        ("日本カラー", ["日", "本", "カ", "ラ", "ー"]),
        ("か\u3099", ["が"]),
        ("snake_case two", ["snake", "case", "two"]),
        ("well-known 3-4 a - b", ["wellknown", "3", "4", "a", "b"]),
        ("co-\noperate, pre- and post-", ["cooperate", "pre", "and", "post"]),
        ("Straße STRASSE ﬁn Ａ１", ["strasse", "strasse", "fin", "a1"]),
        ("كتـــاب", ["كتاب"]),
        ("", []),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


def test_marks_are_words_where_they_are_asked_for():
    assert words("Yes, (é)!", marks=True) == ["yes", ",", "(", "é", ")", "!"]


@given(st.text(alphabet="aB-_ \n.7", max_size=30))
def test_ascii_has_no_rule_of_its_own(text):
    assert words(text + " é")[:-1] == words(text)


def test_a_character_and_its_marks_are_one_piece():
    assert pieces("ที่นี่ か\u3099 में") == ["ที่", "นี่", " か\u3099", " में"]
