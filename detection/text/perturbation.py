"""Copies of a text with words out of place, for detectors that compare a text with its neighbourhood.

No model proposes the changes: words are swapped, left out, or replaced by other words of the same text. Prompt and
answer are changed each within itself, so that a copy has the same two segments; white space stays where it was. A word
is a run of characters without white space, or a single Chinese or Japanese character.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from detection.method import Text

_IDEOGRAPH = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPH}]|[^\s{_IDEOGRAPH}]+")


@dataclass
class _Words:
    """gaps: what stands before each word, and after the last one (one more than there are words)."""

    words: list[str]
    gaps: list[str]

    @classmethod
    def of(cls, text: str) -> _Words:
        found = list(_WORD.finditer(text))
        ends = [0, *(match.end() for match in found)]
        starts = [*(match.start() for match in found), len(text)]
        return cls([match[0] for match in found], [text[a:b] for a, b in zip(ends, starts, strict=True)])

    def __str__(self) -> str:
        return self.gaps[0] + "".join(word + gap for word, gap in zip(self.words, self.gaps[1:], strict=True))

    @property
    def alike(self) -> bool:
        """Whether no two words differ: then nothing can be moved."""
        return len(set(self.words)) < 2

    def swap(self, i: int, j: int) -> None:
        self.words[i], self.words[j] = self.words[j], self.words[i]

    def swap_random(self, random: Random) -> None:
        """Swaps two different words; in a text that is nearly all one word, possibly none."""
        for _ in range(20):
            i, j = random.randrange(len(self.words)), random.randrange(len(self.words))
            if self.words[i] != self.words[j]:
                self.swap(i, j)
                return

    def swap_certain(self, random: Random) -> None:
        """Swaps two different words; there must be such. Takes time with every word of the text."""
        i = random.randrange(len(self.words))
        self.swap(i, random.choice([j for j, word in enumerate(self.words) if word != self.words[i]]))


def swapped_copies(text: Text, *, copies: int, percent: int, seed: int) -> list[Text]:
    """Copies in which two different words changed places, floor(percent n / 100) times for n words, at least once.

    So often do Ye et al. 2024 (PAC) swap. Empty for a text whose segments have no two different words. A copy differs
    from the text.
    """

    def edit(words: _Words, random: Random) -> None:
        for _ in range(max(1, len(words.words) * percent // 100)):
            words.swap_random(random)

    return _copies(text, copies, seed, edit)


def neighbours(text: Text, *, copies: int, percent: int, seed: int) -> list[Text]:
    """Copies with ceil(percent n / 100) small changes for n words, at least one.

    A change is one of three, equally likely: a word and the next change places, a word is left out, a word is replaced
    by another word of the segment. Empty for a text whose segments have no two different words.
    """

    def edit(words: _Words, random: Random) -> None:
        for _ in range(max(1, -(-len(words.words) * percent // 100))):
            i = random.randrange(len(words.words))
            change = random.choice(("swap", "drop", "replace"))
            if change == "swap" and i + 1 < len(words.words):
                words.swap(i, i + 1)
            elif change == "drop" and len(words.words) > 1:
                del words.words[i], words.gaps[i or 1]
            elif change == "replace":
                words.words[i] = random.choice(words.words)

    return _copies(text, copies, seed, edit)


def _copies(text: Text, copies: int, seed: int, edit: Callable[[_Words, Random], None]) -> list[Text]:
    segments = [text.prompt, text.answer]
    if all(_Words.of(segment).alike for segment in segments):
        return []
    random = Random(seed)  # noqa: S311 - reproducible, not secret
    found = []
    for _ in range(copies):
        prompt, answer = (_edited(segment, random, edit) for segment in segments)
        found.append(Text(id=text.id, text=prompt + answer, prompt=prompt))
    return found


def _edited(segment: str, random: Random, edit: Callable[[_Words, Random], None]) -> str:
    """The segment changed, or as it is where it has no two different words."""
    words = _Words.of(segment)
    if words.alike:
        return segment
    edit(words, random)
    if str(words) == segment:  # changes that undid each other
        words = _Words.of(segment)
        words.swap_certain(random)
    return str(words)
