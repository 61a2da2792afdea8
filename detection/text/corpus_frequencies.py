"""How common each token is in a corpus, under a model's own tokenizer.

The corpus is read once; the counts are kept in the user's cache folder by the content of corpus and tokenizer, so a
model trained from another with the same tokenizer needs no second count.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from detection.text.corpus import corpus_blocks, corpus_files
from serving.engines.common import load_tokenizer
from serving.files import write_text
from serving.model.embedded import cache_folder
from serving.model.fingerprint import file_hash, resolve_model
from serving.model.spec import ModelSpec

VERSION = 1
"""Raised when the same corpus gives other counts."""
BATCH = 1 << 20
"""Characters tokenised together: enough for all cores, and all that is ever in memory."""

MOST_PIECES = 1 << 20
"""Different pieces held before they are tokenised: bounds memory."""
_PIECES_AT_ONCE = 1 << 14
_BARE = "\0"
_PIECE = re.compile(r"(?:^\s+| )?\S+(?:(?! \S|\n\S)\s+\S+)*(?:\n(?=\S)|\s+\Z)?|^\s+\Z")
"""A word with the one space before it and the one line end behind it. Any other white space stays between its words:
what a tokenizer makes of it depends on both sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frequencies:
    """counts: occurrences by token id, where there are any; total: their sum; vocabulary: how many tokens exist."""

    counts: Mapping[int, int]
    total: int
    vocabulary: int

    def log(self, token: int) -> float:
        """log((count + 1) / (total + vocabulary)), Laplace-smoothed: never minus infinity."""
        return math.log((self.counts.get(token, 0) + 1) / (self.total + self.vocabulary))


def corpus_frequencies(corpus: Path, model: ModelSpec) -> Frequencies:
    """Counts the corpus, or reads the counts of an earlier time.

    The vocabulary is the tokenizer's, not the head's with its padding. A scripted model has no tokenizer: to it all
    tokens are equally common. ValueError for a corpus that can't be read or has no text, ModelError for a model without
    a tokenizer.
    """
    if model.engine == "scripted":
        return Frequencies(counts={}, total=0, vocabulary=50_000)
    tokenizer = load_tokenizer(model, resolve_model(model))
    files = [file_hash(file) for file in corpus_files(corpus)]
    key = json.dumps([VERSION, files, _identity(tokenizer)])
    cached = cache_folder() / "frequencies" / f"{hashlib.sha256(key.encode()).hexdigest()}.json"
    found = _read(cached)
    if found is None:
        found = count(corpus_blocks(corpus), tokenizer)
        if not found.total:
            raise ValueError(f"corpus {corpus} has no text")
        _write(cached, found)
    return found


def count(blocks: Iterable[str], tokenizer: Any) -> Frequencies:
    """Tokenises and counts texts. No special token is added, and one that a text spells is text.

    Words repeat: where the tokenizer takes a text apart at its spaces, each different piece is tokenised once. Whether
    it does is seen at the first texts, a mebibyte, which are counted both ways; where the counts differ, all are
    tokenised whole.
    """
    counts: Counter[int] = Counter()
    batches = _batches(blocks)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        backend.encode_special_tokens = True
        backend.no_truncation()
        backend.no_padding()
    first = next(batches, [])
    counts.update(chain.from_iterable(_tokenised(first, tokenizer)))
    by_piece = _count_pieces(_pieces(first), tokenizer) == counts
    pieces: Counter[str] = Counter()
    for batch in batches:
        if not by_piece:
            counts.update(chain.from_iterable(_tokenised(batch, tokenizer)))
            continue
        pieces.update(_pieces(batch))
        if len(pieces) > MOST_PIECES:
            counts.update(_count_pieces(pieces, tokenizer))
            pieces.clear()
    counts.update(_count_pieces(pieces, tokenizer))
    return Frequencies(counts=counts, total=counts.total(), vocabulary=len(tokenizer))


def _tokenised(texts: list[str], tokenizer: Any) -> list[list[int]]:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:  # twice as fast without the offsets that a call of the tokenizer computes
        return [row.ids for row in backend.encode_batch_fast(texts, add_special_tokens=False)]
    rows: list[list[int]] = tokenizer(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    return rows


def _pieces(texts: list[str]) -> Counter[str]:
    """The pieces of ``_PIECE``, and how often each comes: ``_BARE`` and the piece, or a word for the piece of a space
    and it. Where all white space is single spaces and line ends, they come of one split."""
    pieces: Counter[str] = Counter()
    for text in texts:
        if _is_even(text):
            pieces.update((_BARE + text.replace("\n", f"\n {_BARE}")).split(" "))
        else:
            pieces.update([_BARE + piece for piece in _PIECE.findall(text)])
    return pieces


def _is_even(text: str) -> bool:
    """Whether every white space is one space or one line end, with something else on both sides."""
    if not text or text[0] in " \n" or text[-1] in " \n":
        return False
    if "  " in text or "\n\n" in text or " \n" in text or "\n " in text:
        return False
    return text.replace("\n", "").isprintable()  # of white space only the space is


def _count_pieces(pieces: Counter[str], tokenizer: Any) -> Counter[int]:
    counts: Counter[int] = Counter()
    different = list(pieces)
    spelled = [piece[1:] if piece.startswith(_BARE) else f" {piece}" for piece in different]
    for start in range(0, len(different), _PIECES_AT_ONCE):
        some = different[start : start + _PIECES_AT_ONCE]
        for piece, ids in zip(some, _tokenised(spelled[start : start + _PIECES_AT_ONCE], tokenizer), strict=True):
            number = pieces[piece]
            for token in ids:
                counts[token] += number
    return counts


def _batches(blocks: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for block in blocks:
        batch.append(block)
        size += len(block)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _identity(tokenizer: Any) -> str:
    """Hash of what turns text into ids, whatever else a saved tokenizer says (template, padding side, truncation)."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    state = {"class": type(tokenizer).__name__, "vocabulary": tokenizer.get_vocab()}
    if backend is not None:
        state = {**json.loads(backend.to_str()), "padding": None, "truncation": None}
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _read(file: Path) -> Frequencies | None:
    """None where there is no file, or not a whole one."""
    try:
        row = json.loads(file.read_text(encoding="ascii"))
        counts = {int(token): int(number) for token, number in row["counts"].items()}
        found = Frequencies(counts=counts, total=int(row["total"]), vocabulary=int(row["vocabulary"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return found if found.total == sum(counts.values()) else None


def _write(file: Path, found: Frequencies) -> None:
    row = {"total": found.total, "vocabulary": found.vocabulary, "counts": dict(sorted(found.counts.items()))}
    with contextlib.suppress(OSError):  # a cache folder that can't be written costs time, nothing else
        write_text(file, json.dumps(row))
