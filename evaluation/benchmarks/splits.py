"""Which items leak, which are drawn, which serve as exemplars: pure functions of item ids and a seed.

Items are ordered by a hash of seed and id, so a choice depends neither on row order nor on a library's random numbers,
and adding the items of another benchmark never reshuffles one.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from typing import NamedTuple

from evaluation.items import Item


class Halves(NamedTuple):
    """Item ids, sorted; the two sets are disjoint and together are all items."""

    leaked: tuple[str, ...]
    untouched: tuple[str, ...]


def halves(items: Sequence[Item], seed: int) -> Halves:
    """A seeded random half that leaks, and the half that is kept untouched as the fair control.

    Of an odd number the untouched half has one more. ValueError for fewer than 2 items or an id that occurs twice.
    """
    ids = _unique_ids(items)
    if len(ids) < 2:
        raise ValueError(f"there are {len(ids)} items; halves need at least 2")
    shuffled = _shuffled(ids, seed, "halves")
    middle = len(ids) // 2
    return Halves(tuple(sorted(shuffled[:middle])), tuple(sorted(shuffled[middle:])))


def members(items: Sequence[Item], which: str, seed: int) -> tuple[str, ...]:
    """Ids of the items that leak, sorted: a seeded random ``half``, ``all``, or those of the split of that name.

    ValueError for a split that no item has, or that has them all (then say ``all``: there is no control).
    """
    ids = _unique_ids(items)
    if which == "half":
        return halves(items, seed).leaked
    if which == "all":
        return tuple(sorted(ids))
    found = tuple(sorted(item.id for item in items if item.split == which))
    there_are = ", ".join(sorted({item.split or "(none)" for item in items}))
    if not found:
        raise ValueError(f"leaked items: no item has the split {which!r}; there are: {there_are} (or say half, or all)")
    if len(found) == len(ids):
        raise ValueError(f"leaked items: every item has the split {which!r}, so there is no control; say half, or all")
    return found


def draw(items: Sequence[Item], n: int, seed: int) -> list[Item]:
    """``n`` items at random, in the order in which they stand in ``items``. What ``n`` draws, ``n + 1`` draws too.

    ValueError if n < 1, if there are fewer than ``n`` items, or if an id occurs twice.
    """
    ids = _unique_ids(items)
    if not 1 <= n <= len(ids):
        raise ValueError(f"asked to draw {n} items; it must be 1 to {len(ids)}, the number there are")
    drawn = set(_shuffled(ids, seed, "draw")[:n])
    return [item for item in items if item.id in drawn]


def exemplars_for(item: Item, pool: Sequence[Item], k: int, seed: int) -> list[Item]:
    """``k`` exemplars: the same, in the same order, for all items of a subject.

    They are drawn from the pool's items of that subject, or from the whole pool if it has none of it. The item itself
    and its copies (``copies_of``) are never among them: the next one takes its place.

    Where the pool has ``k`` for other subjects and fewer for this one, all of these are taken, with a warning: MMLU's
    dev split has five per subject, but one of college_physics stands there twice.
    ValueError if the pool is too small otherwise, k < 0, or the pool has an id twice.
    """
    if k < 0:
        raise ValueError(f"asked for {k} exemplars; it must be 0 or more")
    if k == 0:
        return []
    _unique_ids(pool)
    matched = [other for other in pool if other.subject == item.subject]
    copies = {other.id for other in copies_of(item, pool)}
    candidates = {other.id: other for other in (matched or pool) if other.id not in copies}
    largest = max(Counter(other.subject for other in pool).values(), default=0)
    if 0 < len(candidates) < k <= largest and matched:
        _warn_of_few(item.subject, k, len(candidates))
    elif len(candidates) < k:
        where = f" for subject {item.subject}" if matched else ""
        raise ValueError(
            f"asked for {k} exemplars, the pool has {len(candidates)}{where}; ask for fewer shots or name a larger "
            "train or dev split ('exemplars' of the benchmark, --exemplars)"
        )
    order = _shuffled(candidates, seed, f"exemplars/{item.subject if matched else ''}")
    return [candidates[identity] for identity in order[:k]]


@cache
def _warn_of_few(subject: str, k: int, n: int) -> None:
    """Once per subject, not once per item."""
    logging.getLogger(__name__).warning(
        "subject %s has %d exemplars, not the %d asked for: all are used", subject, n, k
    )


def copies_of(item: Item, pool: Sequence[Item]) -> list[Item]:
    """Of the pool's part that this item's exemplars come from, the items that ask what it asks: they give its key away.

    Questions are compared by ``question_key``, whatever their options and keys are: a copy may have its options in
    another order, or others. Two passages make two questions, unless one of the copies lacks it.
    """
    part = [other for other in pool if other.subject == item.subject] or pool
    return [other for other in part if other.id == item.id or _asks_the_same(other, item)]


def _asks_the_same(a: Item, b: Item) -> bool:
    if question_key(a.question) != question_key(b.question):
        return False
    return not a.context.strip() or not b.context.strip() or question_key(a.context) == question_key(b.context)


_EDGES = " .,:;!?_-…。？！：；、،؟\"'“”‘’«»()[]*"


_NUMBERED = re.compile(r"^\s*(?:(?:question|q)\s*\d{0,4}\s*[.:)]|\(?\d{1,4}[.)](?=\s))\s*(?=\S)", re.IGNORECASE)


@lru_cache(maxsize=65536)
def question_key(text: str) -> str:
    """A text for comparison: one spelling per character (NFKC), no case, no white space or invisible characters, no
    punctuation at its ends, and no label or number before it (``Q:``, ``12. ``)."""
    text = _NUMBERED.sub("", text)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = "".join(c for c in folded if not c.isspace() and unicodedata.category(c) not in ("Cf", "Cc"))
    alike = kept.translate(_ALIKE)
    return alike.strip(_EDGES) or alike


_ALIKE = {ord(c): to for to, alike in (("'", "‘’ʼ`´"), ('"', "“”„«»"), ("-", "‐‑‒–—−")) for c in alike}


def _shuffled(ids: Iterable[str], seed: int, purpose: str) -> list[str]:
    return sorted(ids, key=lambda identity: (sha256(f"{seed}\x1f{purpose}\x1f{identity}".encode()).digest(), identity))


def _unique_ids(items: Sequence[Item]) -> list[str]:
    counts = Counter(item.id for item in items)
    repeated = [identity for identity, n in counts.items() if n > 1]
    if repeated:
        raise ValueError(
            f"item {repeated[0]} occurs {counts[repeated[0]]} times; load the exam with duplicates: report"
        )
    return list(counts)
