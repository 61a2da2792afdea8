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
    interval: 95%, over rows; None without a value, or where none can be given
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
