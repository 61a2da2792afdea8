"""Which conversations are rated, and under which ids."""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Sequence

from evaluation.human_rating.conversations import Conversation


def sample(found: Sequence[Conversation], n: int, seed: int) -> dict[str, Conversation]:
    """At most ``n`` conversations by opaque id, in the order they are rated in.

    Stratified over (benchmark, candidate): each stratum gives equally many, as far as it has them; what is left of n is
    spread over strata drawn by lot. A conversation that occurs twice counts once. The order is shuffled, and an id
    tells nothing but the export it belongs to. A function of the set of conversations, n and the seed.

    ValueError for n < 1 or no conversations.
    """
    if n < 1:
        raise ValueError(f"n is {n}; it must be at least 1")
    distinct = {_identity(conversation): conversation for conversation in found}
    if not distinct:
        raise ValueError("the records hold no conversation with a question and a reply")
    strata: dict[tuple[str, str], list[str]] = defaultdict(list)
    for identity in sorted(distinct):
        strata[distinct[identity].benchmark, distinct[identity].candidate].append(identity)
    generator = random.Random(seed)  # noqa: S311 - a draw, not a secret
    for members in strata.values():
        generator.shuffle(members)
    chosen: list[str] = []
    while len(chosen) < min(n, len(distinct)):
        waiting = [name for name in sorted(strata) if strata[name]]
        generator.shuffle(waiting)
        chosen += [strata[name].pop() for name in waiting[: n - len(chosen)]]
    generator.shuffle(chosen)
    mark = hashlib.sha256("".join([*chosen, str(seed)]).encode()).hexdigest()[:6]
    return {f"c{mark}-{number:03d}": distinct[identity] for number, identity in enumerate(chosen, start=1)}


def _identity(conversation: Conversation) -> str:
    """What makes two conversations the same: the texts and who wrote them, not the file they were read from."""
    parts = [conversation.benchmark, conversation.candidate, conversation.context, conversation.question]
    text = json.dumps([*parts, conversation.reply])
    return hashlib.sha256(text.encode()).hexdigest()
