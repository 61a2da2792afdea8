"""The length-controlled win rate: what the win rate would be if both replies were equally long.

AlpacaEval 2.0 (Dubois et al. 2024, arXiv 2404.04475, section 3): judges favour length, so the result of each comparison
is regressed on the difference in length, and the win rate is predicted for a difference of 0:

    P(win) = sigmoid(theta + gamma * tanh(d / sd(d))),    length-controlled win rate = sigmoid(theta)

with d the candidate's length minus the baseline's, in characters, and sd their sample standard deviation. A tie counts
as half a win and half a loss.

AlpacaEval fits gamma over many models and regularises it. From one candidate and one baseline alone, gamma is poorly
known, and by plain maximum likelihood the result lies farther from the published one (6.5 points on average; 40.2 and
not 12.2 for gpt4_gamed) than the raw win rate does (4.8). So gamma has a prior, a penalty of 5 gamma^2 on the summed
log-likelihood (1.3 points, 11.8 for gpt4_gamed). The paper's third term, each instruction's difficulty times the
candidate's own slope, needs many models' results on the same instructions and is left out.
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
PENALTY = 5.0
"""Of gamma squared, on the summed log-likelihood."""
INSIDE = 0.05
"""The share of differences that must lie on either side of 0, else 0 lies outside most of them."""


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
    amount, other than 0, or more than 95% of the replies are longer (shorter), for equal lengths lie outside what was
    seen then; and where length alone separates wins from losses. Without
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

    column = np.tanh(d / d.std(ddof=1)) if d.any() else np.zeros_like(d)
    theta, gamma = _fit(y, column)
    design = np.column_stack([np.ones_like(column), column])
    p = 1 / (1 + np.exp(-(theta + gamma * column)))
    bread = np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design + np.diag([0.0, 2 * PENALTY]))
    filling = (design * ((y - p) ** 2)[:, None]).T @ design
    error = math.sqrt(float((bread @ filling @ bread)[0, 0]))
    return LengthControl(
        win_rate=_sigmoid(theta),
        n=y.size,
        interval=Interval(_sigmoid(theta - 1.959964 * error), _sigmoid(theta + 1.959964 * error)),
        gamma=gamma if d.any() else None,
    )


def _fit(y: Any, column: Any) -> tuple[float, float]:
    """theta and gamma of the penalised regression. A result between 0 and 1 is that share of a win and the rest of a
    loss. (scikit-learn minimises the summed loss + gamma^2 / (2 C), and leaves theta free.)"""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1 / (2 * PENALTY), tol=1e-9, max_iter=1_000)
    twice = np.concatenate([column, column])[:, None]
    model.fit(twice, np.repeat([1, 0], len(y)), sample_weight=np.concatenate([y, 1 - y]))
    return float(model.intercept_[0]), float(model.coef_[0, 0])


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
    longer, shorter = float((d > 0).mean()), float((d < 0).mean())
    if max(longer, shorter) > 1 - INSIDE:
        most, which = (longer, "longer") if longer > shorter else (shorter, "shorter")
        return f"{most:.0%} of the replies are {which}: equal lengths lie outside most of what was seen"
    won, lost = d[y > 0], d[y < 1]  # a tie is on both sides
    if lost.max() <= won.min() or won.max() <= lost.min():
        return "the difference in length alone separates wins from losses"
    return ""


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
