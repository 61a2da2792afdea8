"""N-grams of some texts looked up in a corpus of any size, by hash: where does each stand, and in how many documents?

The corpus is read once. Its words become numbers (0 for those that no text has), the hashes of all its n-grams are
computed together and compared with those of the texts; a match of hashes is compared word by word. What is kept in
memory is the texts, a batch of the corpus and at most ``kept`` places of each n-gram. Two n-grams of the texts with one
64-bit hash would be taken for one: for a million n-grams that happens once in 10^7 runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detection.text.corpus import Block
from detection.text.cutting import words

Ids = NDArray[np.int32]
BATCH = 1 << 19
"""Words of the corpus looked up together."""
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an n-gram stands: the document's name and how many words of it come before."""

    document: str
    position: int


class Vocabulary:
    """Numbers of words, from 1 on in the order in which they come; 0 is any other word."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        self._numbers: dict[str, int] = {}
        for text in texts:
            for word in text:
                self._numbers.setdefault(word, len(self._numbers) + 1)
        draw = np.random.default_rng(0)
        self.hashes = draw.integers(0, 2**64, size=len(self._numbers) + 1, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self._numbers)

    def ids(self, text: Sequence[str]) -> Ids:
        number = self._numbers.get
        return np.fromiter((number(word, 0) for word in text), dtype=np.int32, count=len(text))


class NgramSearch:
    """The n-grams of texts, by length of n-gram, and what of them was found.

    grams: per text the number of the n-gram that begins at each word (none for a text without one)
    texts: per n-gram, in how many different texts it stands; documents: in how many documents of the corpus
    read_documents: of the corpus
    places: per n-gram its first place in each of the first ``kept`` documents that have it
    """

    def __init__(self, texts: Sequence[Ids], lengths: Sequence[int], vocabulary: Vocabulary, kept: int) -> None:
        self.vocabulary, self.kept = vocabulary, kept
        self.lengths = sorted({n for n in lengths if n})
        self.grams: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64) for _ in texts]
        self._known: dict[int, tuple[NDArray[np.uint64], NDArray[np.int32], int]] = {}
        total = 0
        for n in self.lengths:
            rows = [row for row, length in enumerate(lengths) if length == n]
            hashes = [_window_hashes(vocabulary.hashes[texts[row]], n) for row in rows]
            windows = np.concatenate([np.lib.stride_tricks.sliding_window_view(texts[row], n) for row in rows])
            unique, first, numbers = np.unique(np.concatenate(hashes), return_index=True, return_inverse=True)
            ends = np.cumsum([len(own) for own in hashes])[:-1]
            for row, own in zip(rows, np.split(numbers, ends), strict=True):
                self.grams[row] = own + total
            self._known[n] = (unique, windows[first], total)
            total += len(unique)
        self.texts = np.zeros(total, dtype=np.int64)
        different = {text.tobytes(): grams for text, grams in zip(texts, self.grams, strict=True)}
        for own in different.values():
            self.texts[np.unique(own)] += 1
        self.documents = np.zeros(total, dtype=np.int64)
        self.places: dict[int, list[Place]] = {}
        self.read_documents = 0
        self._last = np.full(total, -1, dtype=np.int64)

    def read(self, blocks: Iterable[Block], also: Callable[[str, int, Ids], None] | None = None) -> None:
        """Looks all n-grams up. ``also`` gets the words of each block: its document, how many of the document come
        before, and their numbers."""
        keep = max(self.lengths, default=1) - 1
        parts: list[Ids] = []
        starts: list[tuple[int, int, str, int]] = []  # place in the batch, document's number and name, words before
        size, number, before = 0, -1, 0
        apart = np.zeros(1, dtype=np.int32)  # a word that no text has: no n-gram crosses it
        for block in blocks:
            own = self.vocabulary.ids(words(block.text))
            if not block.goes_on:
                number, before = number + 1, 0
                parts.append(apart)
                size += 1
            if not block.goes_on or not starts:
                starts.append((size, number, block.document, before))
            parts.append(own)
            size += len(own)
            if also is not None:
                also(block.document, before, own)
            before += len(own)
            if size >= BATCH:
                batch = np.concatenate(parts)
                self._look_up(batch, starts)
                tail = batch[max(starts[-1][0], len(batch) - keep) :] if keep else batch[:0]
                parts, size = [tail], len(tail)
                starts = [(0, number, block.document, before - len(tail))]
        if parts:
            self._look_up(np.concatenate(parts), starts)
        self.read_documents = number + 1

    def _look_up(self, batch: Ids, starts: Sequence[tuple[int, int, str, int]]) -> None:
        hashed = self.vocabulary.hashes[batch]
        offsets = np.array([start[0] for start in starts], dtype=np.int64)
        for n, (unique, windows, base) in self._known.items():
            if len(batch) < n:
                continue
            hashes = _window_hashes(hashed, n)
            at = np.searchsorted(unique, hashes)
            at[at == len(unique)] = 0
            where = np.flatnonzero(unique[at] == hashes)
            own = np.lib.stride_tricks.sliding_window_view(batch, n)[where]
            where = where[(own == windows[at[where]]).all(axis=1)]
            self._keep(at[where] + base, where, offsets, starts)

    def _keep(
        self,
        grams: NDArray[np.int64],
        where: NDArray[np.int64],
        offsets: NDArray[np.int64],
        starts: Sequence[tuple[int, int, str, int]],
    ) -> None:
        """Counts each document once per n-gram; documents come in order, and one may go on from the last batch."""
        part = np.searchsorted(offsets, where, side="right") - 1
        _, first = np.unique(part * len(self.texts) + grams, return_index=True)  # ``where`` ascends: each's first place
        for i in first:
            gram, (offset, number, document, before) = int(grams[i]), starts[int(part[i])]
            if self._last[gram] == number:
                continue
            self._last[gram] = number
            self.documents[gram] += 1
            if self.documents[gram] <= self.kept:
                place = Place(document, before + int(where[i]) - offset)
                self.places.setdefault(gram, []).append(place)


def _window_hashes(hashed: NDArray[np.uint64], n: int) -> NDArray[np.uint64]:
    """A polynomial in 64 bits of every n numbers in a row; empty where there are fewer."""
    count = max(0, len(hashed) - n + 1)
    total = np.zeros(count, dtype=np.uint64)
    for k in range(n):
        total = total * _FACTOR + hashed[k : k + count]
    return total
