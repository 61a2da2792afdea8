"""How common each token is in a corpus, under a model's own tokenizer.

The corpus is read once; the counts are kept in the user's cache folder by the content of corpus and tokenizer, so a
model trained from another with the same tokenizer needs no second count.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
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
    """Tokenises and counts texts. No special token is added, and one that a text spells is text."""
    counts: Counter[int] = Counter()
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        backend.encode_special_tokens = True
        backend.no_truncation()
        backend.no_padding()
    for batch in _batches(blocks):
        if backend is not None:  # twice as fast without the offsets that a call of the tokenizer computes
            rows = [row.ids for row in backend.encode_batch_fast(batch, add_special_tokens=False)]
        else:
            rows = tokenizer(batch, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        counts.update(chain.from_iterable(rows))
    return Frequencies(counts=counts, total=counts.total(), vocabulary=len(tokenizer))


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
