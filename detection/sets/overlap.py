"""Overlap: which texts stand in a corpus that the user names (a training set that is known)? No model is asked.

Two looks at each text:

- *13-grams*: Brown et al. 2020 (GPT-3, arXiv:2005.14165, appendix C): a text overlaps if one of its word 13-grams
  stands in the corpus. Words are lower-cased, without punctuation; a Chinese or Japanese character is one
  (``detection.cutting.words``). A text of 8 to 12 words is one n-gram as a whole (they take 8 as the least, too);
  shorter ones are not looked up.
- *BM25 + ROUGE-L*: the passage that BM25 ranks first, and the share of the text's words that stand in it in order
  (ROUGE-L recall): it sees a text with a few words changed. BM25 with k1 = 1.5, b = 0.75 and the idf
  log(1 + (N - n + 0.5)/(n + 0.5)) (Robertson & Zaragoza 2009; Lucene's form); words that stand in more than a tenth of
  more than 100 passages don't rank, but count for ROUGE-L.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from detection.method import Context, DetectorOptions, Text
from detection.sets.base import Figures, SetTest
from detection.text.corpus import LINES, corpus_blocks, corpus_files
from detection.text.cutting import words
from serving.records import Dialogue

SHORTEST = 8
_QUERIES_AT_ONCE = 256  # bounds memory: queries x passages


class Overlap(SetTest):
    """Figures beside ``p_value`` (always None: a share is no test) and ``n`` (all texts):

    share, share_ci: of the texts looked up that have an n-gram in the corpus, with its 95% Wilson interval
    share_members, share_non_members: by label, None without
    near_share: of all texts with a word, those whose ROUGE-L recall reaches ``threshold``; None with bm25: false
    n_too_short: texts of fewer than 8 words, not looked up
    passages: of the corpus
    texts: per text ``{"id", "ngrams" (share of its n-grams found, None: too short), "rouge_l" (None without)}``
    """

    name = "overlap"
    version = 2
    needs = ("corpus",)
    passes = 0
    paper = "Brown et al. 2020, arXiv:2005.14165; Robertson & Zaragoza 2009; Lin 2004"

    class Options(DetectorOptions):
        """ngram: words of an n-gram; bm25: whether to look for near copies; threshold: ROUGE-L recall from which on a
        text counts as one; passage_words: length of a passage (they overlap by half)."""

        ngram: int = Field(default=13, ge=SHORTEST)
        bm25: bool = True
        threshold: float = Field(default=0.75, gt=0.0, le=1.0)
        passage_words: int = Field(default=200, ge=20)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        assert context.corpus is not None
        corpus_files(context.corpus)

    def examine(self, texts: Sequence[Text], scores: Sequence[Mapping[str, float | None]]) -> Dialogue[Figures]:
        yield []  # a generator that asks nothing
        assert self.context.corpus is not None
        split = [words(text.text) for text in texts]
        wanted = [ngrams(own, min(len(own), self.options.ngram)) if len(own) >= SHORTEST else set() for own in split]
        passages, found = self._read(self.context.corpus, set().union(*wanted))
        shares = [len(own & found) / len(own) if own else None for own in wanted]
        nearest: list[float | None] = [None] * len(texts)
        if self.options.bm25 and passages:
            nearest = best_recalls(split, passages)
        return {
            **_shares([text.label for text in texts], shares),
            "p_value": None,
            "reason": "a share of texts, not a test",
            "n": len(texts),
            "near_share": _share([value >= self.options.threshold for value in nearest if value is not None]),
            "n_too_short": sum(share is None for share in shares),
            "passages": len(passages),
            "texts": [
                {"id": text.id, "ngrams": share, "rouge_l": near}
                for text, share, near in zip(texts, shares, nearest, strict=True)
            ],
        }

    def _read(self, corpus: Path, wanted: set[tuple[str, ...]]) -> tuple[list[list[str]], set[tuple[str, ...]]]:
        """Passages (with bm25), and which of the wanted n-grams stand in the corpus."""
        lengths = sorted({len(gram) for gram in wanted})
        found: set[tuple[str, ...]] = set()
        passages: list[list[str]] = []
        for own in _stretches(corpus, max(self.options.ngram - 1, self.options.passage_words // 2)):
            for n in lengths:
                found |= ngrams(own, n) & wanted
            if self.options.bm25 and own:
                passages += _passages(own, self.options.passage_words)
        return passages, found


def _stretches(corpus: Path, shared: int) -> Iterator[list[str]]:
    """The words of a corpus, a document of JSON lines or a block of plain text at a time. Of plain text a stretch
    begins with the last ``shared`` words of the one before, so that nothing is lost at a seam."""
    for file in corpus_files(corpus):
        apart = any(suffix.lower() in LINES for suffix in file.suffixes[-2:])
        before: list[str] = []
        for block in corpus_blocks(file):
            own = before + words(block)
            yield own
            before = [] if apart else own[-shared:]


def ngrams(own: Sequence[str], n: int) -> set[tuple[str, ...]]:
    return set(zip(*(own[i:] for i in range(n)), strict=False)) if 0 < n <= len(own) else set()


def rouge_l_recall(reference: Sequence[str], passage: Sequence[str]) -> float:
    """Longest common subsequence over the length of ``reference`` (Lin 2004); 0 for an empty one.

    Bits instead of a table (Hyyrö 2004): bit i of the state is 0 where a match ends at word i of ``reference``.
    """
    masks: dict[str, int] = {}
    for i, word in enumerate(reference):
        masks[word] = masks.get(word, 0) | 1 << i
    full = (1 << len(reference)) - 1
    state = full
    for word in passage:
        matches = state & masks.get(word, 0)
        state = ((state + matches) | (state - matches)) & full
    return (len(reference) - state.bit_count()) / len(reference) if reference else 0.0


def best_recalls(texts: Sequence[Sequence[str]], passages: Sequence[Sequence[str]]) -> list[float | None]:
    """Per text the ROUGE-L recall in the passage that BM25 ranks first (0 where none shares a word that ranks); None
    for a text without words."""
    ranked = bm25_first(texts, passages)
    return [
        None if not text else 0.0 if first is None else rouge_l_recall(text, passages[first])
        for text, first in zip(texts, ranked, strict=True)
    ]


def bm25_first(
    queries: Sequence[Sequence[str]], passages: Sequence[Sequence[str]], k1: float = 1.5, b: float = 0.75
) -> list[int | None]:
    """The passage of the highest BM25 score per query, the first of equals; None where all scores are 0."""
    from scipy.sparse import csr_matrix

    vocabulary: dict[str, int] = {}
    for query in queries:
        for word in query:
            vocabulary.setdefault(word, len(vocabulary))
    rows, columns, values = _counts(passages, vocabulary)
    shape = (len(passages), len(vocabulary))
    lengths = np.array([len(passage) for passage in passages], dtype=np.float64)
    standing_in = np.bincount(columns, minlength=len(vocabulary))
    idf = np.log1p((len(passages) - standing_in + 0.5) / (standing_in + 0.5))
    if len(passages) > 100:
        idf[standing_in > len(passages) / 10] = 0.0
    norm = k1 * (1 - b + b * lengths[rows] / lengths.mean())
    weights = csr_matrix((idf[columns] * values * (k1 + 1) / (values + norm), (rows, columns)), shape=shape)
    weights.eliminate_zeros()
    by_word = weights.T.tocsr()
    first: list[int | None] = []
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        some = queries[start : start + _QUERIES_AT_ONCE]
        q_rows, q_columns, q_values = _counts(some, vocabulary)
        asked = csr_matrix((q_values, (q_rows, q_columns)), shape=(len(some), len(vocabulary)))
        scores = asked @ by_word
        for i in range(len(some)):
            own = slice(scores.indptr[i], scores.indptr[i + 1])
            data, places = scores.data[own], scores.indices[own]
            best = data.max(initial=0.0)
            first.append(int(places[data == best].min()) if best > 0 else None)
    return first


def _counts(texts: Sequence[Sequence[str]], vocabulary: Mapping[str, int]) -> tuple[NDArray[Any], ...]:
    """Rows, columns and values of the matrix of word counts; words outside the vocabulary are left out."""
    rows, columns, values = [], [], []
    for i, text in enumerate(texts):
        for word, count in Counter(text).items():
            if (column := vocabulary.get(word)) is not None:
                rows.append(i)
                columns.append(column)
                values.append(count)
    return np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64), np.array(values, dtype=np.float64)


def _passages(own: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, max(1, len(own) - size // 2), size // 2):
        yield own[start : start + size]


def _shares(labels: Sequence[int | None], shares: Sequence[float | None]) -> Figures:
    from evaluation.statistics import wilson

    hits = [(label, share > 0) for label, share in zip(labels, shares, strict=True) if share is not None]
    interval = wilson(sum(hit for _, hit in hits), len(hits))
    return {
        "share": _share([hit for _, hit in hits]),
        "share_ci": list(interval) if interval else None,
        "share_members": _share([hit for label, hit in hits if label == 1]),
        "share_non_members": _share([hit for label, hit in hits if label == 0]),
    }


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
