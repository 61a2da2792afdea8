"""What every measure of agreement returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluation.statistics import Interval

RESAMPLES = 2_000
"""Bootstrap resamples: fewer than ``evaluation.statistics`` draws, for every one of them is ranked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measure of agreement.

    value: None where it isn't defined; ``reason`` says why
    n: rows (or item pairs) it was computed on
    interval: 95% percentile bootstrap over rows; None without a value, or where no resample had one
    dropped: resamples in which the measure isn't defined (a side constant); they are not in the interval
    """

    value: float | None
    n: int
    interval: Interval | None = None
    reason: str = ""
    dropped: int = 0

    def to_json(self) -> dict[str, Any]:
        """``value``, ``interval``, ``n``, then ``reason`` and ``dropped_resamples`` where they say something."""
        row: dict[str, Any] = {
            "value": self.value,
            "interval": None if self.interval is None else list(self.interval),
            "n": self.n,
        }
        if self.reason:
            row["reason"] = self.reason
        if self.dropped:
            row["dropped_resamples"] = self.dropped
        return row


def percentile_interval(values: Any, confidence: float = 0.95) -> Interval | None:
    """The interval that holds the middle of the resamples' values; None of none."""
    import numpy as np

    if not len(values):
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return Interval(float(low), float(high))
