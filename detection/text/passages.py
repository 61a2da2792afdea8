"""The passage of a corpus that is nearest to a text: ranked by BM25, measured by ROUGE-L recall.

Words are numbers (``ngram_search.Vocabulary``): 0 is a word that no text has, which can neither rank nor match, but
counts for a passage's length. A corpus of N words takes 4 N bytes, and the counts of its passages about as much again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detection.text.ngram_search import Ids, Place

_QUERIES_AT_ONCE = 256  # bounds memory: queries x passages
_COUNTED_AT_ONCE = 1 << 14


class Passages:
    """Stretches of ``size`` words that overlap by half; a document's last one may be shorter."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: list[Ids] = []
        self.places: list[tuple[str, int]] = []
        self._document, self._rest, self._before = "", np.zeros(0, dtype=np.int32), 0

    def add(self, document: str, before: int, own: Ids) -> None:
        """The next words of a document; ``before`` of it came already, 0 begins a new one."""
        if before == 0:
            self.close()
            self._document, self._before = document, 0
        rest, half = np.concatenate([self._rest, own]), self.size // 2
        start = 0
        while len(rest) - start > self.size + half:  # so much that this is not the last one
            self._append(rest[start : start + self.size], self._before + start)
            start += half
        self._rest, self._before = rest[start:], self._before + start

    def close(self) -> None:
        rest, half = self._rest, self.size // 2
        for start in range(0, max(1, len(rest) - half), half) if len(rest) else ():
            self._append(rest[start : start + self.size], self._before + start)
        self._rest, self._before = rest[:0], 0

    def _append(self, row: Ids, position: int) -> None:
        self.rows.append(row)
        self.places.append((self._document, position))

    def place(self, passage: int) -> Place:
        return Place(*self.places[passage])


def nearest(texts: Sequence[Ids], passages: Sequence[Ids]) -> list[tuple[int | None, float | None]]:
    """Per text the passage that BM25 ranks first (None: none shares a word that ranks) and the text's ROUGE-L recall in
    it (0 without a passage); None for a text without words."""

    def recall(text: Ids, first: int | None) -> float | None:
        if not len(text):
            return None
        return 0.0 if first is None else rouge_l_recall(text.tolist(), passages[first].tolist())

    return [(first, recall(text, first)) for text, first in zip(texts, bm25_first(texts, passages), strict=True)]


def rouge_l_recall(reference: Sequence[Any], passage: Sequence[Any]) -> float:
    """Longest common subsequence over the length of ``reference`` (Lin 2004); 0 for an empty one.

    Bits instead of a table (Hyyrö 2004): bit i of the state is 0 where a match ends at word i of ``reference``.
    """
    masks: dict[Any, int] = {}
    for i, word in enumerate(reference):
        masks[word] = masks.get(word, 0) | 1 << i
    full = (1 << len(reference)) - 1
    state = full
    for word in passage:
        matches = state & masks.get(word, 0)
        state = ((state + matches) | (state - matches)) & full
    return (len(reference) - state.bit_count()) / len(reference) if reference else 0.0


def bm25_first(queries: Sequence[Ids], passages: Sequence[Ids], k1: float = 1.5, b: float = 0.75) -> list[int | None]:
    """The passage of the highest BM25 score per query, the first of equals; None where all scores are 0."""
    from scipy.sparse import csr_matrix

    width = 1 + max((int(query.max(initial=0)) for query in queries), default=0)
    rows, columns, values = _counts(passages, width)
    lengths = np.array([len(passage) for passage in passages], dtype=np.float64)
    standing_in = np.bincount(columns, minlength=width)
    idf = np.log1p((len(passages) - standing_in + 0.5) / (standing_in + 0.5))
    if len(passages) > 100:
        idf[standing_in > len(passages) / 10] = 0.0
    ranks = idf[columns] > 0
    rows, columns, values = rows[ranks], columns[ranks], values[ranks]
    norm = k1 * (1 - b + b * lengths[rows] / lengths.mean())
    weights = csr_matrix((idf[columns] * values * (k1 + 1) / (values + norm), (columns, rows)), (width, len(passages)))
    first: list[int | None] = []
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        some = queries[start : start + _QUERIES_AT_ONCE]
        q_rows, q_columns, q_values = _counts(some, width)
        scores = csr_matrix((q_values, (q_rows, q_columns)), (len(some), width)) @ weights
        for i in range(len(some)):
            own = slice(scores.indptr[i], scores.indptr[i + 1])
            data, places = scores.data[own], scores.indices[own]
            best = data.max(initial=0.0)
            first.append(int(places[data == best].min()) if best > 0 else None)
    return first


def _counts(texts: Sequence[Ids], width: int) -> tuple[NDArray[Any], ...]:
    """Rows, columns and values of the matrix of word counts, in 16 bytes per word of a text; 0 and numbers from
    ``width`` on are left out."""
    found = []
    for start in range(0, len(texts), _COUNTED_AT_ONCE):
        some = texts[start : start + _COUNTED_AT_ONCE]
        words = np.concatenate(some) if some else np.zeros(0, dtype=np.int32)
        of = np.repeat(np.arange(len(some), dtype=np.int64), [len(text) for text in some])
        known = (words > 0) & (words < width)
        keys, values = np.unique(of[known] * width + words[known], return_counts=True)
        found.append(
            ((keys // width + start).astype(np.int32), (keys % width).astype(np.int32), values.astype(np.float64))
        )
    if not found:
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0)
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))
