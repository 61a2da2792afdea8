"""The token table (shared by every detector and by the log-likelihood exams) at the speed of a bare forward pass.

A batch is cut into buckets of similar length; a bucket gives hidden states once, and the language-model head and all
reductions run over chunks of the *needed* rows in float32: batch x tokens x vocabulary never exists at once. Requests
with the same input (the four letters of one question) share one row, and identical positions one product with the head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from serving.records import ScoreRequest, TokenScores
from serving.rendering import Rendered

ROWS_PER_CHUNK = 256


@dataclass
class Row:
    """One distinct input: its ids, and the positions whose next token someone asks for."""

    ids: tuple[int, ...]
    positions: set[int] = field(default_factory=set)
    moments: bool = False


class Values(NamedTuple):
    """Per asked (position, token): log-probability, mean, standard deviation, rank."""

    logprob: float
    mean: float
    std: float
    rank: int


class Scoring(NamedTuple):
    """The tables of a batch and what they cost: tokens computed (padding apart) against tokens asked."""

    tables: list[TokenScores]
    computed_tokens: int
    asked_tokens: int


def score_batch(
    rendered: Sequence[Rendered],
    requests: Sequence[ScoreRequest],
    *,
    hidden_states: Callable[[Any, Any], Any],
    head: Callable[[Any], Any],
    max_length: int,
    bucket_tokens: int,
    pad_id: int,
    device: str,
) -> Scoring:
    """Scores a batch; order kept.

    hidden_states: (ids_BT, mask_BT) -> hidden_BTH, final norm applied
    head: hidden_NH -> float32 logits_NV, with whatever scaling or capping the model applies
    A text longer than max_length loses tokens from its beginning (``dropped``): the end of the answer is what counts.
    """
    rows: dict[tuple[int, ...], Row] = {}
    plans = []
    for text, request in zip(rendered, requests, strict=True):
        cut = max(0, len(text.ids) - max_length)
        ids, segments = text.ids[cut:], text.segments[cut:]
        wanted = [i for i in range(1, len(ids)) if not request.answer_only or segments[i] == "answer"]
        if wanted:
            row = rows.setdefault(ids[:-1], Row(ids[:-1]))
            row.positions.update(i - 1 for i in wanted)
            row.moments |= request.moments
        plans.append((ids, segments, wanted, cut))
    targets: dict[tuple[int, ...], dict[int, set[int]]] = {key: {} for key in rows}
    for ids, _, wanted, _ in plans:
        for i in wanted:
            targets[ids[:-1]].setdefault(i - 1, set()).add(ids[i])
    values: dict[tuple[int, ...], dict[tuple[int, int], Values]] = {}
    for bucket in _buckets(list(rows.values()), bucket_tokens):
        values.update(_score_bucket(bucket, targets, hidden_states, head, pad_id, device))
    tables = []
    for request, (ids, segments, wanted, cut) in zip(requests, plans, strict=True):
        found = [values[ids[:-1]][i - 1, ids[i]] for i in wanted]
        moments = found if request.moments else []
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
            )
        )
    computed = sum(len(row.ids) for row in rows.values())
    return Scoring(tables, computed, sum(max(0, len(ids) - 1) for ids, *_ in plans))


def _buckets(rows: list[Row], bucket_tokens: int) -> Iterator[list[Row]]:
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


def _score_bucket(
    bucket: list[Row],
    targets: dict[tuple[int, ...], dict[int, set[int]]],
    hidden_states: Callable[[Any, Any], Any],
    head: Callable[[Any], Any],
    pad_id: int,
    device: str,
) -> dict[tuple[int, ...], dict[tuple[int, int], Values]]:
    import torch

    length = max(len(row.ids) for row in bucket)
    ids_BT = torch.full((len(bucket), length), pad_id, dtype=torch.long)
    mask_BT = torch.zeros((len(bucket), length), dtype=torch.long)
    for b, row in enumerate(bucket):
        ids_BT[b, : len(row.ids)] = torch.tensor(row.ids)
        mask_BT[b, : len(row.ids)] = 1
    hidden_BTH = hidden_states(ids_BT.to(device), mask_BT.to(device))
    places = [(b, t) for b, row in enumerate(bucket) for t in sorted(row.positions)]
    moments = any(row.moments for row in bucket)
    found: dict[tuple[int, ...], dict[tuple[int, int], Values]] = {row.ids: {} for row in bucket}
    for start in range(0, len(places), ROWS_PER_CHUNK):
        chunk = places[start : start + ROWS_PER_CHUNK]
        b_N = torch.tensor([b for b, _ in chunk], device=hidden_BTH.device)
        t_N = torch.tensor([t for _, t in chunk], device=hidden_BTH.device)
        logits_NV = head(hidden_BTH[b_N, t_N])
        asked = [(n, b, t, token) for n, (b, t) in enumerate(chunk) for token in sorted(targets[bucket[b].ids][t])]
        n_M = torch.tensor([n for n, *_ in asked], device=logits_NV.device)
        token_M = torch.tensor([token for *_, token in asked], device=logits_NV.device)
        target_M = logits_NV[n_M, token_M]
        rows_MV = logits_NV if len(asked) == len(chunk) else logits_NV[n_M]
        rank_M = (rows_MV > target_M[:, None]).sum(-1)
        lse_N = torch.logsumexp(logits_NV, dim=-1)
        logprob_M = target_M - lse_N[n_M]
        if moments:
            mean_N, std_N = _moments(logits_NV, lse_N)
        else:
            mean_N = std_N = torch.zeros_like(lse_N)
        columns = zip(
            asked, logprob_M.tolist(), mean_N[n_M].tolist(), std_N[n_M].tolist(), rank_M.tolist(), strict=True
        )
        for (_, b, t, token), logprob, mean, std, rank in columns:
            found[bucket[b].ids][t, token] = Values(logprob, mean, std, rank)
    return found


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
