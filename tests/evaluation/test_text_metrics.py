"""Text baselines against values worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.text_metrics import bert_scores, check_encoder, text_scores, words
from evaluation.wordnet import WordNet, check_folder

ASCII = st.text(st.characters(min_codepoint=0, max_codepoint=127), max_size=60)


def one(reference: str, reply: str, wordnet: Path | None = None) -> dict[str, float | None]:
    return {name: values[0] for name, values in text_scores([reference], [reply], wordnet=wordnet)[0].items()}


def test_words() -> None:
    assert words("The cat's 2_Mats, naïve!") == ["the", "cat", "s", "2", "mats", "naïve"]
    assert words("光合作用 needs CO2") == ["光", "合", "作", "用", "needs", "co2"]
    assert words(" !? ") == []


@given(ASCII)
def test_words_are_rouge_scores_own_for_ascii(text: str) -> None:
    from rouge_score.tokenizers import DefaultTokenizer

    assert words(text) == DefaultTokenizer(use_stemmer=False).tokenize(text)


def test_overlap_by_hand() -> None:
    found = one("the cat sat on the mat", "a cat sat on mat")
    assert found["rouge1"] == pytest.approx(8 / 11)  # 4 of 5 and 4 of 6 words
    assert found["rouge2"] == pytest.approx(4 / 9)  # 2 of 4 and 2 of 5 pairs
    assert found["rougeL"] == pytest.approx(8 / 11)  # cat sat on mat
    # precision 4/5, recall 4/6, two chunks of four matches
    fmean = (4 / 5 * 4 / 6) / (0.9 * 4 / 5 + 0.1 * 4 / 6)
    assert found["meteor"] == pytest.approx(fmean * (1 - 0.5 * (2 / 4) ** 3))


def test_stems_match() -> None:
    found = one("she was running quickly", "she run quick")
    assert found["rouge1"] == pytest.approx(
        2 * (3 / 3 * 3 / 4) / (1 + 3 / 4) * 2 / 3
    )  # running and run; quickly: quickli
    fmean = (2 / 3 * 2 / 4) / (0.9 * 2 / 3 + 0.1 * 2 / 4)
    assert found["meteor"] == pytest.approx(fmean * (1 - 0.5 * (2 / 2) ** 3))


def test_bleu_by_hand() -> None:
    # 5/6, 4/5, 3/4 and 2/3 of the n-grams; no brevity penalty
    assert one("the cat sat on the rug", "the cat sat on the mat")["bleu"] == pytest.approx(100 * (1 / 3) ** (1 / 4))
    assert one("the cat sat on the rug", "the cat sat on the rug")["bleu"] == pytest.approx(100)
    assert one("to be or", "to be or")["bleu"] == pytest.approx(100)  # effective order: there are no 4-grams
    # three of six words, all right: brevity penalty exp(1 - 6/3)
    assert one("a b c d e f", "a b c")["bleu"] == pytest.approx(100 * math.exp(-1))


def test_how_it_was_computed_is_said() -> None:
    _, how = text_scores(["a"], ["a"])
    assert "tok:13a" in how["bleu"]
    assert "version:" in how["bleu"]
    assert how["meteor"].endswith("exact and stem matching only, 0..1")
    _, how = text_scores(["光合作用"], ["光合作用"])
    assert "tok:zh" in how["bleu"]


def test_chinese_texts_have_overlap() -> None:
    found = one("光合作用", "光合反应")
    assert found["rouge1"] == pytest.approx(0.5)
    assert found["rouge2"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("reference", "reply", "words_value", "bleu"),
    [("", "x", None, None), (" ", "", None, None), ("x", "", 0.0, 0.0), ("x", "\n", 0.0, 0.0), ("?!", "x", None, 0.0)],
)
def test_empty_texts(reference: str, reply: str, words_value: float | None, bleu: float | None) -> None:
    found = one(reference, reply)
    assert found == {
        "rouge1": words_value,
        "rouge2": words_value,
        "rougeL": words_value,
        "meteor": words_value,
        "bleu": bleu,
    }


def test_unequal_lengths() -> None:
    with pytest.raises(ValueError, match="1 references and 2 replies"):
        text_scores(["a"], ["a", "b"])


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    """WordNet's files with two synsets: car, auto; big, great."""
    licence = "  1 a licence, indented as in the real files\n"
    noun = f"{len(licence):08d} 06 n 02 car 0 Auto 0 000 | a vehicle\n"
    adjective = f"{len(licence):08d} 00 a 02 big 0 great(p) 0 000 | of size\n"
    (tmp_path / "data.noun").write_text(licence + noun, encoding="utf-8")
    (tmp_path / "data.adj").write_text(licence + adjective, encoding="utf-8")
    for part, lemmas in (("noun", ("auto", "car")), ("adj", ("big", "great"))):
        lines = [f"{lemma} {part[0]} 1 2 @ ~ 1 0 {len(licence):08d}  \n" for lemma in lemmas]
        (tmp_path / f"index.{part}").write_text(licence + "".join(lines), encoding="utf-8")
    for name in ("data.verb", "data.adv", "index.verb", "index.adv"):
        (tmp_path / name).write_text(licence, encoding="utf-8")
    (tmp_path / "noun.exc").write_text("autoes auto\n", encoding="utf-8")
    return tmp_path


