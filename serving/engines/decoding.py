"""Per-row control of a transformers ``generate`` call: grammar, sampling with an own seed, and the end of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from serving.engines.common import Prepared
from serving.records import Request


class PerRow:
    """A logits processor that leaves one finite logit per sampled row, so that greedy decoding picks our sample.

    matchers: an xgrammar GrammarMatcher or None per row
    """

    def __init__(self, requests: Sequence[Request], matchers: Sequence[Any], prompt_width: int) -> None:
        self._requests = requests
        self._matchers = matchers
        self._width = prompt_width
        self._generators = [
            torch.Generator().manual_seed(request.sampling.seed) if request.sampling.temperature > 0 else None
            for request in requests
        ]
        self._bitmask: Any = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores = scores.float()
        if any(matcher is not None for matcher in self._matchers):
            self._apply_grammars(input_ids, scores)
        for b, (request, generator) in enumerate(zip(self._requests, self._generators, strict=True)):
            if generator is not None:
                token = _sample(scores[b], request.sampling.temperature, request.sampling.top_p, generator)
                scores[b] = float("-inf")
                scores[b, token] = 0.0
        return scores

    def _apply_grammars(self, input_ids: torch.Tensor, scores: torch.Tensor) -> None:
        import xgrammar

        first = input_ids.shape[1] == self._width
        if self._bitmask is None:
            self._bitmask = xgrammar.allocate_token_bitmask(len(self._matchers), scores.shape[-1])
        live = []
        for b, matcher in enumerate(self._matchers):
            if matcher is None or matcher.is_terminated():
                continue
            if not first and not matcher.accept_token(int(input_ids[b, -1])):
                continue  # the row has ended: what follows is padding
            if not matcher.is_terminated():
                matcher.fill_next_token_bitmask(self._bitmask, b)
                live.append(b)
        if live:
            xgrammar.apply_token_bitmask_inplace(scores, self._bitmask.to(scores.device), indices=live)


def _sample(logits_V: torch.Tensor, temperature: float, top_p: float, generator: torch.Generator) -> int:
    """One token from softmax(logits / temperature) restricted to the smallest set of mass top_p; on the CPU."""
    p_V = torch.softmax(logits_V.cpu() / temperature, dim=-1)
    if top_p < 1.0:
        sorted_V, order_V = p_V.sort(descending=True, stable=True)
        drop_V = sorted_V.cumsum(-1) - sorted_V >= top_p
        p_V[order_V[drop_V]] = 0.0
    return int(torch.multinomial(p_V, 1, generator=generator))


class RowsDone:
    """A stopping criterion per row: its own token budget, or one of its stop strings has appeared.

    lengths: tokens per row when it stopped; a row's budget where it ended by itself (its end token tells where)
    """

    def __init__(self, tokenizer: Any, prepared: Sequence[Prepared], prompt_width: int) -> None:
        self._tokenizer = tokenizer
        self._prepared = prepared
        self._width = prompt_width
        self.lengths = [ready.room for ready in prepared]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:
        count = input_ids.shape[1] - self._width
        done = []
        for b, ready in enumerate(self._prepared):
            if count < self.lengths[b] and ready.stop and self._stopped(input_ids[b], ready.stop):
                self.lengths[b] = count
            done.append(count >= self.lengths[b])
        return torch.tensor(done, device=input_ids.device)

    def _stopped(self, row_T: torch.Tensor, stops: tuple[str, ...]) -> bool:
        longest = max(len(stop) for stop in stops)
        tail = row_T[self._width :][-(longest + 8) :]
        text = self._tokenizer.decode(tail, skip_special_tokens=True)
        return any(stop in text for stop in stops)
