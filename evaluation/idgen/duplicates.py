"""Near-duplicates: a question with ROUGE-L (F1, no stemmer) above 0.7 to one that was kept before it is dropped.

The measure is Self-Instruct's, and rouge-score's to the last bit; letters beyond ASCII count, too, which rouge-score's
own tokenizer would drop (``evaluation.text_metrics.words``). Comparing all pairs by rouge-score takes hours for 10,000
questions, so three steps lead to it, none of which changes the result:

- *lengths*: F1 = 2 LCS / (m + n) and LCS <= min(m, n), so lengths that differ too much can't be near;
- *prefix filter* (Chaudhuri et al. 2006; Bayardo et al. 2007): LCS is at most the number of words in common. If t words
  must be in common, one of the m - t + 1 rarest words of one question is among the n - t + 1 rarest of the other;
- *bits*: the length of the longest common subsequence by bit-parallel arithmetic (Hyyrö 2004), exact.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.text_metrics import words

THRESHOLD = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """Question ``index`` is near question ``of``, which was kept: the first of those, in the order of the questions."""

    index: int
    of: int
    similarity: float


def near_duplicates(questions: Sequence[str], threshold: float = THRESHOLD) -> list[Duplicate]:
    """The questions that are dropped. Each is compared with those kept before it. Threshold 1: only the same words.

    A question that holds no word at all (punctuation only) is near nothing but an equal text, white space aside.
    ValueError for a threshold outside (0, 1].
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold is {threshold}; ROUGE-L lies in 0..1, and 0.7 is usual")
    texts = [words(question) for question in questions]
    ranks = {word: rank for rank, (word, _) in enumerate(sorted(_frequencies(texts), key=lambda pair: pair[::-1]))}
    kept: list[_Kept] = []
    by_word: dict[tuple[int, int], list[int]] = defaultdict(list)
    wordless: dict[str, int] = {}
    found: list[Duplicate] = []
    for index, text in enumerate(texts):
        if not text:
            plain = " ".join(questions[index].split())
            first = wordless.setdefault(plain, index)
            if first != index:
                found.append(Duplicate(index=index, of=first, similarity=1.0))
            continue
        rarest = _numbered(sorted(ranks[word] for word in text))[: _prefix(len(text), threshold)]
        candidates = sorted({place for word in rarest for place in by_word.get(word, ())})
        near = _first_near(text, [kept[place] for place in candidates], threshold)
        if near is not None:
            found.append(Duplicate(index=index, of=near[0], similarity=near[1]))
            continue
        for word in rarest:
            by_word[word].append(len(kept))
        kept.append(_Kept(index, len(text), _masks(text)))
    return found


def rouge_l(a: Sequence[str], b: Sequence[str]) -> float:
    """ROUGE-L's F1 of two lists of words, computed as rouge-score does; 0 where one is empty."""
    return _f1(_common(_masks(a), len(a), b), len(a), len(b)) if a and b else 0.0


@dataclass(frozen=True, slots=True)
class _Kept:
    index: int
    length: int
    masks: dict[str, int]


def _first_near(text: list[str], candidates: Sequence[_Kept], threshold: float) -> tuple[int, float] | None:
    length = len(text)
    for other in candidates:
        if not _near(_f1(min(length, other.length), other.length, length), threshold):
            continue
        similarity = _f1(_common(other.masks, other.length, text), other.length, length)
        if _near(similarity, threshold):
            return other.index, similarity
    return None


def _near(similarity: float, threshold: float) -> bool:
    """The same words are near whatever the threshold: nothing lies above 1, and an exam asks no question twice."""
    return similarity > threshold or similarity == 1.0


def _f1(common: int, target: int, prediction: int) -> float:
    """In the order of operations of rouge-score, so that what lies at the threshold falls on the same side."""
    precision, recall = common / prediction, common / target
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _prefix(length: int, threshold: float) -> int:
    """How many of the rarest words are enough: F1 > t needs more than t (m + n)/2 words in common, and n is at least
    m t/(2 - t); a little less is asked for, in case the division rounds up."""
    needed = math.floor(threshold * length / (2 - threshold) - 1e-9) + 1
    return length - needed + 1


def _numbered(sorted_ranks: list[int]) -> list[tuple[int, int]]:
    """The n-th copy of a word is a word of its own, so that common words are counted as often as both have them."""
    seen: Counter[int] = Counter()
    result = []
    for rank in sorted_ranks:
        result.append((rank, seen[rank]))
        seen[rank] += 1
    return result


def _frequencies(texts: Sequence[Sequence[str]]) -> list[tuple[str, int]]:
    return list(Counter(word for text in texts for word in set(text)).items())


def _masks(text: Sequence[str]) -> dict[str, int]:
    """By word, the places where it stands, as bits."""
    masks: dict[str, int] = {}
    for place, word in enumerate(text):
        masks[word] = masks.get(word, 0) | (1 << place)
    return masks


def _common(masks: dict[str, int], length: int, other: Sequence[str]) -> int:
    """Length of the longest common subsequence: each word of ``other`` updates one bit vector; zeros count matches."""
    everything = (1 << length) - 1
    vector = everything
    for word in other:
        mask = masks.get(word)
        if mask is not None:
            both = vector & mask
            vector = ((vector + both) | (vector - both)) & everything
    return length - vector.bit_count()
