"""PAC, polarised augment calibration: how far a text's surest tokens lie from its least sure ones, before and after
words changed places.

Ye et al. 2024, "Data Contamination Calibration for Black-box LLMs" (arXiv:2405.11930). The polarised distance is
PD = mean of the top 5% - mean of the bottom 30% of l_t. The sign is that of the published evaluation, which ranks by
the negative of PD(text) - mean PD(copies): a memorised text is sure throughout, and spoiled by any swap.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from detection.detectors.copies import above_copies
from detection.method import Detector, DetectorOptions, Text, lowest_means
from detection.text.perturbation import swapped_copies
from serving.records import Dialogue, derive_seed


class PACOptions(DetectorOptions):
    """copies: word-swapped copies; swap_percent: swaps per 100 words of a segment; high_percent, low_percent: how many
    tokens the two means are over, in percent (rounded up, at least one)."""

    copies: int = Field(default=5, ge=1, le=1000)
    swap_percent: int = Field(default=30, ge=1, le=100)
    high_percent: int = Field(default=5, ge=1, le=100)
    low_percent: int = Field(default=30, ge=1, le=100)


class PAC(Detector):
    """Mean PD of the copies minus PD of the text, in nats.

    Counts of tokens are rounded up, as everywhere in Proctor (the published code rounds down). Segments are those of
    the same copies. Unscorable where no segment has two different words.
    """

    name = "pac"
    version = 1
    needs = ("log_probabilities",)
    passes = 6
    paper = "Ye et al. 2024, arXiv:2405.11930"
    Options = PACOptions

    def examine(self, text: Text) -> Dialogue[dict[str, float]]:
        seed = derive_seed(self.context.seed, text.id, self.name)
        copies = swapped_copies(text, copies=self.options.copies, percent=self.options.swap_percent, seed=seed)
        return (yield from above_copies(self, text, copies, lambda part: -self._distance(part.logprobs)))

    def _distance(self, logprobs: Sequence[float]) -> float:
        return polarised_distance(logprobs, high=self.options.high_percent, low=self.options.low_percent)


def polarised_distance(logprobs: Sequence[float], *, high: int = 5, low: int = 30) -> float:
    """Mean of the top ``high`` percent minus mean of the bottom ``low`` percent, each at least one; NaN for none."""
    highest = -lowest_means([-value for value in logprobs], [high])[high]
    return highest - lowest_means(logprobs, [low])[low]
