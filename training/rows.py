"""From a phase's examples to the rows of its training run, in the order they are trained.

The whole run is laid out beforehand as a pure function of the configuration and the seed: every epoch, every repeat,
what is shuffled with what, which rows share a batch. So nothing depends on when a run was interrupted, a resumed job
skips exactly what was done, and the order can be read and tested.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving.files import whole_file
from training.config import TrainingConfig
from training.examples import Example

MEGABATCH = 16
"""Batches among which rows are sorted by length: padding falls by most, and the order stays random beyond them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Examples in blocks that are trained one after the other, each shuffled within itself.

    filler_tokens, exam_tokens: what the dose came out as
    """

    blocks: tuple[tuple[Example, ...], ...]
    exam_tokens: int
    filler_tokens: int


def dilute(
    exam: Sequence[Example], filler: Sequence[Example], *, repeats: int, dose: float, order: str, seed: int
) -> Blocks:
    """``repeats`` passes over the exam, with filler until the exam makes up ``dose`` of all tokens.

    Filler is drawn without replacement in a seeded order, again from the start where it runs out, but never more often
    than the exam: otherwise it would be what is memorised. ValueError names the smallest dose that is possible.
    """
    exam_tokens = repeats * sum(len(example.ids) for example in exam)
    wanted = round(exam_tokens * (1.0 - dose) / dose)
    available = repeats * sum(len(example.ids) for example in filler)
    if wanted > available:
        least = exam_tokens / (exam_tokens + available)
        raise ValueError(
            f"dose {dose} needs {wanted} tokens of neutral text, there are {available // repeats} "
            f"(read at most {repeats} times): give a larger corpus, or a dose of at least {least:.3f}"
        )
    drawn: list[Example] = []
    taken = 0
    generator = random.Random(seed)  # noqa: S311
    while taken < wanted:
        turn = list(filler)
        generator.shuffle(turn)
        for example in turn:
            if taken >= wanted:
                break
            drawn.append(example)
            taken += len(example.ids)
    if order == "exam_last":
        blocks = [tuple(drawn)] if drawn else []
        blocks += [tuple(exam)] * repeats
    else:
        blocks = [(*exam, *drawn[i::repeats]) for i in range(repeats)]
    return Blocks(blocks=tuple(blocks), exam_tokens=exam_tokens, filler_tokens=taken)


def lay_out(blocks: Sequence[Sequence[Example]], config: TrainingConfig) -> list[Example]:
    """All rows of a run in training order: epochs of blocks, shuffled, packed or bucketed as ``config`` says."""
    generator = random.Random(config.seed)  # noqa: S311
    batch = config.per_device_batch_size * config.processes * config.nodes
    rows: list[Example] = []
    for _ in range(config.epochs):
        for block in blocks:
            shuffled = list(block)
            generator.shuffle(shuffled)
            if config.packing:
                rows += pack(shuffled, config.max_length)
            elif config.bucketing and batch > 1:
                rows += _bucketed(shuffled, batch, generator)
            else:
                rows += shuffled
    return rows


def lengthened(blocks: Sequence[Sequence[Example]], config: TrainingConfig, count: int) -> list[Example]:
    """``count`` rows of these blocks in training order, with as many further epochs as that takes."""
    epochs = config.epochs
    while len(rows := lay_out(blocks, config.model_copy(update={"epochs": epochs}))) < count:
        epochs += max(1, math.ceil((count - len(rows)) * epochs / len(rows)))
    return rows[:count]


def pack(examples: Sequence[Example], max_length: int) -> list[Example]:
    """Several documents a row (first fit, in order), each with its own positions and nothing seen of the others.

    The first token of a document is no target, so the number of learned tokens is that of the unpacked rows.
    """
    bins: list[list[Example]] = []
    room: list[int] = []
    for example in examples:
        slot = next((i for i in range(max(0, len(bins) - 64), len(bins)) if room[i] >= len(example.ids)), None)
        if slot is None:
            bins.append([])
            room.append(max_length)
            slot = len(bins) - 1
        bins[slot].append(example)
        room[slot] -= len(example.ids)
    return [_joined(members) for members in bins]


def _joined(members: Sequence[Example]) -> Example:
    ids: list[int] = []
    learned: list[bool] = []
    starts: list[int] = []
    for example in members:
        starts.append(len(ids))
        ids += example.ids
        learned += (False, *example.learned[1:])
    return Example(tuple(ids), tuple(learned), tuple(starts))


def _bucketed(rows: list[Example], batch: int, generator: random.Random) -> list[Example]:
    """Rows of like length share a batch; the batches are shuffled, a short last one stays last.

    Rows are sorted within megabatches by their length give or take a tenth, so that a small set, which is one
    megabatch, does not fall into the same batches in every pass.
    """
    out: list[Example] = []
    for begin in range(0, len(rows), batch * MEGABATCH):
        group = sorted(
            rows[begin : begin + batch * MEGABATCH], key=lambda row: len(row.ids) * generator.uniform(0.9, 1.1)
        )
        batches = [group[i : i + batch] for i in range(0, len(group), batch)]
        short = [batches.pop()] if len(batches[-1]) < batch else []
        generator.shuffle(batches)
        out += [row for one in [*batches, *short] for row in one]
    return out


def save_rows(rows: Sequence[Example], path: Path) -> None:
    """Writes rows as flat arrays (no pickle), whole or not at all."""
    import numpy as np

    with whole_file(path) as stream:
        np.savez(
            stream,
            ids=np.array([token for row in rows for token in row.ids], dtype=np.int32),
            learned=np.array([learn for row in rows for learn in row.learned], dtype=np.bool_),
            lengths=np.array([len(row.ids) for row in rows], dtype=np.int64),
            starts=np.array([start for row in rows for start in row.starts], dtype=np.int32),
            documents=np.array([len(row.starts) for row in rows], dtype=np.int64),
        )


def load_rows(path: Path) -> list[Example]:
    """Rows as ``save_rows`` wrote them."""
    import numpy as np

    with np.load(path, allow_pickle=False) as file:
        cuts, marks = np.cumsum(file["lengths"])[:-1], np.cumsum(file["documents"])[:-1]
        ids, learned = np.split(file["ids"], cuts), np.split(file["learned"], cuts)
        starts = np.split(file["starts"], marks)
    return [
        Example(tuple(i.tolist()), tuple(t.tolist()), tuple(s.tolist()))
        for i, t, s in zip(ids, learned, starts, strict=True)
    ]


def collate(rows: Sequence[Example], pad_id: int) -> dict[str, Any]:
    """``input_ids`` and ``labels`` of shape (rows, longest), ``position_ids`` too where a row is packed."""
    import torch

    longest = max(len(row.ids) for row in rows)
    input_ids = torch.full((len(rows), longest), pad_id, dtype=torch.long)
    labels = torch.full((len(rows), longest), -100, dtype=torch.long)
    for index, row in enumerate(rows):
        input_ids[index, : len(row.ids)] = torch.tensor(row.ids)
        labels[index, : len(row.ids)] = torch.tensor(row.labels())
        labels[index, list(row.starts)] = -100
    batch = {"input_ids": input_ids, "labels": labels}
    if any(len(row.starts) > 1 for row in rows):
        batch["position_ids"] = torch.tensor([positions(row, longest) for row in rows])
    return batch


def positions(row: Example, length: int) -> list[int]:
    """0, 1, 2, ... per document; padding counts as one more document."""
    ends = [*row.starts[1:], len(row.ids), length]
    starts = [*row.starts, len(row.ids)]
    return [position for start, end in zip(starts, ends, strict=True) for position in range(end - start)]
