from __future__ import annotations

import json
import random
import time
import unicodedata

import pytest

from detection import sets
from detection.method import Context, Text
from detection.text.cutting import words
from detection.text.ngram_search import Vocabulary
from detection.text.passages import bm25_first, nearest, rouge_l_recall

LINE = "The quick brown fox jumps over the lazy dog and runs away into the dark wood"  # 16 words
SHORT = "one two three four five six seven eight"


def run(drive, corpus, texts, **options):
    context = Context(corpus=corpus, options={"overlap": options})
    rows = [Text(id=i, text=text, label=label) for i, (text, label) in enumerate(texts)]
    return drive(sets.build(["overlap"], context)[0].examine(rows, []), None)[0]


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


def numbered(queries, passages):
    vocabulary = Vocabulary(queries)
    return [vocabulary.ids(query) for query in queries], [vocabulary.ids(passage) for passage in passages]


def test_bm25_by_hand():
    # "fox" stands in passage 1 only; its weight is idf * 2.5 tf / (tf + norm), and the shorter passage wins a tie
    passages = [["dog", "cat"], ["fox", "cat"], ["dog"]]
    assert bm25_first(*numbered([["fox"], ["dog"], ["bird"], []], passages)) == [1, 2, None, None]
    assert bm25_first(*numbered([["cat"]], [["cat"], ["cat"]])) == [0]
    assert nearest(*numbered([["fox", "bird"], [], ["bird"]], passages)) == [(1, 0.5), (None, None), (None, 0.0)]


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


