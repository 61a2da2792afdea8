"""Exchangeability: a model that was trained on a benchmark file likes its rows best in the order of that file.

Oren et al. 2023, "Proving Test Set Contamination in Black Box Language Models" (arXiv:2310.17623), the sharded
likelihood comparison (section 3.2): if the set was never seen, any order of its rows is as likely as any other. So
the canonical order's log-likelihood minus the mean over random orders has an expectation of at most 0, in each of r
shards, and a one-sided t-test over the shards rejects that with a p-value that is valid whatever the model.

It needs the order itself to have leaked: it can't see a set that was shuffled before training.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pydantic import Field

from detection.method import DetectorOptions, Text
from detection.sets.base import Figures, SetTest
from detection.text.windows import complete
from serving.records import Dialogue, Score, TokenScores, derive_seed


class Exchangeability(SetTest):
    """Figures beside ``p_value`` and ``n`` (texts that entered):

    shards, permutations: as done (a shard has at least 2 texts, so a small set has fewer shards)
    statistic: the t-value, shards - 1 degrees of freedom
    differences: per shard, canonical log-likelihood minus the mean over permuted orders, in nats
    mean_difference: their mean

    Where some texts are labelled members, only those enter, in their order: the others' order can't have leaked.
    A shard longer than the context is scored in windows: cut ones would compare different tokens.
    """

    name = "exchangeability"
    version = 1
    needs = ("log_probabilities",)
    passes = 26
    paper = "Oren et al. 2023, arXiv:2310.17623"

    class Options(DetectorOptions):
        """shards: r, contiguous parts of the set (paper: 15 to 50); permutations: m random orders per shard (paper: 25
        to 250); separator: between two texts of a shard."""

        shards: int = Field(default=15, ge=2)
        permutations: int = Field(default=25, ge=1)
        separator: str = "\n\n"

    def examine(self, texts: Sequence[Text], scores: Sequence[Mapping[str, float | None]]) -> Dialogue[Figures]:
        members = [text for text in texts if text.label == 1]
        chosen = [text.text for text in (members or texts) if text.text]
        shards = split(chosen, self.options.shards)
        differences = []
        for number, shard in enumerate(shards):
            orders = [shard, *permuted(shard, self.options.permutations, self.context.seed, number)]
            demands = [Score(role="candidate", prompt=self.options.separator.join(order)) for order in orders]
            tables = yield demands
            canonical, *others = map(log_likelihood, (yield from complete(demands, tables)))
            # term by term: orders of equal likelihood differ by 0, not by a rounding error
            differences.append(math.fsum(canonical - other for other in others) / len(others))
        return {
            **t_test(differences),
            "n": len(chosen),
            "shards": len(shards),
            "permutations": self.options.permutations,
            "differences": differences,
            "mean_difference": math.fsum(differences) / len(differences) if differences else None,
        }


def split(texts: Sequence[str], shards: int) -> list[Sequence[str]]:
    """Contiguous parts that differ in size by one at most, each of at least 2 texts (so maybe fewer parts)."""
    parts = min(shards, len(texts) // 2)
    edges = [len(texts) * i // parts for i in range(parts + 1)] if parts else []
    return [texts[start:stop] for start, stop in pairwise(edges)]


def permuted(shard: Sequence[str], permutations: int, seed: int, number: int) -> list[list[str]]:
    """Random orders of shard ``number``, each from a seed of its own. The canonical one may be among them."""
    orders = []
    for i in range(permutations):
        order = list(shard)
        random.Random(derive_seed(seed, "exchangeability", number, i)).shuffle(order)  # noqa: S311  no secret
        orders.append(order)
    return orders


def log_likelihood(table: TokenScores) -> float:
    """Summed log-probability of the text's own tokens, in nats."""
    return math.fsum(
        logprob
        for logprob, segment in zip(table.logprobs, table.segments, strict=True)
        if segment in ("prompt", "answer")
    )


def t_test(differences: Sequence[float]) -> dict[str, Any]:
    """One-sided t-test that the mean is above 0: ``statistic`` and ``p_value`` (survival function, ddof 1: 1 - cdf
    rounds p-values below 1e-16 to 0). None with a ``reason`` below 2 values or without spread."""
    from scipy.stats import t

    n = len(differences)
    none = {"p_value": None, "statistic": None}
    if n < 2:
        return {**none, "reason": f"{n} shards of at least 2 texts; a t-test needs 2"}
    if not all(map(math.isfinite, differences)):
        return {**none, "reason": "an order of a shard has no finite log-likelihood"}
    mean = math.fsum(differences) / n
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in differences) / (n - 1))
    if deviation == 0:
        return {**none, "reason": "no spread: all shards differ alike (texts that are all the same?)"}
    statistic = mean / (deviation / math.sqrt(n))
    return {"p_value": float(t.sf(statistic, n - 1)), "statistic": statistic}
