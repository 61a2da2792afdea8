"""Rewrites of a text, word by word: what stands in for a paraphrase where no model is there to write one.

Words are exchanged for others of the same meaning (``detection/data/synonyms.txt``, a short list of common English
words) and, where there are too few of these, neighbours change places. That is weaker than the paraphrases of the
papers (ChatGPT and GPT-4 wrote theirs): a rewrite reads a little worse than its original, so a model may prefer the
original for its style. Non-members suffer the same, which is why such scores are compared and not read by themselves.
"""

from __future__ import annotations

import random
import re
from functools import cache
from importlib import resources

SHARE = 0.2
_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
_ATTEMPTS = 20


def rewrites(text: str, count: int, *, seed: int, share: float = SHARE) -> list[str]:
    """At most ``count`` rewrites of a text, different from it and from each other; the same ones for the same seed.

    share: of the text's words that change, at least one; fewer where there are too few rewrites that change so many. A
        word before a colon is a label (``Answer:``) and stays; only lower-case words divided by one space change
        places, so lines and sentences keep their limits.
    Fewer than ``count`` are returned where the text doesn't yield more: one word, or a script without spaces.
    """
    words = list(_WORD.finditer(text))
    synonyms = {i: others for i in range(len(words)) if (others := _synonyms(text, words, i))}
    swaps = [i for i in range(len(words) - 1) if _may_swap(text, words[i], words[i + 1])]
    # Rounded up in integers of a thousandth: 0.2 * 15 is not 3 in floating point.
    wanted = max(1, -(-round(share * 1000) * len(words) // 1000))
    generator = random.Random(seed)  # noqa: S311 - a draw, not a secret
    found: dict[str, None] = {}
    changes = exchanges = wanted
    for _ in range(_ATTEMPTS * count):
        if len(found) == count:
            break
        rewrite = _rewrite(text, words, synonyms, swaps, (changes, exchanges), generator)
        changes = exchanges = wanted
        if rewrite in found:
            # A short text has few rewrites that change as much as is wanted: others change less, or by swaps only.
            changes = generator.randint(1, wanted)
            exchanges = generator.randint(0, changes)
        if rewrite != text:
            found[rewrite] = None
    return list(found)


def _rewrite(
    text: str,
    words: list[re.Match[str]],
    synonyms: dict[int, tuple[str, ...]],
    swaps: list[int],
    numbers: tuple[int, int],
    generator: random.Random,
) -> str:
    """One rewrite. numbers: how many words change, and how many of them, at most, for a synonym."""
    changes, exchanges = numbers
    new: dict[int, str] = {}
    for i in generator.sample(sorted(synonyms), min(exchanges, len(synonyms))):
        new[i] = generator.choice(synonyms[i])
    for i in generator.sample(swaps, len(swaps)):
        if len(new) >= changes:
            break
        if i not in new and i + 1 not in new:
            new[i], new[i + 1] = words[i + 1].group(), words[i].group()
    parts, end = [], 0
    for i in sorted(new):
        parts += [text[end : words[i].start()], new[i]]
        end = words[i].end()
    return "".join([*parts, text[end:]])


def _synonyms(text: str, words: list[re.Match[str]], i: int) -> tuple[str, ...]:
    """What may stand for word i, in its case; nothing that would need another article before it."""
    word, start, end = words[i].group(), *words[i].span()
    if text[end : end + 1] == ":" or word not in (word.lower(), word.capitalize()):
        return ()
    found = _groups().get(word.lower(), ())
    if i and words[i - 1].group().lower() in ("a", "an") and text[words[i - 1].end() : start] == " ":
        found = tuple(other for other in found if (other[0] in "aeiou") == (word[0].lower() in "aeiou"))
    return found if word.islower() else tuple(other.capitalize() for other in found)


def _may_swap(text: str, first: re.Match[str], second: re.Match[str]) -> bool:
    one, two = first.group(), second.group()
    return (
        text[first.end() : second.start()] == " "
        and one.islower()
        and two.islower()
        and one != two
        and text[second.end() : second.end() + 1] != ":"
    )


@cache
def _groups() -> dict[str, tuple[str, ...]]:
    """Each word of the list, and the others of its group."""
    lines = (resources.files("detection") / "data" / "synonyms.txt").read_text(encoding="utf-8").splitlines()
    groups = [line.split() for line in lines if not line.startswith("#")]
    return {word: tuple(other for other in group if other != word) for group in groups for word in group}
