from __future__ import annotations

import random
import time

import pytest

from detection import sets
from detection.method import Context, Text
from detection.sets.overlap import best_recalls, bm25_first, ngrams, rouge_l_recall, words

LINE = "The quick brown fox jumps over the lazy dog and runs away into the dark wood"  # 16 words
SHORT = "one two three four five six seven eight"


def run(drive, corpus, texts, **options):
    context = Context(corpus=corpus, options={"overlap": options})
    rows = [Text(id=i, text=text, label=label) for i, (text, label) in enumerate(texts)]
    return drive(sets.build(["overlap"], context)[0].examine(rows, []), None)[0]


def test_words_and_ngrams():
    assert words("Don't stop, Ärger 3.5!") == ["don", "t", "stop", "ärger", "3", "5"]
    assert ngrams(["a", "b", "c", "d"], 3) == {("a", "b", "c"), ("b", "c", "d")}
    assert ngrams(["a"], 3) == set()


def test_rouge_l_recall_is_the_longest_common_subsequence():
    assert rouge_l_recall(["a", "b", "c", "d"], ["x", "a", "y", "c", "z", "d"]) == 0.75
    assert rouge_l_recall(["a", "b"], ["b", "a"]) == 0.5
    assert rouge_l_recall([], ["a"]) == 0.0
    assert rouge_l_recall(["a", "a"], ["a"]) == 0.5
    rng = random.Random(0)
    for _ in range(200):
        one, two = (rng.choices("abcd", k=rng.randint(1, 12)) for _ in range(2))
        assert rouge_l_recall(one, two) * len(one) == pytest.approx(by_table(one, two))


def by_table(one, two):
    row = [0] * (len(two) + 1)
    for a in one:
        before = row[:]
        for j, b in enumerate(two, start=1):
            row[j] = before[j - 1] + 1 if a == b else max(before[j], row[j - 1])
    return row[-1]


def test_bm25_by_hand():
    # "fox" stands in passage 1 only; its weight is idf * 2.5 tf / (tf + norm), and the shorter passage wins a tie
    passages = [["dog", "cat"], ["fox", "cat"], ["dog"]]
    assert bm25_first([["fox"], ["dog"], ["bird"], []], passages) == [1, 2, None, None]
    assert bm25_first([["cat"]], [["cat"], ["cat"]]) == [0]
    assert best_recalls([["fox", "bird"], [], ["bird"]], passages) == [0.5, None, 0.0]


def test_texts_that_stand_in_the_corpus_are_found(drive, write_text):
    corpus = write_text("c.txt", f"Something else.\n\n... {LINE.upper()}, it is said.\n\nand {SHORT}.\n")
    near = LINE.replace("brown", "red").replace("runs", "walks")  # no 13 words in a row
    texts = [(LINE, 1), (near, 1), ("Nothing of this stands anywhere in that file, as one can see", 0), (SHORT, 0)]
    found = run(drive, corpus, [*texts, ("too short", None), ("", None)])
    assert [row["ngrams"] for row in found["texts"]] == [1.0, 0.0, 0.0, 1.0, None, None]
    assert [row["id"] for row in found["texts"]] == [0, 1, 2, 3, 4, 5]
    recalls = [row["rouge_l"] for row in found["texts"]]
    assert recalls[0] == 1.0
    assert recalls[1] == 14 / 16
    assert recalls[2] < 0.5
    assert recalls[5] is None
    assert (found["share"], found["share_members"], found["share_non_members"]) == (0.5, 0.5, 0.5)
    assert (found["n"], found["n_too_short"], found["p_value"]) == (6, 2, None)
    assert found["near_share"] == 3 / 5
    off = run(drive, corpus, texts, bm25=False)
    assert off["near_share"] is None
    assert off["share"] == 0.5


def test_nothing_is_lost_between_two_blocks_of_a_file(drive, write_text):
    """Plain text is read in blocks of 64k characters that end before a line or a word."""
    from detection.text.corpus import BLOCK

    for filler in ("x " * (BLOCK // 2 - 20), "x\n" * (BLOCK // 2 - 20), "xy\n" * (BLOCK // 3) + "x " * 20):
        corpus = write_text("c.txt", filler + LINE)
        found = run(drive, corpus, [(LINE, None)])
        assert found["share"] == 1.0
        assert found["texts"][0]["rouge_l"] == 1.0
    apart = write_text("c.jsonl", "".join('{"text": "' + part + '"}\n' for part in (LINE[:40], LINE[40:])))
    assert run(drive, apart, [(LINE, None)])["share"] == 0.0


def test_a_folder_and_an_empty_set(drive, tmp_path, write_text):
    write_text("folder/a.jsonl", '{"text": "' + LINE + '"}\n')
    found = run(drive, tmp_path / "folder", [(LINE, None)])
    assert found["share"] == 1.0
    empty = run(drive, tmp_path / "folder", [])
    assert (empty["share"], empty["share_ci"], empty["n"]) == (None, None, 0)


def test_corpora_that_are_wrong_are_named(tmp_path):
    with pytest.raises(ValueError, match="overlap needs corpus: name one with --corpus"):
        sets.build(["overlap"], Context())
    with pytest.raises(ValueError, match="does not exist"):
        sets.build(["overlap"], Context(corpus=tmp_path / "none.txt"))


def test_ten_thousand_texts_take_seconds(drive, write_text):
    rng = random.Random(0)
    vocabulary = [f"w{i}" for i in range(5000)]
    weights = [1 / (i + 1) for i in range(5000)]
    texts = [" ".join(rng.choices(vocabulary, weights, k=40)) for _ in range(10_000)]
    corpus = write_text("c.txt", "\n\n".join(texts[:500] + [" ".join(rng.choices(vocabulary, k=40))] * 500))
    began = time.perf_counter()
    found = run(drive, corpus, [(text, None) for text in texts])
    assert found["share"] == pytest.approx(0.05, abs=0.001)
    assert time.perf_counter() - began < 30


def test_a_chinese_text_is_looked_up_by_its_characters(drive, write_text):
    leaked, clean = "天地玄黄宇宙洪荒日月盈昃辰宿列张", "寒来暑往秋收冬藏闰余成岁律吕调阳"
    corpus = write_text("c.txt", f"前言{leaked}后记。")
    found = run(drive, corpus, [(leaked, 1), (clean, 0)])
    assert [row["ngrams"] for row in found["texts"]] == [1.0, 0.0]
    assert (found["n_too_short"], found["texts"][0]["rouge_l"]) == (0, 1.0)
