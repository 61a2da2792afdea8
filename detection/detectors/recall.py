"""ReCaLL: how much a prefix of texts that the model has not seen changes what it expects of the text.

Xie et al. 2024, "ReCaLL: Membership Inference via Relative Conditional Log-Likelihoods" (arXiv:2406.15968): foreign
context lowers the log-likelihood of a member more than that of a non-member.
"""

from __future__ import annotations

import math

from pydantic import Field

from detection.method import Context, Detector, DetectorOptions, Text, mean, parts, ratio, table
from detection.text.prefixes import KnownTexts, conditional_means
from serving.records import Dialogue


class ReCaLLOptions(DetectorOptions):
    """shots: known non-members in the prefix."""

    shots: int = Field(default=12, ge=1, le=1000)


class ReCaLL(Detector):
    """LL(text | non-members) / LL(text), LL being the mean of l_t as in the published code; no unit, above 0.

    Higher for members: both are negative, and the numerator is the lower the more the prefix disturbs. The segments
    are those of the text after the prefix. Unscorable where every token of the text is certain, or the model's context
    has no room for the text and one shot; with room for fewer shots than asked, half as many are used.
    """

    name = "recall"
    version = 1
    needs = ("log_probabilities", "non_members")
    passes = 2
    paper = "Xie et al. 2024, arXiv:2406.15968"
    Options = ReCaLLOptions

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._non_members = KnownTexts("non_members", context, self.options.shots, self.name)

    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        plain = yield table(text, self.context.full_vocabulary)
        given = None
        if plain.logprobs and not plain.dropped:
            given = yield from conditional_means(text, [self._non_members], self.options.shots)
        return {
            self.name + part.suffix: ratio(given[0][part.suffix], mean(part.logprobs)) if given else math.nan
            for part in parts(text, plain)
        }
