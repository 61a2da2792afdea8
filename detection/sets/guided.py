"""Guided instruction over a set: is the gain from the benchmark's name more than chance?

Golchin & Surdeanu 2024 (arXiv:2308.08493), section 3.2.1, algorithm 1, resamples the instances 10,000 times, the two
prompts' scores apart. Both prompts were about the same text, so here each text has one difference, and the test flips
its sign: a resampled mean that is never below 0 gives no p-value of a null hypothesis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from detection.method import DetectorOptions, Text
from detection.sets.base import Figures, SetTest
from evaluation.statistics import sign_flip
from serving.records import Dialogue, derive_seed

SCORE = "guided"
LEAST = 10
"""The paper draws 10 instances of a partition."""


class GuidedOptions(DetectorOptions):
    """resamples: sign flips; all of them where there are no more than so many"""

    resamples: int = Field(default=10_000, ge=100)


class GuidedSet(SetTest):
    """The mean of the texts' scores ``guided`` (ROUGE-L guided minus general), and the one-sided p-value of a mean of 0
    by sign flips (``evaluation.statistics.sign_flip``).

    Texts with label 0 are known not to have leaked and do not enter. They are the control, reported beside: the name of
    a benchmark also tells a model its style, and ``non_member_mean`` shows how much that is worth.

    Figures: ``n``, ``mean``, ``p_value`` (None with a ``reason`` for fewer than ten scored texts), ``resamples``,
    ``non_member_n`` and ``non_member_mean`` (None where there are none), ``n_unscorable`` (texts without a score).
    """

    name = "guided_set"
    version = 2
    needs = ("generations",)
    passes = 2
    paper = "Golchin & Surdeanu 2024, arXiv:2308.08493"
    Options = GuidedOptions
    reads = (SCORE,)

    def examine(self, texts: Sequence[Text], scores: Sequence[Mapping[str, float | None]]) -> Dialogue[Figures]:
        found = [row.get(SCORE) for row in scores]
        suspects = [value for text, value in zip(texts, found, strict=True) if text.label != 0]
        known = [value for value in suspects if value is not None and value == value]  # NaN is not itself
        clean = [v for text, v in zip(texts, found, strict=True) if text.label == 0 and v is not None and v == v]
        figures: Figures = {
            "n": len(known),
            "mean": sum(known) / len(known) if known else None,
            "p_value": None,
            "resamples": self.options.resamples,
            "non_member_n": len(clean),
            "non_member_mean": sum(clean) / len(clean) if clean else None,
            "n_unscorable": len(suspects) - len(known),
        }
        if len(known) < LEAST:
            figures["reason"] = f"{len(known)} texts have a score {SCORE}; the test needs {LEAST}"
        else:
            seed = derive_seed(self.context.seed, self.name)
            figures["p_value"] = sign_flip(known, seed=seed, alternative="greater", resamples=self.options.resamples)
        return figures
        yield  # a set test is a generator, also one that asks nothing
