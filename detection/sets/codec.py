"""CoDeC: items of a set that was learned get *less* likely when other items of the set stand before them.

Zawalski et al. 2025, "Detecting Data Contamination in LLMs via In-Context Learning" (contamination detection via
context): examples help with a set that was not seen, and only disturb what was memorised. The score is the share of
items x with

    mean log p(x | other items) - mean log p(x) < 0.

The share is no probability of leakage: sets that were not seen score anything up to 0.6, so it means something beside
that of another half or another model. Hence the p-value: where texts are labelled, Fisher's exact test, one-sided, of
falls among members against falls among non-members; else, if ``null_share`` names the share to be expected of a clean
model (that of the untouched base, say), a one-sided binomial test against it; else there is none.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from detection.method import DetectorOptions, Text, mean
from detection.sets.base import Figures, SetTest
from serving.records import Dialogue, Score, TokenScores, derive_seed

_TEXTS_AT_ONCE = 256  # a list that is asked together is one line of the ledger: what an interruption can cost


class CoDeC(SetTest):
    """Figures beside ``p_value`` and ``n`` (texts with a score; a fall is a difference below 0, a tie is none):

    share, share_ci: of texts that fall, with its 95% Wilson interval
    share_members, share_non_members: by label, None without
    mean_difference: mean over texts of the difference, in nats per token
    n_unscorable: texts without two tokens, or with no other text than copies of themselves to stand before them
    n_cut: texts whose context lost its beginning because it did not fit

    Both means are over the same tokens: those that have a prediction in both tables, counted from the end (without a
    BOS, a text's first token has none when it stands alone).
    """

    name = "codec"
    version = 1
    needs = ("log_probabilities",)
    passes = 2
    paper = "Zawalski et al. 2025 (CoDeC)"

    class Options(DetectorOptions):
        """shots: items put before each; items_per_context: neighbours in the set that share one context (1: each has
        its own; more: the shared prefix is computed once); separator: between items; null_share: see above."""

        shots: int = Field(default=5, ge=1)
        items_per_context: int = Field(default=16, ge=1)
        separator: str = "\n\n"
        null_share: float | None = Field(default=None, gt=0.0, lt=1.0)

    def examine(self, texts: Sequence[Text], scores: Sequence[Mapping[str, float | None]]) -> Dialogue[Figures]:
        chosen = [text for text in texts if text.text]
        if len(chosen) < 2:
            return {"p_value": None, "n": 0, "share": None, "reason": f"{len(chosen)} texts; context needs another one"}
        prefixes = contexts([t.text for t in chosen], self.options, self.context.seed)
        differences: list[float] = []
        cut = 0
        for start in range(0, len(chosen), _TEXTS_AT_ONCE):
            strings = [text.text for text in chosen[start : start + _TEXTS_AT_ONCE]]
            alone = yield [Score(role="candidate", prompt=string) for string in strings]
            after = yield [
                Score(role="candidate", prompt=prefix, continuation=string, answer_only=True)
                for prefix, string in zip(prefixes[start:], strings, strict=False)
            ]
            there = [bool(prefix) for prefix in prefixes[start : start + len(strings)]]
            pairs = zip(there, alone, after, strict=True)
            differences += [difference(before, then) if prefix else math.nan for prefix, before, then in pairs]
            cut += sum(table.dropped > 0 for table in after)
        return {**figures([text.label for text in chosen], differences, self.options.null_share), "n_cut": cut}


def contexts(texts: Sequence[str], options: Any, seed: int) -> list[str]:
    """Per text what stands before it: up to ``shots`` others, drawn with the seed, none of them of its own group."""
    prefixes = []
    # with few texts, groups shrink so that half of the texts at least are outside
    size = max(1, min(options.items_per_context, len(texts) // 2))
    for start in range(0, len(texts), size):
        group = range(start, min(start + size, len(texts)))
        taken = {texts[i] for i in group}
        outside = [i for i in range(len(texts)) if i not in group and texts[i] not in taken]
        rng = random.Random(derive_seed(seed, "codec", start))  # noqa: S311  no secret
        drawn = rng.sample(outside, min(options.shots, len(outside)))
        prefixes += ["".join(texts[i] + options.separator for i in drawn)] * len(group)
    return prefixes


def difference(alone: TokenScores, after: TokenScores) -> float:
    """Mean log-probability in context minus alone, nats per token; NaN where a table is empty."""
    values = [lp for lp, segment in zip(alone.logprobs, alone.segments, strict=True) if segment == "prompt"]
    n = min(len(values), len(after.logprobs))
    return mean(after.logprobs[-n:]) - mean(values[-n:]) if n else math.nan


def figures(labels: Sequence[int | None], differences: Sequence[float], null_share: float | None) -> Figures:
    """What CoDeC says of differences by text."""
    from evaluation.statistics import wilson

    scored = [(label, value < 0) for label, value in zip(labels, differences, strict=True) if math.isfinite(value)]
    falls = sum(fall for _, fall in scored)
    by_label = {kind: [fall for label, fall in scored if label == kind] for kind in (0, 1)}
    interval = wilson(falls, len(scored)) if scored else None
    found: Figures = {
        "p_value": None,
        "n": len(scored),
        "share": falls / len(scored) if scored else None,
        "share_ci": list(interval) if interval else None,
        "share_members": sum(by_label[1]) / len(by_label[1]) if by_label[1] else None,
        "share_non_members": sum(by_label[0]) / len(by_label[0]) if by_label[0] else None,
        "mean_difference": mean([value for value in differences if math.isfinite(value)]) if scored else None,
        "n_unscorable": len(differences) - len(scored),
    }
    if by_label[0] and by_label[1]:
        return {**found, "p_value": _fisher(by_label[1], by_label[0]), "test": "fisher"}
    if null_share is not None and scored:
        from scipy.stats import binomtest

        p_value = float(binomtest(falls, len(scored), null_share, alternative="greater").pvalue)
        return {**found, "p_value": p_value, "test": "binomial"}
    reason = "no text with a score" if not scored else "one class only: compare the share with that of a clean model"
    return {**found, "reason": reason}


def _fisher(members: Sequence[bool], others: Sequence[bool]) -> float:
    from scipy.stats import fisher_exact

    table = [[sum(members), len(members) - sum(members)], [sum(others), len(others) - sum(others)]]
    return float(fisher_exact(table, alternative="greater").pvalue)
