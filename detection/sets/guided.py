"""Guided instruction over a set: is the gain from the benchmark's name more than chance?

Golchin & Surdeanu 2024 (arXiv:2308.08493), section 3.2.1, algorithm 1: 10,000 bootstrap resamples of the instances. The
paper resamples the two prompts' scores apart; here each text's difference is drawn as one, for both prompts were about
the same text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from detection.method import DetectorOptions, Text
from detection.sets.base import Figures, SetTest
from serving.records import Dialogue, derive_seed

SCORE = "guided"
LEAST = 10
"""The paper draws 10 instances of a partition. The bootstrap of fewer is no test: any two positive differences have a
p-value of 0."""
_ZERO = 1e-12


class GuidedOptions(DetectorOptions):
    """resamples: of the bootstrap, as in the paper"""

    resamples: int = Field(default=10_000, ge=100)


class GuidedSet(SetTest):
    """The mean of the texts' scores ``guided`` (ROUGE-L guided minus general), and the one-sided p-value of a mean of 0
    or less: (1 + resamples whose mean is at most 0) / (1 + resamples).

    Texts with label 0 are known not to have leaked and do not enter. They are the control, reported beside: the name of
    a benchmark also tells a model its style, and ``non_member_mean`` shows how much that is worth.

    Figures: ``n``, ``mean``, ``p_value`` (None with a ``reason`` for fewer than ten scored texts), ``resamples``,
    ``non_member_n`` and ``non_member_mean`` (None where there are none), ``n_unscorable`` (texts without a score).
    """

    name = "guided_set"
    version = 1
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
            figures["p_value"] = bootstrap_p(known, seed=seed, resamples=self.options.resamples)
        return figures
        yield  # a set test is a generator, also one that asks nothing


def bootstrap_p(differences: Sequence[float], *, seed: int, resamples: int) -> float:
    """(1 + resamples of the differences whose mean is at most 0) / (1 + resamples): never 0."""
    import numpy as np

    from detection.statistics.bootstrap import draw_counts

    values = np.array(differences, dtype=np.float64)
    at_most_zero = 0
    for (counts,) in draw_counts([len(values)], seed=seed, resamples=resamples):
        # Sums that cancel exactly may leave a rounding error on either side.
        at_most_zero += int((counts @ values / len(values) <= _ZERO).sum())
    return (1 + at_most_zero) / (1 + resamples)
