"""The five principles of MPA (arXiv 2402.14865, section 3), the sets that they form, and the order they are applied in.

A question is rewritten along one chain (p1, then p4) and its options along another (p2, p5, then p3). The chains do not
see each other's results: what p1 made of a question is the same in every set that holds p1, so that two sets differ by
their principles and not by another draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

PRINCIPLES: Final = {
    "p1": "paraphrase the question",
    "p2": "paraphrase the choices",
    "p3": "permute the choices",
    "p4": "add context",
    "p5": "add a choice",
}
SETS: Final[dict[str, tuple[str, ...]]] = {
    "all": ("p1", "p2", "p3", "p4", "p5"),
    **{name: (name,) for name in PRINCIPLES},
    "LU": ("p1", "p2", "p3"),
    "PS": ("p4",),
    "DK": ("p5",),
    "level1": ("p1",),
    "level2": ("p1", "p4"),
    "level3": ("p1", "p4", "p5"),
}
"""Named sets: all, each principle alone, the abilities (language understanding, problem solving, domain knowledge) and
the levels of complexity."""
ABILITIES: Final = ("LU", "PS", "DK")
LEVELS: Final = ("level1", "level2", "level3")
QUESTION_CHAIN: Final = ("p1", "p4")
CHOICE_CHAIN: Final = ("p2", "p5")
"""By an agent; p3 follows, by code."""
ABILITY_OF: Final = {"p1": "LU", "p2": "LU", "p3": "LU", "p4": "PS", "p5": "DK"}


def chain(principles: Sequence[str], order: Sequence[str]) -> tuple[str, ...]:
    """The stages that ``principles`` need along one chain, each named by all that is done up to it.

    ``("p1", "p1+p4")`` for p1 and p4; ``("p4",)`` for p4 alone.
    """
    wanted = [name for name in order if name in principles]
    return tuple("+".join(wanted[: i + 1]) for i in range(len(wanted)))


def stages(sets: Sequence[str], order: Sequence[str]) -> tuple[str, ...]:
    """All stages that these named sets need along one chain, each after the one it builds on, each once."""
    needed = dict.fromkeys(stage for name in sets for stage in chain(SETS[name], order))
    return tuple(sorted(needed, key=lambda stage: (stage.count("+"), list(needed).index(stage))))


def applicable(principles: Sequence[str], *, choice: bool) -> tuple[str, ...]:
    """The principles that can be applied: to an open question p1 and p4 only."""
    return tuple(name for name in principles if choice or name in QUESTION_CHAIN)
