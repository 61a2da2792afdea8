"""The length-controlled win rate: what the win rate would be if both replies were equally long.

AlpacaEval 2.0 (Dubois et al. 2024, arXiv 2404.04475, section 3): judges favour length, so the result of each comparison
is regressed on the difference in length, and the win rate is predicted for a difference of 0:

    P(win) = sigmoid(theta + gamma * tanh(d / sd(d))),    length-controlled win rate = sigmoid(theta)

with d the candidate's length minus the baseline's, in characters, and sd their sample standard deviation. The paper's
third term, the difficulty of each instruction, needs many models' results and is left out, and so is its
regularisation (which leans on judgements of deliberately lengthened answers): with one candidate and one baseline both
parameters are plain maximum likelihood. A tie counts as half a win and half a loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evaluation.statistics import Interval

LEAST = 10
"""Comparisons below which nothing is fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthControl:
    """win_rate: length-controlled, in [0, 1]; None where it can't be estimated, and ``reason`` says why
    interval: 95%, from theta's robust standard error
    gamma: the length's weight: above 0 where longer replies win; None where all lengths agree
    n: comparisons
    """

    win_rate: float | None
    n: int
    interval: Interval | None = None
    gamma: float | None = None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "interval": list(self.interval) if self.interval else None}


def length_control(results: Sequence[float], differences: Sequence[float]) -> LengthControl:
    """The length-controlled win rate of independent comparisons.

    results: in [0, 1] each: 1 a win, 0 a loss, 0.5 a tie (or a mean of some)
    differences: the candidate's length minus the baseline's

    It is None for fewer than 10 comparisons; where all are won or all are lost; where all differ in length by the same
    amount, other than 0; and where length alone separates wins from losses: theta has no finite estimate then. Without
    any difference in length, or where all results are one and the same (all ties), it is the win rate. ValueError for
    results out of range, NaN, or unequal numbers.
    """
    y, d = np.asarray(results, dtype=np.float64), np.asarray(differences, dtype=np.float64)
    if y.shape != d.shape:
        raise ValueError(f"there are {y.size} results and {d.size} differences in length; each needs the other")
    if not (np.isfinite(d).all() and ((y >= 0) & (y <= 1)).all()):
        raise ValueError("results must lie in [0, 1], and differences in length must be finite")
    reason = _degenerate(y, d)
    if reason:
        return LengthControl(win_rate=None, n=y.size, reason=reason)

    if (y == y[0]).all():  # the fit is exact: gamma is 0
        return LengthControl(win_rate=float(y[0]), n=y.size, interval=Interval(y[0].item(), y[0].item()), gamma=0.0)

    import statsmodels.api as sm

    columns = [np.ones_like(d)]
    if d.any():
        columns.append(np.tanh(d / d.std(ddof=1)))
    fit = sm.GLM(y, np.column_stack(columns), family=sm.families.Binomial()).fit(cov_type="HC0")
    theta, error = float(fit.params[0]), float(fit.bse[0])
    if not (fit.converged and math.isfinite(theta) and math.isfinite(error)):
        return LengthControl(win_rate=None, n=y.size, reason="the regression did not converge")
    return LengthControl(
        win_rate=_sigmoid(theta),
        n=y.size,
        interval=Interval(_sigmoid(theta - 1.959964 * error), _sigmoid(theta + 1.959964 * error)),
        gamma=float(fit.params[1]) if len(columns) > 1 else None,
    )


def _degenerate(y: Any, d: Any) -> str:
    """Why there is no estimate; "" if there is one."""
    if y.size < LEAST:
        return f"{y.size} comparisons; it takes {LEAST}"
    if (y == 1).all() or (y == 0).all():
        return f"all comparisons were {'won' if y[0] else 'lost'}"
    if (y == y[0]).all():
        return ""
    if (d == d[0]).all():
        return "" if d[0] == 0 else "all replies differ in length by the same amount"
    won, lost = d[y > 0], d[y < 1]  # a tie is on both sides
    if lost.max() <= won.min() or won.max() <= lost.min():
        return "the difference in length alone separates wins from losses"
    return ""


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
