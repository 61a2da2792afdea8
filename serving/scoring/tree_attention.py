"""Whether and how a transformers model computes a tree of tokens: a 4-D mask, positions by depth, a header's cache."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Protocol

_PROBE = 40
"""Tokens of a branch in the test: far enough that a model which counts places instead of depths is found out."""


class Loaded(Protocol):
    model: Any
    _exact_head: bool

    def hidden_states(self, ids_BT: Any, mask_BT: Any) -> Any: ...


def tree_states(model: Any, ids_BT: Any, depths_BT: Any, visible_BTS: Any, header: Any) -> tuple[Any, Any]:
    """hidden_BTH and the cache of header and tokens; the header's own cache (of one text) is left as it was.

    visible_BTS None: a text without a header, computed by the causal kernel without a mask in memory.
    """
    import torch
    from transformers import DynamicCache

    cache = DynamicCache()
    batch = ids_BT.shape[0]
    for number, layer in enumerate(header.layers if header is not None else ()):
        keys, values = layer.keys, layer.values
        cache.update(keys.expand(batch, -1, -1, -1), values.expand(batch, -1, -1, -1), number)
    output = model(
        input_ids=ids_BT,
        attention_mask=torch.ones_like(ids_BT) if visible_BTS is None else visible_BTS[:, None],
        position_ids=depths_BT,
        past_key_values=cache,
        use_cache=True,
    )
    return output.last_hidden_state, output.past_key_values


def tree_limit(loaded: Loaded) -> int:
    """The longest text that this model computes in a tree exactly as on its own; 0 if it can't.

    It is tried: models without attention, with positions that aren't given by ids (ALiBi), or whose attention kernel
    takes no mask, fail the trial and are scored the common way. A window or chunk of attention bounds the length; so
    does the length at which a model changes its rotary frequencies, those of a text's beginning included.
    """
    config = loaded.model.config.get_text_config()
    # Eager attention adds a mask of booleans to its weights; in half precision the trial might not notice.
    if not loaded._exact_head or config._attn_implementation != "sdpa" or not _works(loaded):
        return 0
    windows = [getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size")]
    return min([int(window) for window in [*windows, *_rotary_changes(config)] if window], default=sys.maxsize)


def _rotary_changes(config: Any) -> Iterator[int | None]:
    """The lengths beyond which the rotary frequencies depend on a text's length (LongRoPE, dynamic NTK)."""
    given = getattr(config, "rope_parameters", None) or {}
    for rotary in (given, *given.values()):  # one set for all layers, or one per kind of layer
        if isinstance(rotary, dict) and rotary.get("rope_type") in ("longrope", "dynamic"):
            own = getattr(config, "original_max_position_embeddings", None) or config.max_position_embeddings
            yield rotary.get("original_max_position_embeddings") or own


def _works(loaded: Loaded) -> bool:
    """Two branches after one header, the second far behind the first, against the same two texts alone."""
    import torch

    model = loaded.model
    size = model.get_input_embeddings().num_embeddings
    device = model.device
    header = torch.arange(5, 13) % size
    branches = [torch.arange(20, 20 + _PROBE) % size, torch.arange(61, 66) % size]
    try:
        with torch.inference_mode():
            alone = [
                loaded.hidden_states(text[None].to(device), torch.ones_like(text)[None].to(device))[0, len(header) :]
                for text in (torch.cat([header, branch]) for branch in branches)
            ]
            places = torch.arange(len(header), device=device)[None]
            _, cache = tree_states(model.base_model, header[None].to(device), places, None, None)
            ids = torch.cat(branches)
            depths = len(header) + torch.cat([torch.arange(len(branch)) for branch in branches])
            owner = torch.cat([torch.full((len(branch),), number) for number, branch in enumerate(branches)])
            own = (owner[:, None] == owner[None]) & torch.ones((len(ids), len(ids)), dtype=torch.bool).tril()
            visible = torch.cat([torch.ones((len(ids), len(header)), dtype=torch.bool), own], dim=1)
            together, _ = tree_states(
                model.base_model, ids[None].to(device), depths[None].to(device), visible[None].to(device), cache
            )
            ends = torch.split(together[0].float(), [len(branch) for branch in branches])
            # Branch by branch: the second, short one is the one that goes wrong.
            apart = max(float((a.float() - b).norm() / a.float().norm()) for a, b in zip(alone, ends, strict=True))
        return apart < (1e-4 if model.dtype == torch.float32 else 3e-2)
    except (AttributeError, TypeError, RuntimeError, ValueError, IndexError, KeyError, NotImplementedError):
        return False
