"""N-gram accuracy: at five places of the text, does the model go on with the very next five tokens?

Xu et al. 2024, "Benchmarking Benchmark Leakage in Large Language Models" (arXiv:2404.18824), section 3.2, and the
difference to rewrites of the text by which the paper tells leakage from a text that is easy to go on with.

No token is generated for it. Greedy decoding from a start yields the text's next five tokens exactly if each of the
five is the most probable one after the text before it, which the token table says for all places at once: one pass
that the other detectors share, where generating takes five, and a prefix is cut at the model's own tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from detection.method import Context, Detector, DetectorOptions, Text, table
from detection.text.rewrites import rewrites
from serving.records import Dialogue, Score, TokenScores, derive_seed


class NgramAccuracyOptions(DetectorOptions):
    """The paper's settings.

    n: tokens that must all match
    starts: places in the text, evenly spaced from its beginning to its last n tokens
    rewrites: of the text, by ``detection.rewrites``
    """

    n: int = Field(default=5, ge=1)
    starts: int = Field(default=5, ge=1)
    rewrites: int = Field(default=3, ge=1)


class NgramAccuracy(Detector):
    """Share of the starts after which the next n tokens are the greedy ones, minus the mean of the same share over
    rewrites of the text; in [-1, 1].

    NaN: a text or rewrite of fewer than n + 2 tokens (the paper leaves these out), a text that can't be rewritten, an
    engine that doesn't say which tokens are greedy. With fewer rewrites than wanted, those that there are count.
    """

    name = "ngram_accuracy"
    version = 1
    needs = ("log_probabilities",)
    passes = 4
    paper = "Xu et al. 2024, arXiv:2404.18824"
    Options = NgramAccuracyOptions

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.settings: NgramAccuracyOptions = self.options

    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        seed = derive_seed(self.context.seed, self.name, text.id)
        copies = rewrites(text.text, self.settings.rewrites, seed=seed)
        if not copies:
            return {self.name: math.nan}
        scores = [Score(role="candidate", prompt=copy) for copy in copies]
        tables: list[TokenScores] = yield [table(text, self.context.full_vocabulary), *scores]
        hits = [self._hits(tokens) for tokens in tables]
        if None in hits:
            return {self.name: math.nan}
        original, *others = [hit for hit in hits if hit is not None]
        # One division of integers: equal scores are equal floats, which ranks depend on.
        return {self.name: (original * len(others) - sum(others)) / (self.settings.starts * len(others))}

    def _hits(self, tokens: TokenScores) -> int | None:
        if len(tokens.greedy) < len(tokens.segments):
            return None
        in_text = [i for i, segment in enumerate(tokens.segments) if segment in ("prompt", "answer")]
        greedy = [tokens.greedy[i] for i in in_text]
        return ngram_hits(greedy, self.settings.n, self.settings.starts)


def ngram_hits(greedy: Sequence[bool], n: int, starts: int) -> int | None:
    """At how many of ``starts`` places n entries in a row are all True; None for fewer than n + 1 entries.

    greedy: per predicted token whether it is the most probable one; a text's first token is not predicted, so the first
        place, entry 1, has two tokens before it, as in the paper's code. The last place is entry len(greedy) - n, those
        between are rounded down, and in a short text a place may count twice.
    """
    last = len(greedy) - n
    if last < 1:
        return None
    places = [1 + i * (last - 1) // (starts - 1) for i in range(starts)] if starts > 1 else [1]
    return sum(all(greedy[place : place + n]) for place in places)
