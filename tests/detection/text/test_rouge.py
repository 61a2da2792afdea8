from __future__ import annotations

import math

import pytest

from detection.text.cutting import rouge_l


def test_the_longest_common_subsequence_in_both_directions():
    # "the cat the mat" is common: 4 of the reference's 6 words, 4 of the reply's 5
    expected = 2 * (4 / 6) * (4 / 5) / (4 / 6 + 4 / 5)
    assert rouge_l("The cat sat on the mat.", "the cat ate THE mat") == pytest.approx(expected)


def test_words_are_not_stemmed():
    assert rouge_l("running dogs", "run dog") == 0.0


def test_what_has_no_words():
    assert math.isnan(rouge_l("?!", "a"))
    assert rouge_l("a", "?!") == 0.0


def test_chinese_characters_are_words():
    assert rouge_l("日本語", "日語") == pytest.approx(2 * (2 / 3) / (2 / 3 + 1))
