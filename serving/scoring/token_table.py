"""The token table (shared by every detector and by the log-likelihood exams) at the speed of a bare forward pass.

Every distinct token in its context is computed once: texts that share prefixes are laid out as trees
(``serving.prefix_tree``) where the model can do that, the others are padded in buckets of similar length. The
language-model head and all reductions run over chunks of the *needed* positions in float32: batch x tokens x
vocabulary never exists at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from serving.records import ScoreRequest, TokenScores
from serving.rendering import Rendered, last_tokens
from serving.scoring.prefix_tree import Header, Pack, plan

ROWS_PER_CHUNK = 256
"""Rows of one product with the language-model head."""


class Model(Protocol):
    """What scoring needs of a loaded model.

    tree_limit: the longest text that may be laid out in trees (0: none, the model can't be given a mask)
    """

    tree_limit: int

    def hidden_states(self, ids_BT: Any, mask_BT: Any) -> Any:
        """hidden_BTH, final norm applied."""

    def tree_states(self, ids_BT: Any, depths_BT: Any, visible_BTS: Any, header: Any) -> tuple[Any, Any]:
        """hidden_BTH of tokens after a header, and the keys and values of header and tokens.

        visible_BTS: S counts the header's tokens first; None: every token sees all before it (header None, then)
        header: what an earlier call returned, or None
        """

    def head(self, hidden_NH: Any) -> Any:
        """float32 logits_NV, with whatever scaling or capping the model applies."""


@dataclass
class Row:
    """One distinct input: its ids, the tokens that someone asks for after each position, and who asks for moments."""

    ids: tuple[int, ...]
    targets: dict[int, set[int]] = field(default_factory=dict)
    moments: bool = False
    computed: int = 0


class Values(NamedTuple):
    """Per asked (position, token): log-probability, mean, standard deviation, rank."""

    logprob: float
    mean: float
    std: float
    rank: int


Found = dict[tuple[int, int], Values]


def score_batch(
    rendered: Sequence[Rendered],
    requests: Sequence[ScoreRequest],
    model: Model,
    *,
    max_length: int,
    bucket_tokens: int,
    pad_id: int,
    device: str,
) -> list[TokenScores]:
    """Scores a batch; order kept.

    A text longer than max_length loses tokens from its beginning (``dropped``), all but its BOS: the end of the answer
    is what counts.
    What a shared token cost is counted for the first text that has it.
    """
    rows: dict[tuple[int, ...], Row] = {}
    plans = []
    for text, request in zip(rendered, requests, strict=True):
        kept, cut = last_tokens(text, max_length)
        ids, segments = kept.ids, kept.segments
        wanted = [i for i in range(1, len(ids)) if not request.answer_only or segments[i] == "answer"]
        if wanted:
            row = rows.setdefault(ids[:-1], Row(ids[:-1]))
            row.moments |= request.moments
            for i in wanted:
                row.targets.setdefault(i - 1, set()).add(ids[i])
        plans.append((ids, segments, wanted, cut))
    values = _compute(list(rows.values()), model, bucket_tokens, pad_id, device)
    tables = []
    for request, (ids, segments, wanted, cut) in zip(requests, plans, strict=True):
        found = [values[ids[:-1]][i - 1, ids[i]] for i in wanted]
        moments = found if request.moments else []
        row = rows[ids[:-1]] if wanted else Row(())
        computed, row.computed = row.computed, 0
        tables.append(
            TokenScores(
                ids=tuple(ids[i] for i in wanted),
                logprobs=tuple(v.logprob for v in found),
                segments=tuple(segments[i] for i in wanted),
                means=tuple(v.mean for v in moments),
                stds=tuple(v.std for v in moments),
                entropies=tuple(-v.mean for v in moments),
                ranks=tuple(v.rank for v in found),
                greedy=tuple(v.rank == 0 for v in found),
                dropped=cut,
                asked_tokens=max(0, len(ids) - 1),
                computed_tokens=computed,
            )
        )
    return tables


def _compute(
    rows: list[Row], model: Model, bucket_tokens: int, pad_id: int, device: str
) -> dict[tuple[int, ...], Found]:
    """The asked values of every row, by its ids."""
    values: dict[tuple[int, ...], Found] = {row.ids: {} for row in rows}
    work = _Work(model, bucket_tokens, pad_id, device, values)
    short = [row for row in rows if len(row.ids) <= model.tree_limit]
    layout = plan([row.ids for row in short])
    work.tree(layout.root, short)
    # Apart: of a model that computes long texts in another way, a long text in the bucket would change the short ones.
    for group in ([short[i] for i in layout.singles], [row for row in rows if len(row.ids) > model.tree_limit]):
        for bucket in buckets(group, bucket_tokens):
            work.bucket(bucket)
    return values


def buckets(rows: list[Row], bucket_tokens: int) -> Iterator[list[Row]]:
    """Rows of similar length, each bucket at most ``bucket_tokens`` padded tokens (or one row)."""
    ordered = sorted(rows, key=lambda row: (len(row.ids), row.ids))
    bucket: list[Row] = []
    for row in ordered:
        if bucket and (len(bucket) + 1) * len(row.ids) > bucket_tokens:
            yield bucket
            bucket = []
        bucket.append(row)
    if bucket:
        yield bucket


Node = tuple[int, int]
"""Where a token's hidden state stands: row of the batch, position in it."""


class _Work:
    """Forward passes over one batch of texts, and the reduction of what they give."""

    def __init__(
        self, model: Model, bucket_tokens: int, pad_id: int, device: str, values: dict[tuple[int, ...], Found]
    ) -> None:
        self.model = model
        self.bucket_tokens = bucket_tokens
        self.pad_id = pad_id
        self.device = device
        self.values = values

    def bucket(self, rows: list[Row]) -> None:
        """Padded texts, one to a row."""
        import torch

        length = max(len(row.ids) for row in rows)
        ids_BT = torch.full((len(rows), length), self.pad_id, dtype=torch.long)
        mask_BT = torch.zeros((len(rows), length), dtype=torch.long)
        nodes: dict[Node, list[tuple[Row, int]]] = {}
        for b, row in enumerate(rows):
            ids_BT[b, : len(row.ids)] = torch.tensor(row.ids)
            mask_BT[b, : len(row.ids)] = 1
            row.computed += len(row.ids)
            nodes.update({(b, t): [(row, t)] for t in row.targets})
        self._reduce(self.model.hidden_states(ids_BT.to(self.device), mask_BT.to(self.device)), nodes)

    def tree(self, root: Header, rows: list[Row]) -> None:
        """A layout's headers and all that follows them, depth first: keys and values are kept no longer than needed."""
        waiting: list[tuple[Header, Any]] = [(root, None)]
        while waiting:
            header, above = waiting.pop()
            cache = self._header(header, rows, above) if header.ids else above
            for batch in _batches(header.packs, self.bucket_tokens):
                self._packs(batch, rows, cache, header.start + len(header.ids))
            waiting.extend((child, cache) for child in reversed(header.children))

    def _header(self, header: Header, rows: list[Row], above: Any) -> Any:
        """A header's own tokens; returns its keys and values. above: those of the header it stands under."""
        import torch

        before, depth = header.start, header.start + len(header.ids)
        # The first one is a plain text: the causal kernel needs no mask, which would be quadratic in a long context.
        visible = torch.ones((1, len(header.ids), depth), dtype=torch.bool).tril(diagonal=before) if before else None
        hidden, cache = self._forward(torch.tensor([header.ids]), torch.arange(before, depth)[None], visible, above)
        rows[header.texts[0]].computed += len(header.ids)
        nodes: dict[Node, list[tuple[Row, int]]] = {}
        for row in (rows[i] for i in header.texts):
            for t in row.targets:
                if before <= t < depth:
                    nodes.setdefault((0, t - before), []).append((row, t))
        self._reduce(hidden, nodes)
        return cache

    def _packs(self, packs: list[Pack], rows: list[Row], header: Any, depth: int) -> None:
        import torch

        length = max(len(pack.ids) for pack in packs)
        ids_BT = torch.full((len(packs), length), self.pad_id, dtype=torch.long)
        depths_BT = torch.full((len(packs), length), depth, dtype=torch.long)
        visible = torch.zeros((len(packs), length, depth + length), dtype=torch.bool)
        visible[:, :, :depth] = True
        nodes: dict[Node, list[tuple[Row, int]]] = {}
        for b, pack in enumerate(packs):
            size = len(pack.ids)
            ids_BT[b, :size] = torch.tensor(pack.ids)
            depths_BT[b, :size] = torch.tensor(pack.depths)
            visible[b, :size, depth : depth + size] = torch.from_numpy(pack.visible_TT)
            for t in range(size, length):  # padding sees itself: a row of the mask without True gives NaN
                visible[b, t, depth + t] = True
            seen: set[int] = set()
            for i, path in pack.paths.items():
                rows[i].computed += len(set(path) - seen)
                seen.update(path)
                for t in rows[i].targets:
                    if t >= depth:
                        nodes.setdefault((b, path[t - depth]), []).append((rows[i], t))
        hidden, _ = self._forward(ids_BT, depths_BT, visible, header)
        self._reduce(hidden, nodes)

    def _forward(self, ids_BT: Any, depths_BT: Any, visible_BTS: Any, header: Any) -> tuple[Any, Any]:
        device = self.device
        visible_BTS = None if visible_BTS is None else visible_BTS.to(device)
        return self.model.tree_states(ids_BT.to(device), depths_BT.to(device), visible_BTS, header)

    def _reduce(self, hidden_BTH: Any, nodes: dict[Node, list[tuple[Row, int]]]) -> None:
        """Every asked value at the nodes, for every text that passes through them."""
        import torch

        places = sorted(nodes)
        moments = any(row.moments for asked in nodes.values() for row, _ in asked)
        for start in range(0, len(places), ROWS_PER_CHUNK):
            chunk = places[start : start + ROWS_PER_CHUNK]
            b_N = torch.tensor([b for b, _ in chunk], device=hidden_BTH.device)
            t_N = torch.tensor([t for _, t in chunk], device=hidden_BTH.device)
            logits_NV = self.model.head(hidden_BTH[b_N, t_N])
            tokens = [sorted(set().union(*(row.targets[t] for row, t in nodes[node]))) for node in chunk]
            asked = [(n, token) for n, wanted in enumerate(tokens) for token in wanted]
            found = dict(zip(asked, token_values(logits_NV, tokens, moments), strict=True))
            for n, node in enumerate(chunk):
                for row, t in nodes[node]:
                    for token in row.targets[t]:
                        self.values[row.ids][t, token] = found[n, token]


def _batches(packs: Sequence[Pack], bucket_tokens: int) -> Iterator[list[Pack]]:
    """Packs of similar length, each batch at most ``bucket_tokens`` padded tokens (or one pack)."""
    ordered = sorted(packs, key=lambda pack: -len(pack.ids))
    group: list[Pack] = []
    for pack in ordered:
        if group and (len(group) + 1) * len(group[0].ids) > bucket_tokens:
            yield group
            group = []
        group.append(pack)
    if group:
        yield group


CACHED_ROWS = 8
"""Rows reduced together on a CPU: at 50,000 words they take 1.6 MB."""


def token_values(logits_NV: Any, tokens: Sequence[Sequence[int]], moments: bool) -> Iterator[Values]:
    """Log-probability, mean, deviation and rank of each asked token, node by node; overwrites the logits.

    On a CPU a few rows at a time, all reductions one after the other, so that they stay in its cache: five times as
    fast as one reduction over all rows after the other.
    """
    import torch

    step = CACHED_ROWS if logits_NV.device.type == "cpu" else max(1, len(tokens))
    for start in range(0, len(tokens), step):
        rows_NV = logits_NV[start : start + step]
        here = tokens[start : start + step]
        n_M = torch.tensor([n for n, wanted in enumerate(here) for _ in wanted], device=rows_NV.device)
        token_M = torch.tensor([token for wanted in here for token in wanted], device=rows_NV.device)
        target_M = rows_NV[n_M, token_M]
        rows_MV = rows_NV if len(n_M) == len(here) else rows_NV[n_M]
        rank_M = (rows_MV > target_M[:, None]).sum(-1)
        lse_N = torch.logsumexp(rows_NV, dim=-1)
        logprob_M = target_M - lse_N[n_M]
        mean_N, std_N = _moments(rows_NV, lse_N) if moments else (torch.zeros_like(lse_N), torch.zeros_like(lse_N))
        columns = (logprob_M.tolist(), mean_N[n_M].tolist(), std_N[n_M].tolist(), rank_M.tolist())
        yield from (Values(*numbers) for numbers in zip(*columns, strict=True))


def _moments(logits_NV: Any, lse_N: Any) -> tuple[Any, Any]:
    """mu = E_p[log p] and sigma = sqrt(E_p[(log p - mu)^2]) over the full vocabulary; overwrites the logits.

    A token of probability 0 (a logit of -inf) adds nothing to either. A one-hot or uniform distribution has sigma 0
    exactly: a sigma within the rounding of the log-probabilities themselves would make (l - mu) / sigma 1 or -1.
    """
    import torch

    logp_NV = logits_NV.sub_(lse_N[:, None])
    p_NV = logp_NV.exp()
    logp_NV.clamp_(min=-1e4)
    mean_N = (p_NV * logp_NV).sum(-1)
    logp_NV.sub_(mean_N[:, None]).square_().mul_(p_NV)
    std_N = logp_NV.sum(-1).clamp_(min=0.0).sqrt()
    rounding_N = 8 * torch.finfo(lse_N.dtype).eps * (lse_N.abs() + mean_N.abs())
    return mean_N, std_N.masked_fill(std_N <= rounding_N, 0.0)
