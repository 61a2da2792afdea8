"""Neighbour: how much more the model expects the text than texts that differ from it in a few words.

Mattern et al. 2023, "Membership Inference Attacks against Language Models via Neighbourhood Comparison"
(arXiv:2305.18462): the loss of a member lies below that of its neighbours by more than that of a text never seen.
There a masked language model proposes words that fit. Here no second model is needed: words change places, are left
out or replaced by others of the text (``detection.perturbation``). Such neighbours are less fluent, so every text, seen
or not, lies well above its own: expect a weaker detector than the published one.
"""

from __future__ import annotations

from pydantic import Field

from detection.detectors.copies import above_copies
from detection.method import Detector, DetectorOptions, Text, mean
from detection.text.perturbation import neighbours
from serving.records import Dialogue, derive_seed


class NeighbourOptions(DetectorOptions):
    """copies: neighbours of a text; percent: words changed in each, in percent (at least one word)."""

    copies: int = Field(default=25, ge=1, le=1000)
    percent: int = Field(default=5, ge=1, le=100)


class Neighbour(Detector):
    """Mean l_t of the text minus the average over its copies of their mean l_t, in nats per token.

    ``/prompt`` and ``/answer`` compare the segments of the same copies; a segment without two different words is the
    same in every copy, and its score shows only what the changes before it did. Unscorable where no segment can be
    changed, or a copy is unscorable.
    """

    name = "neighbour"
    version = 1
    needs = ("log_probabilities",)
    passes = 26
    paper = "Mattern et al. 2023, arXiv:2305.18462"
    Options = NeighbourOptions

    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        seed = derive_seed(self.context.seed, text.id, self.name)
        copies = neighbours(text, copies=self.options.copies, percent=self.options.percent, seed=seed)
        return (yield from above_copies(self, text, copies, lambda part: mean(part.logprobs)))
