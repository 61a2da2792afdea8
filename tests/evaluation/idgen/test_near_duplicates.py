from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from evaluation.idgen.duplicates import near_duplicates, rouge_l
from evaluation.text_metrics import words

SENTENCES = (
    "Why does the sky look blue at noon but red in the evening?",
    "A train leaves at nine and travels 60 miles per hour for three hours. How far does it get?",
    "Write a short poem about the sea that never uses the word water.",
    "List five causes of the first world war and say which mattered most.",
    "What is the relation between the given pairs of words?",
)


def exhaustive(questions: list[str], threshold: float = 0.7) -> list[tuple[int, int, float]]:
    """Every question against every one kept before it, by rouge-score."""
    scorer = RougeScorer(["rougeL"])
    kept: list[int] = []
    found = []
    for index, question in enumerate(questions):
        near = (
            (other, score)
            for other in kept
            if (score := scorer.score(questions[other], question)["rougeL"].fmeasure) > threshold
        )
        first = next(near, None)
        if first is None:
            kept.append(index)
        else:
            found.append((index, *first))
    return found


def varied(number: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    vocabulary = [word for sentence in SENTENCES for word in sentence.split()]
    questions = []
    for _ in range(number):
        text = draw.choice(SENTENCES).split()
        for _ in range(draw.randint(0, len(text) // 2)):
            text[draw.randrange(len(text))] = draw.choice(vocabulary)
        questions.append(" ".join(text))
    return questions


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.9])
def test_the_same_as_the_exhaustive_comparison(threshold: float) -> None:
    questions = varied(150)
    found = [(one.index, one.of, one.similarity) for one in near_duplicates(questions, threshold)]
    assert found == exhaustive(questions, threshold)
    assert len(found) > 10


@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=12), min_size=2, max_size=12))
def test_short_texts_of_few_words(texts: list[list[str]]) -> None:
    questions = [" ".join(text) for text in texts]
    assert [(one.index, one.of, one.similarity) for one in near_duplicates(questions)] == exhaustive(questions)


@given(st.text(alphabet="ab c", max_size=40), st.text(alphabet="ab c", max_size=40))
def test_rouge_l_is_that_of_rouge_score(a: str, b: str) -> None:
    expected = RougeScorer(["rougeL"]).score(a, b)["rougeL"].fmeasure
    assert rouge_l(words(a), words(b)) == expected


def test_exactly_at_the_threshold_is_kept() -> None:
    """7 of 10 words in common, in order: F1 is 0.7, and not above it."""
    one = "a b c d e f g h i j"
    assert rouge_l(one.split(), ["a", "b", "c", "d", "e", "f", "g", "x", "y", "z"]) <= 0.7
    assert near_duplicates([one, "a b c d e f g x y z"]) == []
    (found,) = near_duplicates([one, "a b c d e f g h y z"])
    assert (found.index, found.of, found.similarity) == (1, 0, pytest.approx(0.8))


def test_what_was_dropped_drops_nothing() -> None:
    """c is near b, b near a, c not near a: b goes, c stays."""
    a, b, c = "1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8 x y", "1 2 3 4 5 6 z w x y"
    assert [one.index for one in near_duplicates([a, b, c])] == [1]


def test_letters_beyond_ascii_and_texts_without_words() -> None:
    chinese = "天空为什么是蓝色的？"
    assert [one.index for one in near_duplicates([chinese, "请写一首关于大海的诗。", chinese])] == [2]
    found = near_duplicates(["?!", "...", "?! ", "?!x"])
    assert [(one.index, one.of) for one in found] == [(2, 0)]
    assert near_duplicates([]) == []
    with pytest.raises(ValueError, match=r"threshold is 0; ROUGE-L lies in 0\.\.1"):
        near_duplicates(["a"], 0)
