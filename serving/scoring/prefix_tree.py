"""Which texts of a batch share tokens, and how those are laid out so that each is computed once.

A *pack* is a forest written into one row of a batch: every token stands once, sees its own ancestors only (a mask) and
has its depth as its position. Packs are kept short, for the mask is quadratic. A *header* (a few-shot prefix, a long
context) that the texts of several packs share is computed once before them, and they read its keys and values.

Pure functions of token ids; no torch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ids = tuple[int, ...]

PACK_TOKENS = 384
"""Tokens of a pack: enough to keep the cores of a GPU or CPU busy together with the batch, few enough for the mask."""
MIN_HEADER = 24
"""A shorter prefix costs less to compute again than to carry as keys and values."""
MIN_SAVING = 0.1
"""Texts that share less than this part of their tokens go the common way: its causal kernels need no mask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """ids, depths: [T], depths counted from the beginning of the text (the header included)
    paths: per text (its index in the batch), the places in the pack of its tokens after the header, ascending; the
        texts in the order in which the pack was filled
    """

    ids: list[int]
    depths: list[int]
    paths: dict[int, list[int]]

    @property
    def visible_TT(self) -> NDArray[np.bool_]:
        """Whether token t (row) sees token s (column) of the pack; every token sees all of the header.

        Made when asked for: a large batch's packs would fill the memory with their masks.
        """
        visible = np.zeros((len(self.ids), len(self.ids)), dtype=np.bool_)
        filled = 0
        for path in self.paths.values():
            kept = bisect_left(path, filled)
            if kept < len(path):
                end = path[-1] + 1
                visible[filled:end, path[:kept]] = True
                visible[filled:end, filled:end] = np.tri(end - filled, dtype=np.bool_)
                filled = end
        return visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A prefix with everything that follows it.

    ids: its tokens, without those of the header above it; start: how many those are
    texts: the batch's texts that begin with it
    """

    ids: Ids
    start: int
    texts: list[int]
    packs: list[Pack] = field(default_factory=list)
    children: list[Header] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """singles: texts that share too little; root: the rest, under an empty header."""

    singles: list[int]
    root: Header


def plan(texts: Sequence[Ids], *, pack_tokens: int = PACK_TOKENS) -> Plan:
    """The layout of a batch of distinct texts; every text is in ``singles`` or has its tokens in one header's packs."""
    order = sorted(range(len(texts)), key=lambda i: texts[i])
    rows = [texts[i] for i in order]
    shared = [_common(a, b) for a, b in pairwise(rows)]
    singles: list[int] = []
    forest = _Forest(order, rows, shared, pack_tokens)
    root = Header(ids=(), start=0, texts=order)
    open_headers = [(root, range(len(rows)))]
    while open_headers:  # a conversation's growing prefixes nest deeper than Python's stack
        header, part = open_headers.pop()
        open_headers.extend(_fill(header, part, forest, singles))
    return Plan(singles=sorted(singles), root=root)


@dataclass(frozen=True, slots=True)
class _Forest:
    """Texts in lexicographic order: those with a common prefix stand together."""

    order: list[int]
    rows: list[Ids]
    shared: list[int]
    pack_tokens: int

    def common(self, part: range) -> int:
        """Length of the prefix that a part's texts share: that of its first and its last."""
        return _common(self.rows[part[0]], self.rows[part[-1]])

    def size(self, part: range, start: int) -> int:
        """Distinct tokens of a part's texts beyond the first ``start``."""
        return sum(len(self.rows[i]) for i in part) - sum(self.shared[i] for i in part[:-1]) - start

    def children(self, part: range, common: int) -> Iterator[range]:
        """The part cut where its texts share no more than all of them do."""
        begin = part[0]
        for i in part[:-1]:
            if self.shared[i] == common:
                yield range(begin, i + 1)
                begin = i + 1
        yield range(begin, part[-1] + 1)


def _fill(header: Header, part: range, forest: _Forest, singles: list[int]) -> list[tuple[Header, range]]:
    """Fills a header's packs with the texts that need no header of their own; returns the new headers below it."""
    depth = header.start + len(header.ids)
    below: list[tuple[Header, range]] = []
    units: list[range] = []
    waiting = [part] if len(part) else []
    while waiting:
        here = waiting.pop()
        common = forest.common(here)
        tokens = forest.size(here, depth)
        worth = len(here) > 1 and tokens > forest.pack_tokens
        saves = depth > 0 or tokens <= (1 - MIN_SAVING) * sum(len(forest.rows[i]) for i in here)
        if worth and saves and common - depth >= MIN_HEADER:
            inner = forest.rows[here[0]][depth:common]
            below.append((Header(ids=inner, start=depth, texts=[forest.order[i] for i in here]), here))
        elif worth:
            waiting.extend(reversed(list(forest.children(here, common))))
        elif saves:
            units.append(here)
        else:
            singles.extend(forest.order[i] for i in here)
    header.children.extend(child for child, _ in below)
    header.packs.extend(_packs(units, depth, forest))
    return below


def _packs(units: Sequence[range], depth: int, forest: _Forest) -> Iterator[Pack]:
    """Units in order, as many to a pack as fit; one that is larger than a pack (a single long text) is its own."""
    group: list[range] = []
    filled = 0
    for unit in units:
        tokens = forest.size(unit, depth)
        if group and filled + tokens > forest.pack_tokens:
            yield _pack(group, depth, forest)
            group, filled = [], 0
        group.append(unit)
        filled += tokens
    if filled:
        yield _pack(group, depth, forest)


def _pack(units: Sequence[range], depth: int, forest: _Forest) -> Pack:
    ids: list[int] = []
    depths: list[int] = []
    paths: dict[int, list[int]] = {}
    for unit in units:
        path: list[int] = []
        for i in unit:
            kept = forest.shared[i - 1] - depth if i > unit[0] else 0
            path = path[:kept]
            new = list(range(len(ids), len(ids) + len(forest.rows[i]) - depth - kept))
            path = path + new
            ids.extend(forest.rows[i][depth + kept :])
            depths.extend(range(depth + kept, len(forest.rows[i])))
            paths[forest.order[i]] = path
    return Pack(ids=ids, depths=depths, paths=paths)


def _common(a: Ids, b: Ids) -> int:
    """Length of the longest common prefix."""
    length = min(len(a), len(b))
    if a[:length] == b[:length]:
        return length
    low, high = 0, length  # a[:low] equal, a[:high] not
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
