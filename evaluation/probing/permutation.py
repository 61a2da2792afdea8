"""Principle p3 by code, and the options that stand in the way of it: those that speak of other options."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from evaluation.items import LETTERS

_OTHERS = re.compile(
    r"\b(?:all|none|neither|any|both|each|some|two|more than one|one or more)\s+of\s+(?:the\s+)?"
    r"(?:above|these|those|them|following|other|others|options|choices|answers|preceding|foregoing|listed)\b"
    r"|\bthe\s+above\b|\babove\s+(?:options|choices|answers|statements)\b|^\W*(?:all|none|both|neither|either)\W*$"
    r"|以上|上述",
    re.IGNORECASE,
)


class Permuted(NamedTuple):
    """The options in their new order, the index of the key among them, and where each came from."""

    choices: tuple[str, ...]
    answer: int
    order: tuple[int, ...]


def refers_to_others(choice: str) -> bool:
    """Whether an option speaks of the others together: ``all of the above``, ``none of these``, ``both``."""
    return _OTHERS.search(choice) is not None


def names_letters(choice: str, options: int) -> bool:
    """Whether an option may name others by letter: ``both A and C``, ``A or B only``, ``(a) and (b)``, ``option D``.

    A doubtful case (``vitamins A and C``) counts as one.
    """
    letters = LETTERS[:options]
    one = rf"(?:\((?i:[{letters}])\)|[{letters}])(?![\w'’])"
    joined = rf"(?<!\w){one}\s*(?:,\s*)?(?:(?:and|or|nor|but not)\b|&|,)\s*{one}"
    named = rf"(?i:\b(?:option|choice|answer|only|just|except|but|as|than)s?)\s+{one}\W*$"
    alone = rf"^\W*{one}\s+(?i:only|alone|is|above)\b"
    return re.search(rf"{joined}|{named}|{alone}", choice) is not None


def obstacle(choices: Sequence[str]) -> str:
    """Why options can't be added to these: an option speaks of others. "" if none does."""
    for letter, choice in zip(LETTERS, choices, strict=False):
        if refers_to_others(choice) or names_letters(choice, len(choices)):
            return f"option {letter} ({choice!r:.60}) speaks of other options"
    return ""


def permute(choices: Sequence[str], answer: int, seed: int) -> Permuted | str:
    """The options in another order, drawn with the seed among all orders but the present one; or why that can't be.

    An option that speaks of the others together keeps its place, and those above it stay above it. Where an option
    names others by letter nothing is moved. Indices are moved, not texts: an option that stands there twice does no
    harm. answer: the key's index.
    """
    named = next((choice for choice in choices if names_letters(choice, len(choices))), None)
    if named is not None:
        return f"the option {named!r:.60} names others by letter"
    segments: list[list[int]] = [[]]
    for index, choice in enumerate(choices):
        if refers_to_others(choice):
            segments.append([])
        else:
            segments[-1].append(index)
    if all(len(segment) < 2 for segment in segments):
        return "there are no two options that can change places"
    generator = random.Random(seed)  # noqa: S311 - a draw, not a secret
    identity = list(range(len(choices)))
    order = identity
    while order == identity:
        order = identity.copy()
        for segment in segments:
            drawn = segment.copy()
            generator.shuffle(drawn)
            for place, source in zip(segment, drawn, strict=True):
                order[place] = source
    return Permuted(tuple(choices[source] for source in order), order.index(answer), tuple(order))
