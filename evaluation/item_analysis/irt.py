"""The two-parameter logistic model by marginal maximum likelihood (Bock and Aitkin 1981).

P(right | theta) = 1 / (1 + exp(-a (theta - b))), theta ~ N(0, 1) over candidates: a is the item's slope, b its
difficulty on the scale of the candidates' ability. EM: the E-step weighs the nodes of theta for each candidate, the
M-step takes Fisher-scoring steps on (log a, b) of all items at once.

Mild priors, log a ~ N(0, 0.5) and b ~ N(mean b, 2) (standard deviations; Mislevy 1986), keep items that all or none
solved, and the few candidates of most exams, finite: with fewer than about 100 candidates the priors say much of it. A
slope is above 0: an item that weak candidates solve more often gets one near 0; the negative discrimination says so.

The place of the scale is where the candidates' abilities have mean 0: the mean of b is estimated (with a prior mean of
0 hundreds of easy items outvote a few candidates' abilities, and all drifts: a true mean of -1.97 came out as -0.31),
and each iteration ends with that shift, without which EM would creep towards it.

Scores between 0 and the maximum enter as that share of a right answer (a quasi-likelihood, not a graded model).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.item_analysis.matrix import Matrix

Array = NDArray[np.float64]

SLOPE_SD = 0.5
DIFFICULTY_SD = 2.0
FEW_CANDIDATES = 100
_NODES = np.linspace(-5.0, 5.0, 41)
_TOLERANCE = 1e-3
_STEPS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The fitted model.

    slopes, difficulties: a and b per item; NaN for an item without any score
    abilities, ability_sds: posterior mean and standard deviation of theta per candidate
    iterations; converged: whether no parameter moved by more than 0.001 in the last one
    """

    slopes: Array
    difficulties: Array
    abilities: Array
    ability_sds: Array
    iterations: int
    converged: bool

    def probability(self, theta: Array) -> Array:
        """P(right) as nodes x items: the items' characteristic curves."""
        return _sigmoid(self.slopes * (theta[:, None] - self.difficulties))

    def information(self, theta: Array) -> Array:
        """Fisher information a^2 P (1 - P) as nodes x items; the sum over items is the test's, and 1/sqrt of it the
        standard error of an ability."""
        p = self.probability(theta)
        return np.asarray(self.slopes**2 * p * (1 - p))


def fit(matrix: Matrix, *, max_iterations: int = 500) -> Fit:
    """The fit of a matrix. ValueError for fewer than two candidates with scores."""
    from threadpoolctl import threadpool_limits

    known = ~np.isnan(matrix.scores)
    if (known.any(axis=1)).sum() < 2:
        raise ValueError("a two-parameter fit needs at least two candidates with scores")
    right = np.where(known, matrix.scores, 0.0) / matrix.max_score
    asked = known.astype(np.float64)
    share = (right.sum(axis=0) + 0.5) / (asked.sum(axis=0) + 1.0)
    answered, some = known.any(axis=1), known.any(axis=0)
    log_a = np.zeros(len(matrix.items))
    b = -np.log(share / (1 - share))
    prior = -0.5 * _NODES**2

    iteration, moved = 0, np.inf
    # the products are small: on a busy machine, threads that wait for each other take longer than the work
    with threadpool_limits(1):
        while iteration < max_iterations and moved > _TOLERANCE:
            weights = _posterior(right, asked, np.exp(log_a), b, prior)
            old = (log_a, b)
            log_a, b = _maximise(weights.T @ right, _times(weights.T, asked), log_a, b)
            b = b - float((weights[answered] @ _NODES).mean())
            moved = float(max(np.abs(log_a - old[0]).max(), np.abs(b - old[1]).max()))
            iteration += 1
    weights = _posterior(right, asked, np.exp(log_a), b, prior)
    abilities = weights @ _NODES
    spread = np.sqrt(np.maximum(weights @ _NODES**2 - abilities**2, 0.0))
    return Fit(
        slopes=np.where(some, np.exp(log_a), np.nan),
        difficulties=np.where(some, b, np.nan),
        abilities=abilities,
        ability_sds=spread,
        iterations=iteration,
        converged=moved <= _TOLERANCE,
    )


def _posterior(right: Array, asked: Array, a: Array, b: Array, prior: Array) -> Array:
    """Candidates x nodes: the posterior weight of each node of theta."""
    # log P = z + log(1 - P), and z is linear in theta: the scores enter by two sums per candidate
    wrong = -np.logaddexp(0.0, a * (_NODES[:, None] - b))
    logs = np.outer(right @ a, _NODES) - (right @ (a * b))[:, None] + _times(asked, wrong.T) + prior
    logs -= logs.max(axis=1, keepdims=True)
    weights = np.exp(logs)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _maximise(right: Array, asked: Array, log_a: Array, b: Array) -> tuple[Array, Array]:
    """A few steps of Fisher scoring; ``right`` and ``asked`` are expected counts, nodes x items."""
    for _ in range(_STEPS):
        a = np.exp(log_a)
        away = _NODES[:, None] - b
        p = _sigmoid(a * away)
        missed, spread = right - asked * p, asked * p * (1 - p)
        along_a, along_b = a * away, -a
        gradient_a = (missed * along_a).sum(axis=0) - log_a / SLOPE_SD**2
        gradient_b = (missed * along_b).sum(axis=0) - (b - b.mean()) / DIFFICULTY_SD**2
        aa = (spread * along_a**2).sum(axis=0) + 1 / SLOPE_SD**2
        bb = (spread * along_b**2).sum(axis=0) + 1 / DIFFICULTY_SD**2
        ab = (spread * along_a * along_b).sum(axis=0)
        determinant = aa * bb - ab**2
        # The information matrix is positive definite (the priors see to it); a step is bounded, for far from the
        # maximum the quadratic promises too much.
        log_a = log_a + np.clip((bb * gradient_a - ab * gradient_b) / determinant, -0.5, 0.5)
        b = b + np.clip((aa * gradient_b - ab * gradient_a) / determinant, -1.0, 1.0)
    return log_a, b


def _times(a: Array, b: Array) -> Array:
    """The matrix product; where one side is all ones (no score is missing), which is the usual case, it is a sum."""
    if b.all() and (b == 1).all():
        return np.repeat(a.sum(axis=1, keepdims=True), b.shape[1], axis=1)
    if (a == 1).all():
        return np.repeat(b.sum(axis=0, keepdims=True), a.shape[0], axis=0)
    return a @ b


def _sigmoid(z: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(z))
