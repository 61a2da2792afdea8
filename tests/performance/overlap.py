"""Overlap and DC-PDD's token counts on 100,000 made-up documents, as Parquet and as compressed JSON lines.

    python -m tests.performance.overlap [DOCUMENTS]

Prints seconds, megabytes per second and the most memory that this process held. On a sample of the documents the
n-grams that are found are those of a loop over all of them. At most five minutes a corpus for overlap and at least 20
MB/s for the counts are right.
"""

from __future__ import annotations

import gzip
import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from detection import sets
from detection.method import Context, Text
from detection.text.corpus import corpus_blocks
from detection.text.corpus_frequencies import count
from detection.text.cutting import words

DOCUMENTS, LEAKED, ITEMS, SAMPLE, MOST_SECONDS, LEAST_MB_PER_SECOND = 100_000, 500, 1_000, 2_000, 300, 20


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTS
    texts, documents = made(number)
    size = sum(len(document.encode()) for document in documents) / 1e6
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        for file in (written_lines(Path(scratch), documents), written_parquet(Path(scratch), documents)):
            began = time.perf_counter()
            found = examine(file, texts)
            seconds = time.perf_counter() - began
            print(
                f"overlap, {file.name}: {number} documents, {size:.0f} MB, {len(texts)} texts: {seconds:.0f} s, "
                f"{size / seconds:.1f} MB/s, most memory {memory():.2f} GB, share {found['share']}"
            )
            good &= seconds <= MOST_SECONDS
        sample = written_lines(Path(scratch), documents[:SAMPLE])
        same = [row["ngrams"] for row in examine(sample, texts)["texts"]] == by_loop(texts, documents[:SAMPLE])
        print(f"the same as a loop over {SAMPLE} documents: {same}")
        file = written_lines(Path(scratch), documents)
        began = time.perf_counter()
        total = count(corpus_blocks(file), tokenizer()).total
        speed = size / (time.perf_counter() - began)
        print(f"dc_pdd, {file.name}: {total} tokens, {speed:.1f} MB/s, most memory {memory():.2f} GB")
    if not good or not same or speed < LEAST_MB_PER_SECOND:
        sys.exit(1)


def made(number: int) -> tuple[list[str], list[str]]:
    """Items of 40 words, and documents of 100 to 500 whose words are as frequent as a language's (Zipf); of some
    documents the middle is an item."""
    draw = random.Random(0)
    vocabulary = ["".join(draw.choices("etaoinshrdlucmfw", k=draw.randint(2, 9))) for _ in range(50_000)]
    cumulative, total = [], 0.0
    for rank in range(1, len(vocabulary) + 1):
        total += 1 / rank
        cumulative.append(total)

    def text(length: int) -> list[str]:
        return draw.choices(vocabulary, cum_weights=cumulative, k=length)

    items = [" ".join(text(40)) for _ in range(ITEMS)]
    documents = []
    for index in range(number):
        some = text(draw.randint(100, 500))
        if index % max(1, number // LEAKED) == 0:
            some[50:50] = items[draw.randrange(ITEMS // 2)].split()
        lines = [" ".join(some[start : start + 60]) + "." for start in range(0, len(some), 60)]
        documents.append("\n".join(lines))
    return items, documents


def written_lines(folder: Path, documents: list[str]) -> Path:
    file = folder / "corpus.jsonl.gz"
    with gzip.open(file, "wt", encoding="utf-8", compresslevel=1) as stream:
        stream.writelines(json.dumps({"text": document}) + "\n" for document in documents)
    return file


def written_parquet(folder: Path, documents: list[str]) -> Path:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text": documents}), folder / "corpus.parquet", row_group_size=10_000)
    return folder / "corpus.parquet"


def examine(corpus: Path, texts: list[str]) -> dict[str, Any]:
    rows = [Text(id=i, text=text, label=None) for i, text in enumerate(texts)]
    dialogue = sets.build(["overlap"], Context(corpus=corpus))[0].examine(rows, [])
    next(dialogue)
    try:
        dialogue.send([])
    except StopIteration as done:
        found: dict[str, Any] = done.value
        return found
    raise AssertionError("overlap asks no model")


def by_loop(texts: list[str], documents: list[str]) -> list[float]:
    """The share of each text's 13-grams that stand in 1 to 10 documents, of those that no other text has."""
    grams = [{tuple(own[i : i + 13]) for i in range(len(own) - 12)} for own in map(words, texts)]
    counted: dict[tuple[str, ...], int] = dict.fromkeys(set().union(*grams), 0)
    shared = {gram for gram in counted if sum(gram in own for own in grams) > 1}
    for document in documents:
        own = words(document)
        for gram in {tuple(own[i : i + 13]) for i in range(len(own) - 12)}:
            if gram in counted:
                counted[gram] += 1
    shares = []
    for own_grams in grams:
        looked_up = [gram for gram in own_grams if gram not in shared and counted[gram] <= 10]
        shares.append(sum(counted[gram] > 0 for gram in looked_up) / len(looked_up))
    return shares


def tokenizer() -> object:
    """A byte-level BPE of 8,000 tokens, trained on made-up words."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=8_000, initial_alphabet=alphabet, show_progress=False)
    raw.train_from_iterator(made(2_000)[1], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=raw)


def memory() -> float:
    """GB, of this process at its most: with the made-up documents themselves, which it holds too."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
