"""Con-ReCall: ReCaLL against a second prefix, of texts that the model has seen.

Wang et al. 2024, "Con-ReCall: Detecting Pre-training Data in LLMs via Contrastive Decoding" (arXiv:2409.03363): members
and non-members as context move the log-likelihood of a text in different ways, and their contrast tells more.
"""

from __future__ import annotations

import math

from pydantic import Field

from detection.method import Context, Detector, DetectorOptions, Text, mean, parts, ratio, table
from detection.text.prefixes import KnownTexts, conditional_means
from serving.records import Dialogue


class ConReCallOptions(DetectorOptions):
    """shots: known texts in each prefix; gamma: weight of the members' (the published code tries 0.1 to 1.0 and names
    them all; one is fixed here beforehand)."""

    shots: int = Field(default=12, ge=1, le=1000)
    gamma: float = Field(default=0.5, ge=0.0, le=10.0)


class ConReCall(Detector):
    """(LL(text | non-members) - gamma LL(text | members)) / LL(text), LL being the mean of l_t; no unit, no bounds.

    What is unscorable, segments, and prefixes too long for the model: as in ReCaLL, whose prefix of non-members is the
    same. Both prefixes have equally many shots.
    """

    name = "con_recall"
    version = 1
    needs = ("log_probabilities", "non_members", "members")
    passes = 3
    paper = "Wang et al. 2024, arXiv:2409.03363"
    Options = ConReCallOptions

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        shots = self.options.shots
        self._non_members = KnownTexts("non_members", context, shots, self.name)
        self._members = KnownTexts("members", context, shots, self.name)

    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        plain = yield table(text, self.context.full_vocabulary)
        given = None
        if plain.logprobs and not plain.dropped:
            given = yield from conditional_means(text, [self._non_members, self._members], self.options.shots)
        named = {}
        for part in parts(text, plain):
            score = math.nan
            if given:
                after_non_members, after_members = (means[part.suffix] for means in given)
                score = ratio(after_non_members - self.options.gamma * after_members, mean(part.logprobs))
            named[self.name + part.suffix] = score
        return named
