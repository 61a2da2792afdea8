"""How often the verdict is "contaminated" without a leak and with one, by the rule and by the one before it.

    python -m tests.performance.false_alarms [--sets 400]

Three headline scores per text, normal, correlated .9 with each other and .7 between candidate and base; a blind
baseline of its own AUC. Before: percentile bootstrap of AUC and gain, and a test is fair unless the blind baseline's
interval lies above 0.5. Now: ``detection.verdict``; random halves are fair by design, other files by equivalence.
docs/intervals.md has the figures.
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detection.blind import BlindBaseline
from detection.statistics.gain import Difference
from detection.statistics.measurement import measurement
from detection.statistics.metrics import classes
from detection.statistics.roc_intervals import auc_interval
from detection.verdict import HEADLINE, Finding, decide, verdict
from tests.performance.coverage import boot_auc, percentile, picks

Floats = NDArray[np.float64]


class Scene(NamedTuple):
    """True AUCs of base, candidate and the blind baseline; drawn: whether the halves were drawn at random."""

    name: str
    base: float
    candidate: float
    blind: float
    drawn: bool
    sizes: tuple[int, ...]


SCENES = (
    Scene("null, random halves", 0.5, 0.5, 0.5, True, (32, 100)),
    Scene("leak (AUC .75), random halves", 0.5, 0.75, 0.5, True, (32, 100)),
    Scene("null, other files", 0.5, 0.5, 0.5, False, (32, 100, 250)),
    Scene("shifted halves (base .60, candidate .60, blind .60)", 0.6, 0.6, 0.6, False, (32, 100, 250)),
    Scene("shift grows without a leak (.60 to .70, blind .56)", 0.6, 0.7, 0.56, False, (32, 100, 250)),
    Scene("shift grows without a leak (.60 to .70, blind .60)", 0.6, 0.7, 0.6, False, (32, 100, 250)),
    Scene("leak (AUC .75), other files", 0.5, 0.75, 0.5, False, (32, 100, 250)),
)


def columns(rng: np.random.Generator, labels: Floats, base: float, candidate: float) -> tuple[Floats, Floats]:
    """Scores of both models, texts x detectors."""
    from scipy.stats import norm

    n, k = len(labels), len(HEADLINE)
    text, mine = rng.normal(size=(n, 1)), [rng.normal(size=(n, 1)) for _ in range(2)]
    found = []
    for own, area in zip(mine, (base, candidate), strict=True):
        noise = math.sqrt(0.7) * text + math.sqrt(0.2) * own + math.sqrt(0.1) * rng.normal(size=(n, k))
        found.append(noise + math.sqrt(2) * norm.ppf(area) * labels[:, None])
    return found[0], found[1]


def simulated(scene: Scene, n: int, rng: np.random.Generator) -> tuple[str, str]:
    """The outcome now, and by the rule before."""
    from scipy.stats import norm

    labels = np.array([1] * n + [0] * n)
    base, candidate = columns(rng, labels.astype(np.float64), scene.base, scene.candidate)
    words = classes(labels, rng.normal(size=2 * n) + math.sqrt(2) * norm.ppf(scene.blind) * labels)
    low, high = auc_interval(words)
    blind = BlindBaseline(auc=words.auc(), auc_ci=(low, high), n=2 * n, n_members=n, by_design=scene.drawn)
    rows = [
        [
            {"id": i, "label": int(labels[i]), "scores": dict(zip(HEADLINE, table[i].tolist(), strict=True))}
            for i in range(2 * n)
        ]
        for table in (candidate, base)
    ]
    now = verdict(rows[0], rows[1], blind, seed=0).outcome

    drawn = picks(rng, n), picks(rng, n)
    findings = []
    for j, name in enumerate(HEADLINE):
        mine, theirs = classes(labels, candidate[:, j]), classes(labels, base[:, j])
        found = measurement(labels.tolist(), candidate[:, j].tolist())
        resampled = boot_auc(mine, *drawn)
        bounds = percentile(resampled) or (0.0, 1.0)
        gain = percentile(resampled - boot_auc(theirs, *drawn)) or (-1.0, 1.0)
        findings.append(
            Finding(
                name=name,
                auc=found["auc"],
                low=bounds[0],
                high=bounds[1],
                p_value=found["p_value"],
                minimum_auc=found["minimum_auc"],
                gain=Difference(value=mine.auc() - theirs.auc(), low=gain[0], high=gain[1], n=2 * n),
            )
        )
    unnoticed = percentile(boot_auc(words, *drawn)) or (0.0, 1.0)
    return now, decide(findings, unnoticed[0] <= 0.5, {}).outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=400, help="simulated audits per row")
    options = parser.parse_args()
    print("| texts | per half | contaminated before | contaminated now | not detected now |\n|---|---|---|---|---|")
    for seed, scene in enumerate(SCENES):
        for n in scene.sizes:
            rng = np.random.default_rng([seed, n])
            found = [simulated(scene, n, rng) for _ in range(options.sets)]
            before = np.mean([old == "contaminated" for _, old in found])
            now = np.mean([new == "contaminated" for new, _ in found])
            clear = np.mean([new == "not detected" for new, _ in found])
            print(f"| {scene.name} | {n} | {before:.1%} | {now:.1%} | {clear:.1%} |", flush=True)


if __name__ == "__main__":
    main()
