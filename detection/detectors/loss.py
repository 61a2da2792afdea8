"""Loss: the mean log-probability of a text's tokens.

Yeom et al. 2018, "Privacy Risk in Machine Learning: Analyzing the Connection to Overfitting" (arXiv:1709.01604):
members have the lower loss. The score is the negative loss, so that higher means more likely a member.
"""

from __future__ import annotations

from detection.method import Part, TableDetector, mean


class Loss(TableDetector):
    """Mean of l_t = log p(x_t | x_<t), in nats per token; at most 0."""

    name = "loss"
    version = 1
    needs = ("log_probabilities",)
    paper = "Yeom et al. 2018, arXiv:1709.01604"

    def scores(self, part: Part) -> dict[str, float]:
        return {"loss": mean(part.logprobs)}
