from __future__ import annotations

import numpy as np

from detection.blind import BlindBaseline, blind_baseline
from detection.method import Text

WORDS = np.array([f"word{i}" for i in range(300)])


def texts(n, extra=("", ""), seed=0):
    rng = np.random.default_rng(seed)
    return [
        Text(id=str(i), text=" ".join([*rng.choice(WORDS, 20), extra[i % 2]]), label=1 if i % 2 else 0)
        for i in range(n)
    ]


def test_a_year_that_only_members_hold_gives_the_set_away():
    found = blind_baseline(texts(80, extra=("in 2024", "in 2019")), seed=0)
    assert found.auc is not None
    assert found.auc > 0.95
    assert found.fair is False
    assert (found.n, found.n_members) == (80, 40)


def test_a_random_split_is_fair():
    found = blind_baseline(texts(120), seed=0)
    assert found.auc_ci is not None
    assert found.auc_ci[0] <= 0.5
    assert found.fair is True


def test_the_same_seed_gives_the_same_numbers():
    assert blind_baseline(texts(40), seed=3) == blind_baseline(texts(40), seed=3)


def test_punctuation_counts_too():
    marks = [Text(id=str(i), text="?!" if i % 2 else "...", label=1 if i % 2 else 0) for i in range(20)]
    assert blind_baseline(marks, seed=0).auc == 1.0


def test_ten_of_each_class_are_needed_and_texts_without_a_label_are_none():
    few = [*texts(19), Text(id="x", text="unlabelled")]
    found = blind_baseline(few, seed=0)
    assert (found.auc, found.auc_ci, found.fair, found.n, found.n_members) == (None, None, None, 19, 9)
    assert "9 members and 10 non-members" in found.reason
    assert blind_baseline([], seed=0).auc is None


def test_texts_without_words():
    blank = [Text(id=str(i), text=" \n", label=1 if i % 2 else 0) for i in range(20)]
    assert blind_baseline(blank, seed=0).reason == "the texts have no words"


def measured(low, high, **more):
    return BlindBaseline(auc=(low + high) / 2, auc_ci=(low, high), n=64, n_members=32, **more)


def test_fair_needs_evidence():
    """An AUC of .56 of 32 texts a group was called fair, for its interval holds .5."""
    unknown = measured(0.42, 0.70)
    assert unknown.fair is None
    assert unknown.doubt == "without a model an AUC of up to 0.70 is possible, and 0.60 is the most"
    assert measured(0.42, 0.60).fair is True
    assert measured(0.51, 0.60).fair is True  # told from chance, and as good as chance
    assert measured(0.51, 0.61).fair is False
    assert measured(0.42, 0.60).doubt == ""


def test_halves_drawn_at_random_are_fair_by_design():
    assert measured(0.51, 0.80, by_design=True).fair is True
    few = blind_baseline(texts(19), seed=0, by_design=True)
    assert (few.auc, few.fair) == (None, True)
    assert blind_baseline(texts(40), seed=0, by_design=True).by_design


def test_an_interval_below_chance_is_no_success():
    assert BlindBaseline(auc=0.4, auc_ci=(0.35, 0.45), n=400, n_members=200).fair is True


def test_a_year_among_chinese_characters_gives_the_set_away():
    """Without spaces a clause is one run of letters: taken as a word it would stand in one text only, and hide all."""
    draw = np.random.default_rng(0)
    characters = list("天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏")
    found = [
        Text(id=i, text="".join(draw.choice(characters, 30)) + ("二〇二三年" if i % 2 else ""), label=i % 2)
        for i in range(60)
    ]
    assert blind_baseline(found, seed=0).fair is False
