"""Text overlap of a reply with a reference: the baselines that KIEval's meta-evaluation sets beside a judge.

- ROUGE-1, ROUGE-2, ROUGE-L (Lin 2004): F1 by rouge-score, Porter stemmer on, 0..1;
- BLEU (Papineni et al. 2002): sacrebleu's sentence BLEU with effective order, 0..100;
- METEOR (Banerjee and Lavie 2005; parameters of 2007: alpha 0.9, beta 3, gamma 0.5) by NLTK, 0..1: exact and stem
  matching, and synonyms where a local WordNet folder is given;
- BERTScore (Zhang et al. 2020): F1 by bert-score with a local encoder, without idf weights or rescaling; see
  ``bert_scores``.

ROUGE and METEOR see the words of ``words``: for ASCII text what rouge-score's own tokenizer finds, and beyond ASCII
letters of every script, each Chinese or Japanese character a word of its own (rouge-score would drop them all).

Empty texts: no reference, no value (None) for any metric, nor for ROUGE and METEOR where it holds no word; an empty
reply to a reference scores 0. Nothing is ever downloaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evaluation.wordnet import WordNet

NAMES = ("rouge1", "rouge2", "rougeL", "bleu", "meteor")
BERTSCORE = "bertscore"

Scores = list[float | None]

_UNSPACED = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\U00020000-\U0003ffff"
_WORD = re.compile(f"[{_UNSPACED}]|[^\\W_{_UNSPACED}]+")
_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def words(text: str) -> list[str]:
    """Lower-case words: runs of letters and digits; punctuation and underscores only separate."""
    return _WORD.findall(text.lower())


def text_scores(
    references: Sequence[str], replies: Sequence[str], *, wordnet: Path | None = None
) -> tuple[dict[str, Scores], dict[str, str]]:
    """Each metric of ``NAMES`` for each (reference, reply), and how each was computed.

    ValueError if the lists differ in length, or ``wordnet`` is no WordNet folder.
    """
    if len(references) != len(replies):
        raise ValueError(f"there are {len(references)} references and {len(replies)} replies; each reply needs one")
    chinese = any(_CHINESE.search(text) for text in references)
    bleu, signature = _bleu("zh" if chinese else "13a")
    rouge = _rouge()
    meteor = _meteor(wordnet)
    scores: dict[str, Scores] = {name: [] for name in NAMES}
    for reference, reply in zip(references, replies, strict=True):
        worded = bool(words(reference))
        overlap = rouge(reference, reply) if worded else {}
        for name in ("rouge1", "rouge2", "rougeL"):
            scores[name].append(overlap.get(name))
        scores["meteor"].append(meteor(reference, reply) if worded else None)
        blank = None if not reference.strip() else 0.0
        scores["bleu"].append(bleu(reference, reply) if reference.strip() and reply.strip() else blank)
    matching = "exact, stem and synonym matching (WordNet folder given)" if wordnet else "exact and stem matching only"
    how = {
        "rouge": f"rouge-score {_version('rouge-score')}, F1, Porter stemmer, 0..1",
        "bleu": f"sacrebleu sentence BLEU, 0..100, signature {signature}",
        "meteor": f"nltk {_version('nltk')}, {matching}, 0..1",
        "words": "ROUGE and METEOR: lower-case runs of letters and digits; each Chinese or Japanese character a word",
    }
    return scores, how


def check_encoder(folder: Path, layer: int | None = None) -> int:
    """The layer that BERTScore reads, counted from 1. ValueError if the folder holds no local encoder with that layer.

    layer: None for bert-score's own choice if the folder is named like a model in its table (``roberta-large``: 17),
        else three quarters of the model's layers, rounded (what its table has for most models)
    """
    from transformers import AutoConfig

    if not (folder / "config.json").is_file():
        raise ValueError(
            f"BERTScore needs a local model folder, and {folder} holds no config.json; give the folder of an encoder "
            "(config.json, tokenizer, *.safetensors), for nothing is downloaded"
        )
    if not any(folder.glob("*.safetensors")):
        raise ValueError(f"BERTScore: {folder} holds no *.safetensors weights; pickled ones are not read")
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        layers = int(config.num_hidden_layers)
    except Exception as error:
        raise ValueError(f"BERTScore: {folder} holds no encoder that transformers knows: {_line(error)}") from error
    chosen = _default_layer(folder.resolve().name, layers) if layer is None else layer
    if not 1 <= chosen <= layers:
        raise ValueError(f"BERTScore: layer {chosen} is not one of the {layers} layers of {folder}")
    return chosen


def bert_scores(
    references: Sequence[str], replies: Sequence[str], *, folder: Path, layer: int | None = None, batch_size: int = 16
) -> tuple[Scores, str]:
    """BERTScore's F1 of each (reference, reply), and how it was computed.

    layer: see ``check_encoder``. Texts are cut to the length the model takes. ValueError as ``check_encoder``.
    """
    import torch
    from bert_score import utils

    chosen = check_encoder(folder, layer)
    used = [row for row, text in enumerate(references) if text.strip() and replies[row].strip()]
    scores: Scores = [0.0 if text.strip() else None for text in references]
    how = f"bert-score {_version('bert-score')}, F1, {folder.resolve().name}, layer {chosen}, no idf, not rescaled"
    if used:
        model, tokenizer = _encoder(folder, chosen)
        weights: dict[int, float] = _Ones({tokenizer.sep_token_id: 0.0, tokenizer.cls_token_id: 0.0})
        device = "cuda" if torch.cuda.is_available() else "cpu"
        found = utils.bert_cos_score_idf(
            model.to(device),
            [references[row] for row in used],
            [replies[row] for row in used],
            tokenizer,
            weights,
            device=device,
            batch_size=batch_size,
        )
        for row, value in zip(used, found[:, 2].tolist(), strict=True):
            scores[row] = value
    return scores, how


class _Ones(dict[int, float]):
    """A weight of 1 for every token without one of its own."""

    def __missing__(self, key: int) -> float:
        return 1.0


class _NoWordNet:
    """Stands where NLTK expects WordNet, and knows no synonym."""

    def synsets(self, word: str) -> list[Any]:
        return []


def _rouge() -> Callable[[str, str], dict[str, float]]:
    from nltk.stem.porter import PorterStemmer
    from rouge_score.rouge_scorer import RougeScorer

    class Words:
        stemmer = PorterStemmer()

        def tokenize(self, text: str) -> list[str]:
            return [self.stemmer.stem(word) if len(word) > 3 else word for word in words(text)]

    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=Words())
    return lambda reference, reply: {
        name: float(score.fmeasure) for name, score in scorer.score(reference, reply).items()
    }


def _bleu(tokenize: str) -> tuple[Callable[[str, str], float], str]:
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(effective_order=True, tokenize=tokenize)
    metric.sentence_score("a", ["a"])  # the signature names the number of references only after a use
    return lambda reference, reply: float(metric.sentence_score(reply, [reference]).score), str(metric.get_signature())


def _meteor(folder: Path | None) -> Callable[[str, str], float]:
    from nltk.translate.meteor_score import single_meteor_score

    wordnet = _NoWordNet() if folder is None else WordNet(folder)
    return lambda reference, reply: float(single_meteor_score(words(reference), words(reply), wordnet=wordnet))


def _encoder(folder: Path, layer: int) -> tuple[Any, Any]:
    """The model, whose output is the hidden states after ``layer``, and its tokenizer.

    Loaded here and not by bert-score, which takes a path that contains "t5" for a T5 model and reads pickles.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    offline: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        model = AutoModel.from_pretrained(folder, use_safetensors=True, dtype=torch.float32, **offline)
        tokenizer = AutoTokenizer.from_pretrained(folder, **offline)
    except Exception as error:
        raise ValueError(f"BERTScore: {folder} can't be loaded: {_line(error)}") from error
    config = model.config
    # RoBERTa numbers positions from its padding id + 1 on
    positions = getattr(config, "max_position_embeddings", 512)
    if "roberta" in str(config.model_type):
        positions -= int(config.pad_token_id or 0) + 1
    tokenizer.model_max_length = min(int(tokenizer.model_max_length), positions)

    class AtLayer(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any, attention_mask: Any = None, output_hidden_states: bool = True) -> tuple[Any]:
            found = self.model(ids, attention_mask=attention_mask, output_hidden_states=True)
            return (found.hidden_states[layer],)

    return AtLayer().eval(), tokenizer


def _default_layer(name: str, layers: int) -> int:
    from bert_score.utils import model2layers

    known = {model.rpartition("/")[2].lower(): layer for model, layer in model2layers.items()}
    layer = known.get(name.lower(), 0)
    return layer if 1 <= layer <= layers else max(1, round(layers * 3 / 4))


def _version(package: str) -> str:
    from importlib.metadata import version

    return version(package)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