def test_synonyms_match_where_a_wordnet_folder_is_given(wordnet: Path) -> None:
    assert one("a great car stops", "a big auto stops")["meteor"] == pytest.approx(0.5 * (1 - 0.5 * (2 / 2) ** 3))
    assert one("a great car stops", "a big auto stops", wordnet)["meteor"] == pytest.approx(1 - 0.5 * (1 / 4) ** 3)
    assert "synonym" in text_scores(["a"], ["a"], wordnet=wordnet)[1]["meteor"]


def test_base_forms(wordnet: Path) -> None:
    known = WordNet(wordnet)
    assert [lemma.name() for synset in known.synsets("cars") for lemma in synset.lemmas()] == ["car", "auto"]
    assert len(known.synsets("autoes")) == 1
    assert len(known.synsets("greatest")) == 1
    assert known.synsets("great")[0].words == ("big", "great")
    assert known.synsets("s") == []


def test_a_folder_that_is_no_wordnet(wordnet: Path, tmp_path: Path) -> None:
    (wordnet / "index.noun").write_text("car n one\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"index\.noun:1: not a line of a WordNet index"):
        WordNet(wordnet)
    (wordnet / "index.noun").write_text("car n 1 0 1 0 00000003\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"data\.noun has no synset at byte 3"):
        WordNet(wordnet).synsets("car")
    (wordnet / "data.adj").unlink()
    with pytest.raises(ValueError, match=r"it has no data\.adj"):
        check_folder(wordnet)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of 4 layers; its folder's name holds "t5", which bert-score would take for a T5 model."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("not5") / "small"
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "dog"]
    raw = Tokenizer(models.WordLevel({name: index for index, name in enumerate(names)}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=raw, **special).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=8,
        hidden_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def test_bert_score_is_greedy_matching_of_hidden_states(encoder: Path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    references, replies = (
        ["the cat sat", "the cat", "", "dog", "the " * 40],
        ["the cat sat", "dog sat", "x", " ", "cat"],
    )
    scores, how = bert_scores(references, replies, folder=encoder, layer=2)
    assert scores[0] == pytest.approx(1, abs=1e-5)
    assert scores[2:4] == [None, 0.0]
    assert scores[4] is not None  # cut to the 16 positions the model has
    assert "layer 2, no idf, not rescaled" in how

    model, tokenizer = AutoModel.from_pretrained(encoder).eval(), AutoTokenizer.from_pretrained(encoder)

    def states(text: str) -> torch.Tensor:
        with torch.no_grad():
            found = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[2][0]
        return torch.nn.functional.normalize(found, dim=-1)

    similarity = states(replies[1]) @ states(references[1]).T
    # the special tokens can be matched, but have no weight of their own
    precision, recall = similarity.max(1).values[1:-1].mean(), similarity.max(0).values[1:-1].mean()
    assert scores[1] == pytest.approx(float(2 * precision * recall / (precision + recall)), abs=1e-5)


def test_the_layer_that_is_read(encoder: Path, tmp_path: Path) -> None:
    assert check_encoder(encoder) == 3  # three quarters of 4
    with pytest.raises(ValueError, match="layer 5 is not one of the 4 layers"):
        check_encoder(encoder, 5)
    named = tmp_path / "DeBERTa-v3-small"
    named.symlink_to(encoder)
    assert check_encoder(named) == 3  # a link is judged by the folder it leads to
    named.unlink()
    encoder.rename(named)
    try:
        assert check_encoder(named) == 4
    finally:
        named.rename(encoder)


def test_folders_that_hold_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"bert-base-uncased holds no config.json; .*nothing is downloaded"):
        check_encoder(Path("bert-base-uncased"))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(ValueError, match="pickled ones are not read"):
        check_encoder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"x")
    with pytest.raises(ValueError, match="can't be loaded"):
        bert_scores(["a"], ["b"], folder=tmp_path)