SCRIPTS = {
    "latin": (LINE, 16),
    "devanagari": ("निम्नलिखित में से कौन सा ग्रह सूर्य के सबसे निकट है और उसका व्यास कितना है", 16),
    "thai": ("ดาวเคราะห์ดวงใดอยู่ใกล้ดวงอาทิตย์มากที่สุด", 33),
    "chinese": ("下列哪一颗行星离太阳最近并且没有任何卫星围绕它运行", 25),
    "arabic": ("أي من الكواكب التالية هو الأقرب إلى الشمس وكم يبلغ قطره بالكيلومتر عند خط الاستواء", 15),
    "cyrillic": ("Какая из следующих планет ближе всего к Солнцу и каков её диаметр в километрах на экваторе", 16),
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_every_script_is_found_in_every_normal_form(script, form, drive, write_text):
    text, count = SCRIPTS[script]
    assert len(words(text)) == count
    corpus = write_text("c.txt", f"1 2 3. {unicodedata.normalize(form, text)}. 4 5 6")
    other = "แมวดำตัวหนึ่งนอนหลับอยู่บนหลังคา" if script == "thai" else "Some other words stand here in a text of their own"
    for asked in ("NFC", "NFD"):
        found = run(drive, corpus, [(unicodedata.normalize(asked, text), 1), (other, 0)])
        assert [row["ngrams"] for row in found["texts"]] == [1.0, 0.0]
        assert found["texts"][0]["rouge_l"] == 1.0


ACCENTED = "Der größte Café-Besitzer wählte zwölf schöne Äpfel für die naïve Köchin aus Málaga und Århus"
WRITTEN = {
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "full-width": lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
    "soft hyphen": lambda text: text.replace("chö", "c\u00adhö").replace("ap", "a\u00adp").replace("es", "e\u00ads"),
    "soft hyphen at a line's end": lambda text: text.replace("wählte", "wähl\u00ad\nte"),
    "zero-width space": lambda text: text.replace("e", "e\u200b").replace(" ", " \u200b"),
    "byte order mark, joiners and direction marks": lambda text: "\ufeff" + text.replace("t", "t\u200d\u200e"),
    "hyphenated line ends": lambda text: text.replace("wählte", "wähl-\nte").replace("Köchin", "Kö-\r\n  chin"),
    "a hyphen and a line end": lambda text: text.replace("Café-B", "Café-\nB"),
    "another hyphen": lambda text: text.replace("-", "\u2010"),
    "underscores for spaces": lambda text: text.replace(" ", "_"),
    "capitals": lambda text: text.upper(),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
}


@pytest.mark.parametrize("form", WRITTEN)
def test_a_text_in_another_form_than_the_corpus_is_found(form, drive, write_text):
    changed = WRITTEN[form](ACCENTED)
    assert changed != ACCENTED
    for in_corpus, asked in ((ACCENTED, changed), (changed, ACCENTED)):
        found = run(drive, write_text("c.txt", f"Zuvor. {in_corpus}. Danach."), [(asked, None)])
        assert (found["share"], found["texts"][0]["ngrams"], found["texts"][0]["rouge_l"]) == (1.0, 1.0, 1.0)


def test_a_word_that_is_hyphenated_between_two_blocks_is_whole(drive, write_text):
    from detection.text.corpus import BLOCK

    start = LINE.replace("jumps", "jum-\nps")
    for shift in range(-3, 4):
        at = start.index("jum-\n") + len("jum-\n") + shift
        filler = ("x\n" * BLOCK)[: BLOCK - at]
        filler += "\n" * (BLOCK - at - len(filler))
        found = run(drive, write_text("c.txt", filler + start + "\ny" * 9), [(LINE, None)])
        assert found["share"] == 1.0


def test_a_hit_says_document_position_and_ngram(drive, tmp_path, write_text):
    write_text("folder/a.txt", f"Zero one. {LINE}")
    write_text("folder/b/c.jsonl", '{"text": "nothing"}\n\n{"text": "So: ' + LINE + ' again."}\n')
    text = f"It is said that {LINE}"
    found = run(drive, tmp_path / "folder", [(text, None)])["texts"][0]
    ngram = "the quick brown fox jumps over the lazy dog and runs away into"
    rest = {"text_position": 4, "ngrams": 4, "ngram": ngram}
    assert found["hits"] == [
        {"document": "a.txt", "position": 2, **rest},
        {"document": "b/c.jsonl:3", "position": 1, **rest},
    ]
    assert found["ngrams"] == 4 / 8
    assert found["nearest"] == {"document": "a.txt", "position": 0}


INSTRUCTION = "Read the following question with care and choose the one option that answers it best of all"


def test_shared_instructions_are_no_leak(drive, write_text):
    one = f"{INSTRUCTION}: which river flows through the old town where the two bridges stand beside the mill"
    two = f"{INSTRUCTION}: how many grams of salt are left over when water of a litre has all boiled away"
    corpus = write_text("c.jsonl", json.dumps({"text": one}) + "\n")
    found = run(drive, corpus, [(one, 1), (two, 0), (INSTRUCTION, 0)])
    assert [row["ngrams"] for row in found["texts"]] == [1.0, 0.0, None]
    assert (found["share"], found["share_members"], found["share_non_members"]) == (0.5, 1.0, 0.0)
    assert (found["n_only_common"], found["n_too_short"]) == (1, 0)
    assert found["common_ngrams"] == {"in_texts": 5, "in_documents": 0}  # 17 words: 5 n-grams of 13
    assert found["texts"][1]["hits"] == []
    assert found["texts"][1]["rouge_l"] < 0.5
    off = run(drive, corpus, [(one, 1), (two, 0)], max_texts=2)
    assert off["texts"][1]["ngrams"] > 0
    twice = run(drive, corpus, [(one, 1), (one, 0)])  # the same text twice shares nothing with another
    assert twice["share"] == 1.0


def test_what_many_documents_have_is_no_leak(drive, write_text):
    corpus = write_text("c.jsonl", "".join(json.dumps({"text": f"{n}. {LINE}. End."}) + "\n" for n in range(11)))
    found = run(drive, corpus, [(LINE, None)])
    assert (found["share"], found["n_only_common"]) == (None, 1)
    assert found["common_ngrams"] == {"in_texts": 0, "in_documents": 4}
    assert (found["documents"], found["texts"][0]["hits"], found["near_share"]) == (11, [], None)
    kept = run(drive, corpus, [(LINE, None)], max_documents=11)
    assert (kept["share"], len(kept["texts"][0]["hits"])) == (1.0, 11)


def test_the_index_finds_what_a_loop_finds(drive, write_text, monkeypatch):
    """Small batches, so that documents go on from one to the next."""
    from tests.performance.overlap import by_loop

    rng = random.Random(1)
    texts = list(dict.fromkeys(" ".join(rng.choices("abcd", k=rng.randint(13, 30))) for _ in range(60)))
    documents = [" ".join(rng.choices("abcd", k=rng.randint(0, 60))) for _ in range(40)]
    for text in texts[:30]:
        at = rng.randrange(40)
        documents[at] += " " + " ".join(text.split()[: rng.randint(10, 30)]) + " "
    corpus = write_text("c.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in documents))
    expected = by_loop(texts, documents)
    assert 5 < sum(share > 0 for share in expected) < 50
    for batch in (7, 50, 1 << 19):
        monkeypatch.setattr("detection.text.ngram_search.BATCH", batch)
        found = run(drive, corpus, [(text, None) for text in texts])
        assert [row["ngrams"] for row in found["texts"]] == expected
        for row, text in zip(found["texts"], texts, strict=True):
            for hit in row["hits"]:
                own = words(documents[int(hit["document"].partition(":")[2]) - 1])
                length = 12 + hit["ngrams"]
                part = words(text)[hit["text_position"] : hit["text_position"] + length]
                assert own[hit["position"] : hit["position"] + length] == part
                assert hit["ngram"] == " ".join(part[:13])
