"""Rows become a batch: padded on the right, no loss on padding, positions that restart with every packed document.

No attention mask is passed. In a causal model a token sees nothing to its right, so padding there changes nothing; and
where positions restart, transformers keeps packed documents apart by them (``training.trainer.check_packing`` proves it
on the model before it is trained).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from training.examples import Example


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
