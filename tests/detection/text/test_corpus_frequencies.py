from __future__ import annotations

import json
import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detection.text.corpus_frequencies as module
from detection.text.corpus_frequencies import Frequencies, corpus_frequencies, count
from serving.model.spec import ModelSpec
from tests.serving.serving_models import byte_tokenizer, chatml, llama2


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "frequencies"


@pytest.fixture
def corpus(tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_text("The quick brown fox <|im_end|> jumps.\n" * 50)
    return file


def saved(tokenizer, folder):
    tokenizer.save_pretrained(folder)
    return ModelSpec(path=str(folder), engine="transformers")


def test_smoothing_by_hand():
    frequencies = Frequencies(counts={7: 3}, total=3, vocabulary=5)
    assert frequencies.log(7) == pytest.approx(math.log(4 / 8))
    assert frequencies.log(6) == pytest.approx(math.log(1 / 8))


@pytest.mark.parametrize("make", [chatml, llama2])
def test_counts_are_those_of_the_tokenizer_without_special_tokens(make):
    tokenizer = make()
    texts = ["The quick <s> brown <|im_end|> fox", "", "hello"]
    expected = Counter(
        token
        for text in texts
        for token in tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    )
    found = count(texts, make())
    assert found == Frequencies(counts=expected, total=expected.total(), vocabulary=len(tokenizer))
    assert not set(found.counts) & set(tokenizer.all_special_ids)


def test_a_tokenizer_that_would_cut_or_pad_counts_all_the_same():
    tokenizer = chatml()
    tokenizer.backend_tokenizer.enable_truncation(2)
    tokenizer.backend_tokenizer.enable_padding(length=50)
    assert count(["The quick brown fox jumps"], tokenizer) == count(["The quick brown fox jumps"], chatml())


def test_batches_and_blocks_change_nothing(monkeypatch):
    texts = [f"Question {i}: which planet?\n" for i in range(40)]
    whole = count(texts, chatml())
    monkeypatch.setattr(module, "BATCH", 60)
    assert count(texts, chatml()) == whole


def test_a_corpus_is_counted_once_for_all_models_with_that_tokenizer(cache, corpus, tmp_path, monkeypatch):
    base = saved(chatml(), tmp_path / "base")
    first = corpus_frequencies(corpus, base)
    assert first.total == sum(first.counts.values()) > 0
    tuned = chatml()
    tuned.chat_template = None
    tuned.padding_side = "left"
    trained = saved(tuned, tmp_path / "trained")
    monkeypatch.setattr(module, "count", None)
    assert corpus_frequencies(corpus, base) == first
    assert corpus_frequencies(corpus, trained) == first
    assert len(list(cache.iterdir())) == 1


def test_another_corpus_or_tokenizer_is_counted_anew(cache, corpus, tmp_path):
    base = saved(chatml(), tmp_path / "base")
    first = corpus_frequencies(corpus, base)
    other = corpus_frequencies(corpus, saved(byte_tokenizer(vocabulary=300), tmp_path / "other"))
    assert other.vocabulary != first.vocabulary
    corpus.write_text("Another corpus.")
    assert corpus_frequencies(corpus, base).counts != first.counts
    assert len(list(cache.iterdir())) == 3


@pytest.mark.parametrize(
    "spoil", [lambda text: text[:40], lambda text: text.replace('"total": ', '"total": 1'), lambda _: "[]"]
)
def test_spoiled_counts_are_counted_again(spoil, cache, corpus, tmp_path):
    base = saved(chatml(), tmp_path / "base")
    first = corpus_frequencies(corpus, base)
    (file,) = cache.iterdir()
    file.write_text(spoil(file.read_text()))
    assert corpus_frequencies(corpus, base) == first
    assert json.loads(file.read_text())["total"] == first.total


def test_a_corpus_without_text_leaves_nothing_behind(cache, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(ValueError, match="has no text"):
        corpus_frequencies(tmp_path / "empty.txt", saved(chatml(), tmp_path / "base"))
    assert not cache.exists()


def test_a_scripted_model_finds_all_tokens_equally_common(cache, corpus):
    found = corpus_frequencies(corpus, ModelSpec(path="none", engine="scripted"))
    assert found.log(3) == found.log(40_000) < 0
    assert not cache.exists()


def metaspace_bpe():
    """As Llama 2's: a space before every text, and merges across spaces, so that pieces can't be counted alone."""
    from tokenizers import Tokenizer, decoders, models, normalizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    raw.decoder = decoders.Replace("▁", " ")
    raw.train_from_iterator(["the fox and the dog. " * 20], trainers.BpeTrainer(vocab_size=60, show_progress=False))
    return PreTrainedTokenizerFast(tokenizer_object=raw)


@pytest.mark.parametrize("make", [chatml, llama2, byte_tokenizer, metaspace_bpe])
def test_counting_pieces_is_counting_tokens(make, monkeypatch):
    """Batches are small, so that most texts are counted by their pieces where the tokenizer allows it."""
    monkeypatch.setattr(module, "BATCH", 2_000)
    monkeypatch.setattr(module, "MOST_PIECES", 50)
    tokenizer = make()
    rng = random.Random(0)
    parts = [
        "The",
        "fox",
        "don't",
        "7",
        "1234",
        "é",
        "e\u0301",
        "日本",
        " ",
        " ",
        " ",
        "  ",
        "\n",
        "\n\n",
        " \n",
        "\t",
        ".",
    ]
    texts = ["".join(rng.choices(parts, k=60)) for _ in range(300)]
    expected = Counter(
        token
        for text in texts
        for token in tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    )
    assert count(iter(texts), tokenizer).counts == expected


@given(st.text(alphabet="abcdef. \n\t\u00a0é", max_size=40))
def test_the_pieces_are_the_text(text):
    found = module._PIECE.findall(text)
    assert "".join(found) == text
    counted: Counter[str] = Counter()
    for piece, number in module._pieces([text]).items():
        counted[piece[1:] if piece.startswith("\0") else f" {piece}"] += number
    assert counted == Counter(found)
