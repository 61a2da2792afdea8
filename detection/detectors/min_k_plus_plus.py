"""Min-K%++: Min-K% on log-probabilities standardised under the model's own next-token distribution.

Zhang et al. 2025, "Min-K%++: Improved Baseline for Detecting Pre-Training Data from Large Language Models"
(arXiv:2404.02936): z_t = (l_t - mu_t) / sigma_t, where mu_t and sigma_t are the mean and the standard deviation of
log p(z | x_<t) with z drawn from the model, that is, moments weighted by probability over the full vocabulary.
"""

from __future__ import annotations

import math

from detection.detectors.min_k import PERCENTS
from detection.method import Part, TableDetector, lowest_means

FLAT = 1e-6
"""A sigma at most this (nats) is rounding of a zero: the distribution is uniform or one-hot, and z is 0."""


class MinKPlusPlus(TableDetector):
    """``min_k_plus_plus@k``: mean of the lowest ceil(k n / 100) of z_t, at least one token; no unit, no bounds."""

    name = "min_k_plus_plus"
    version = 2
    needs = ("log_probabilities", "full_vocabulary")
    paper = "Zhang et al. 2025, arXiv:2404.02936"

    def scores(self, part: Part) -> dict[str, float]:
        if len(part.means) != len(part.logprobs) or len(part.stds) != len(part.logprobs):
            raise ValueError(
                "min_k_plus_plus got a token table without moments: use an engine with full-vocabulary scoring"
            )
        standardised = [
            standardise(logprob, mu, sigma)
            for logprob, mu, sigma in zip(part.logprobs, part.means, part.stds, strict=True)
        ]
        return {f"min_k_plus_plus@{k}": value for k, value in lowest_means(standardised, PERCENTS).items()}


def standardise(logprob: float, mu: float, sigma: float) -> float:
    """z of a token. NaN of a NaN: 0 would place it above any ordinary token."""
    if any(map(math.isnan, (logprob, mu, sigma))):
        return math.nan
    return (logprob - mu) / sigma if sigma > FLAT else 0.0
