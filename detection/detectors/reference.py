"""Reference: how much more the candidate expects the text than a model that has not seen it.

Carlini et al. 2021, "Extracting Training Data from Large Language Models" (arXiv:2012.07805), section 5.2, compare the
perplexities under two models; the difference of log-likelihoods is the form used since. A text that is easy for any
model is easy for both.
"""

from __future__ import annotations

import math
from dataclasses import replace

from detection.method import Detector, Part, Text, parts, table
from serving.records import Dialogue


class Reference(Detector):
    """(sum of l_t - sum of l_t under the reference) / tokens of the candidate, in nats per token of the candidate.

    Both sums are over the same string, each under its model's own tokenizer. Means per token would not do: with
    different tokenizers they are per different units, and a coarser tokenizer alone would look like a memory. Where the
    tokenizers are the same, the score is the published difference of means. Two ends may differ by a token: the first
    token of a text has no prediction where a model puts no BOS before it, and a token across the boundary of prompt and
    answer belongs to the answer.

    Unscorable where a model's context cuts the text: then the sums are not over the same string.
    """

    name = "reference"
    version = 1
    needs = ("log_probabilities", "reference_model")
    passes = 2
    paper = "Carlini et al. 2021, arXiv:2012.07805"

    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        own, other = yield [
            table(text, self.context.full_vocabulary),
            replace(table(text, False), role="reference"),
        ]
        whole = not own.dropped and not other.dropped
        return {
            self.name + part.suffix: _gain(part, known) if whole else math.nan
            for part, known in zip(parts(text, own), parts(text, other), strict=True)
        }


def _gain(own: Part, other: Part) -> float:
    if not own.logprobs or not other.logprobs:
        return math.nan
    return (math.fsum(own.logprobs) - math.fsum(other.logprobs)) / len(own.logprobs)
