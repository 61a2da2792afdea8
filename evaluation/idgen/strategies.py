"""The instruction gradient's strategies: how a seed is changed, one drawn per draft (IDGen, section 3; our own words).

A strategy may have parameters (which language, how many words): they are drawn with it, from the same seed, and stand
in the record.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from serving.records import derive_seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A strategy with its parameters filled in: ``demand`` is what the generator is told."""

    name: str
    demand: str


_LANGUAGES = ("English", "French", "German", "Spanish", "Chinese")
_FIELDS = ("biology", "music", "law", "cooking", "astronomy", "sport", "trade", "architecture", "medicine", "farming")
_WORDS = ("because", "however", "example", "contrast", "therefore", "evidence", "limit", "balance")


def _plain(text: str) -> Callable[[random.Random], str]:
    return lambda draw: text


def _words(draw: random.Random) -> str:
    required, banned = draw.sample(_WORDS, 2)
    return (
        f'It must ask that the answer uses the word "{required}" exactly {draw.randint(1, 3)} times and never uses '
        f'the word "{banned}".'
    )


def _counts(draw: random.Random) -> str:
    parts, length = draw.randint(2, 5), draw.choice((20, 40, 60, 100))
    return f"It must ask for an answer of exactly {parts} paragraphs (or list entries) of at most {length} words each."


def _ending(draw: random.Random) -> str:
    where = draw.choice(("begin", "end"))
    return f"It must ask that the answer {where}s with one given sentence, which the question spells out word for word."


def _shape(draw: random.Random) -> str:
    return draw.choice(
        (
            "It must ask for the answer as a JSON object, and name its keys.",
            "It must ask for an answer in titled sections, and name the titles.",
            "It must ask that the three most important phrases of the answer are set in bold.",
        )
    )


def _punctuation(draw: random.Random) -> str:
    mark = draw.choice(("comma", "full stop", "exclamation mark", "question mark"))
    return f"It must ask for an answer without any {mark}."


GENERAL: dict[str, Callable[[random.Random], str]] = {
    "creative": _plain("Make it more creative: it must call for an idea that is not found by habit."),
    "specific": _plain("Where it speaks of something general, ask about one specific, lesser known case instead."),
    "abstract": _plain("Raise it to a higher level of abstraction: ask for the principle behind the particular case."),
    "field": lambda draw: f"Move it to another field: {draw.choice(_FIELDS)}.",
    "language": lambda draw: f"It must ask for an answer in {draw.choice(_LANGUAGES)}.",
    "words": _words,
    "counts": _counts,
    "punctuation": _punctuation,
    "ends": _ending,
    "shape": _shape,
    "placeholders": lambda draw: (
        f"It must ask for a text with {draw.randint(2, 4)} placeholders in square brackets, such as [name], to be "
        "filled in later."
    ),
}
"""The strategies for general texts; ``combination`` (two of them) is added by ``draw``."""

MATH: dict[str, str] = {
    "variables": "Change its numbers and variables, so that another way of solving it is needed.",
    "program": "Demand that a program is written that computes the answer, and state its input and output.",
    "process": "Make it a process in time: quantities change step by step, and it asks for the state at one moment.",
    "more_variables": "Add further variables that depend on those there are.",
    "combine": "Combine it with another field of mathematics, such as geometry, probability or number theory.",
    "setting": "Move it to a setting outside of mathematics, from which the problem must first be worked out.",
    "concept": "Make an advanced concept necessary, such as a derivative, a recurrence or modular arithmetic.",
    "method": "Demand that a certain method is used, which you name.",
    "forbid": "Forbid the method that comes to mind first, and name it.",
    "steps": "Make more steps necessary before the answer is reached.",
    "constraint": "Add one more constraint that changes the answer.",
    "optimum": "Turn it into a question of the largest or smallest possible value.",
    "trap": "Build in a trap of logic: a fact that looks as if it mattered and does not, or the other way round.",
}
MATH_DEFAULT = tuple(MATH)[:8]
COMBINATION = "combination"
GENERAL_NAMES = (*GENERAL, COMBINATION)


def check(names: Sequence[str], known: Sequence[str], option: str) -> None:
    """ValueError for an unknown or repeated strategy, or for none."""
    for index, name in enumerate(names):
        if name not in known:
            raise ValueError(f"{option}: there is no strategy {name!r}; there are: {', '.join(known)}")
        if name in names[:index]:
            raise ValueError(f"{option}: {name!r} stands twice")
    if not names:
        raise ValueError(f"{option} is empty; leave it out for the default, or name some of: {', '.join(known)}")


def draw(names: Sequence[str], count: int, *, math: bool, seed: int, item_id: str) -> list[Drawn]:
    """``count`` strategies for one seed, different ones as long as there are enough; a function of seed and item."""
    source = random.Random(derive_seed(seed, item_id, "idgen/strategy", 0))  # noqa: S311
    order: list[str] = []
    while len(order) < count:
        order += source.sample(list(names), len(names))
    return [Drawn(name=name, demand=_demand(name, math, source)) for name in order[:count]]


def _demand(name: str, math: bool, source: random.Random) -> str:
    if math:
        return MATH[name]
    if name == COMBINATION:
        return " ".join(GENERAL[part](source) for part in source.sample(list(GENERAL), 2))
    return GENERAL[name](source)
