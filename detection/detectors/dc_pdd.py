"""DC-PDD, divergence-based calibration: token probabilities weighed against how common the tokens are anywhere.

Zhang et al. 2024, "Pretraining Data Detection for Large Language Models: A Divergence-based Calibration Method"
(arXiv:2409.14781): the cross-entropy between the model's token probabilities and the tokens' frequencies in a large
corpus, over first occurrences, each term capped.
"""

from __future__ import annotations

import functools
import math

from pydantic import Field

from detection.method import Context, DetectorOptions, Part, TableDetector, mean
from detection.text.corpus_frequencies import Frequencies, corpus_frequencies


class DCPDDOptions(DetectorOptions):
    """cap: upper bound of a token's term (the paper's a, 0.01 for English)."""

    cap: float = Field(default=0.01, gt=0.0)


class DCPDD(TableDetector):
    """Mean of min(p_t log(1/f_t), cap) over the first occurrence of each token id in the part, in nats; 0 to cap.

    p_t = exp(l_t); f_t is the Laplace-smoothed frequency of the token in the corpus, under the candidate's own
    tokenizer. A token without a prediction (the first of a text without BOS) is no occurrence.
    """

    name = "dc_pdd"
    version = 1
    needs = ("log_probabilities", "corpus")
    paper = "Zhang et al. 2024, arXiv:2409.14781"
    Options = DCPDDOptions

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        if context.model is None:
            raise ValueError("dc_pdd counts tokens with the candidate's tokenizer: it needs Context(model=...)")

    @functools.cached_property
    def frequencies(self) -> Frequencies:
        """Counted at the first text: a candidate that is still to be trained has no tokenizer before."""
        assert self.context.corpus is not None
        assert self.context.model is not None
        return corpus_frequencies(self.context.corpus, self.context.model)

    def scores(self, part: Part) -> dict[str, float]:
        first = dict(zip(reversed(part.ids), reversed(part.logprobs), strict=True))
        terms = [math.exp(logprob) * -self.frequencies.log(token) for token, logprob in first.items()]
        return {self.name: mean([min(term, self.options.cap) for term in terms])}
