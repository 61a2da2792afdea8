"""Attention over packed rows, document by document: on a CPU the work of a row falls from the square of its length to
the sum of its documents' squares.

transformers keeps packed documents apart by a mask over the whole row, all of which is computed. Here the row is cut
where its positions restart, and each document attends to itself; everything else of the model sees the whole row. On a
GPU the mask is kept: many small kernels cost more there than one masked one.
"""

from __future__ import annotations

import itertools
from typing import Any

NAME = "proctor_documents"


def apart(model: Any) -> bool:
    """Sets the model to attend document by document, and says whether it did: on a CPU, in a causal model that attends
    to all that came before. Sliding windows, chunks and capped logits stay with transformers' own attention."""
    from transformers import AttentionInterface

    whole = model.get_base_model() if hasattr(model, "get_base_model") else model
    config = whole.config.get_text_config()
    if whole.device.type != "cpu" or config._attn_implementation != "sdpa" or _partial(config):
        return False
    AttentionInterface.register(NAME, by_document)  # no mask of that name: transformers makes none
    whole.set_attn_implementation(NAME)
    return True


def together(model: Any) -> None:
    """Back to transformers' attention, which masks."""
    (model.get_base_model() if hasattr(model, "get_base_model") else model).set_attn_implementation("sdpa")


def _partial(config: Any) -> bool:
    """Whether some layer does not attend to everything before a token, or not by softmax of plain products."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    windows = [getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size")]
    return kinds != {"full_attention"} or any(windows) or bool(getattr(config, "attn_logit_softcapping", None))


def by_document(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **options: Any) -> tuple[Any, None]:
    """transformers' attention function: ``query`` (rows, heads, length, size) to (rows, length, heads, size).

    ``position_ids`` (rows, length), which models hand down, start at 0 with every document.
    """
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    positions = options.get("position_ids")
    rows, length = query.shape[0], query.shape[2]
    if positions is None or positions.dim() != 2 or attention_mask is not None or key.shape[2] != length:
        whole, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return whole, None
    positions = positions.expand(rows, length)
    done = []
    for row in range(rows):
        sizes = _sizes(positions[row])
        parts = [tensor[row : row + 1].split(sizes, dim=2) for tensor in (query, key, value)]
        found = [sdpa_attention_forward(module, *one, None, **options)[0] for one in zip(*parts, strict=True)]
        done.append(found[0] if len(found) == 1 else torch.cat(found, dim=1))
    return (done[0] if rows == 1 else torch.cat(done)), None


def _sizes(positions: Any) -> list[int]:
    """Lengths of a row's documents. The first may go on from before the row: its positions need not start at 0."""
    starts = [0, *((positions[1:] == 0).nonzero()[:, 0] + 1).tolist(), len(positions)]
    return [end - start for start, end in itertools.pairwise(starts)]
