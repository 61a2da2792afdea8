"""A text against altered copies of itself: what ``neighbour`` and ``pac`` share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from detection.method import Detector, Part, Text, mean, parts, table
from serving.records import Dialogue, TokenScores


def above_copies(
    detector: Detector, text: Text, copies: Sequence[Text], score: Callable[[Part], float]
) -> Dialogue[dict[str, float]]:
    """Per segment, under the detector's name: the text's ``score`` minus the mean of its copies'; NaN without."""
    own: TokenScores
    others: list[TokenScores]
    own, *others = yield [
        table(text, detector.context.full_vocabulary),
        *(table(copy, False) for copy in copies),
    ]
    altered = [parts(copy, tokens) for copy, tokens in zip(copies, others, strict=True)]
    named = {}
    for i, part in enumerate(parts(text, own)):
        around = mean([score(copy[i]) for copy in altered]) if altered else math.nan
        named[detector.name + part.suffix] = score(part) - around
    return named
