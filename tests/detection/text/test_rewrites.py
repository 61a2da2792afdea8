from __future__ import annotations

from collections import Counter
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detection.text.rewrites import rewrites

QUESTION = "Question: Which planet is close to the sun because it is small?\nA. Mars\nB. Mercury\nAnswer: B. Mercury"


def changed(text, rewrite):
    return [(a, b) for a, b in zip(text.split(), rewrite.split(), strict=True) if a != b]


def test_a_word_is_exchanged_for_one_of_the_same_meaning_in_the_same_case():
    assert rewrites("Big!", 1, seed=1) == ["Large!"]
    assert rewrites("An easy answer", 1, seed=1, share=1.0)[0] in ("An easy reply", "An easy answer")


def test_an_article_fits_what_follows_it():
    # "a big" could be "a large", never "a enormous": groups are exchanged only within vowels or consonants
    for seed in range(20):
        assert not any("a immense" in r or "a error" in r for r in rewrites("It was a mistake here", 3, seed=seed))


def test_neighbours_change_places_where_there_are_no_synonyms():
    assert rewrites("blue cats", 2, seed=3) == ["cats blue"]


def test_as_many_words_change_as_the_share_says():
    # 15 words without synonyms: 20% are 3, and the second swap is needed for the third
    text = "one cat two dogs three birds four fish five owls six bees seven ants eight"
    for rewrite in rewrites(text, 5, seed=0):
        assert len(changed(text, rewrite)) == 4
    assert len(changed("big big big big big", rewrites("big big big big big", 1, seed=0)[0])) == 1


def test_lines_labels_and_marks_stay():
    for rewrite in rewrites(QUESTION, 4, seed=5):
        lines = rewrite.split("\n")
        assert lines[0].startswith("Question: Which ")
        assert lines[0].endswith("?")
        assert lines[1:] == ["A. Mars", "B. Mercury", "Answer: B. Mercury"]


def test_rewrites_differ_and_depend_on_the_seed_alone():
    found = rewrites(QUESTION, 4, seed=5)
    assert len({*found, QUESTION}) == 5
    assert found == rewrites(QUESTION, 4, seed=5)
    assert found != rewrites(QUESTION, 4, seed=6)


def test_a_text_whose_synonyms_are_few_still_has_several_rewrites():
    # 10 words, so 2 change, and just 2 have a synonym, one each
    text = "Some small cats, choose red dogs, not blue birds today"
    found = rewrites(text, 4, seed=2)
    assert len(found) == 4
    assert "Some little cats, select red dogs, not blue birds today" in found


@pytest.mark.parametrize("text", ["", "word", "日本語の文章", "1 2 3", "same same"])
def test_what_has_no_rewrite(text):
    assert rewrites(text, 3, seed=0) == []


def test_every_word_of_the_list_has_one_place():
    lines = (resources.files("detection") / "data" / "synonyms.txt").read_text().splitlines()
    groups = [line.split() for line in lines if not line.startswith("#")]
    assert all(len(group) >= 2 and all(word.isalpha() and word.islower() for word in group) for group in groups)
    assert max(Counter(word for group in groups for word in group).values()) == 1


@given(st.text(max_size=80), st.integers(0, 5))
def test_any_text(text, seed):
    found = rewrites(text, 3, seed=seed)
    assert len(set(found)) == len(found) <= 3
    assert text not in found
