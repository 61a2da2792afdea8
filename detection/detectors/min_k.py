"""Min-K% Prob: the mean log-probability of a text's least probable tokens.

Shi et al. 2024, "Detecting Pretraining Data from Large Language Models" (arXiv:2310.16789), equation 1: a text that was
not seen is likely to hold a few surprising words. The headline is k = 20, fixed beforehand.
"""

from __future__ import annotations

from detection.method import Part, TableDetector, lowest_means

PERCENTS = (5, 10, 20, 30, 40, 50, 60)


class MinK(TableDetector):
    """``min_k@k``: mean of the lowest ceil(k n / 100) of l_t, at least one token, in nats; at most 0."""

    name = "min_k"
    version = 1
    needs = ("log_probabilities",)
    paper = "Shi et al. 2024, arXiv:2310.16789"

    def scores(self, part: Part) -> dict[str, float]:
        return {f"min_k@{k}": value for k, value in lowest_means(part.logprobs, PERCENTS).items()}
