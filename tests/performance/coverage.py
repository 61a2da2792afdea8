"""How often the intervals of the report hold the truth, beside the bootstrap intervals of before.

    python -m tests.performance.coverage [--sets 1000] [--old 200] [--only auc]

Prints a Markdown table: per interval, family and number of texts (items) the share of simulated data sets whose 95%
interval holds the truth, the least over the family's settings. docs/intervals.md has the figures. A mean without an
interval (all values equal) counts as right where its note is: no greater share of the family lies elsewhere.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detection.statistics.gain import paired_difference
from detection.statistics.loss_gap import ItemLoss, loss_gap
from detection.statistics.metrics import Classes, classes, tpr_at_fpr
from detection.statistics.roc_intervals import auc_interval, tpr_interval
from evaluation.agreement.correlation import correlations
from evaluation.statistics import mean_of, welch, wilson

Floats = NDArray[np.float64]
Bounds = tuple[float, float] | None
Rng = np.random.Generator
AREAS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
SIZES = (10, 32, 100)
RESAMPLES = 400


class Case(NamedTuple):
    """One setting of a family: ``draw`` gives the truth's two intervals (new, and old or None where not asked)."""

    figure: str
    family: str
    n: int
    truth: float
    draw: Callable[[Rng, bool], tuple[Bounds, Bounds]]


def sources() -> dict[str, tuple[Callable[[Rng, int], Floats], Callable[[Rng, int], Floats], float]]:
    """Name -> non-members, members before their shift, and the step that scores are rounded to (0: none)."""

    def normal(rng: Rng, n: int) -> Floats:
        return rng.normal(size=n)

    def wide(rng: Rng, n: int) -> Floats:
        return rng.normal(size=n) * 2

    def exponential(rng: Rng, n: int) -> Floats:
        return rng.exponential(size=n)

    def negative(rng: Rng, n: int) -> Floats:
        return -rng.exponential(size=n)

    def student(rng: Rng, n: int) -> Floats:
        return rng.standard_t(3, size=n)

    def uniform(rng: Rng, n: int) -> Floats:
        return rng.uniform(size=n)

    return {
        "normal": (normal, normal, 0),
        "normal, members wider": (normal, wide, 0),
        "exponential": (exponential, exponential, 0),
        "negative exponential": (negative, negative, 0),
        "t with 3 degrees": (student, student, 0),
        "uniform": (uniform, uniform, 0),
        "five ratings with ties": (normal, normal, 1),
    }


def percentile(values: Floats) -> Bounds:
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)


def picks(rng: Rng, n: int) -> NDArray[np.int64]:
    return rng.integers(n, size=(RESAMPLES, n))


def boot_auc(groups: Classes, mine: NDArray[np.int64], others: NDArray[np.int64]) -> Floats:
    """AUCs of resampled texts."""
    gaps = np.sign(groups.members[:, None] - groups.non_members[None, :]) / 2 + 0.5
    m, n = gaps.shape
    weights = [np.stack([np.bincount(row, minlength=k) for row in p]) for p, k in ((mine, m), (others, n))]
    found: Floats = ((weights[0] @ gaps) * weights[1]).sum(axis=1) / (m * n)
    return found


def areas() -> Iterator[Case]:
    big = np.random.default_rng(0)
    for family, (low, high, step) in sources().items():
        x, y = low(big, 1_000_000), high(big, 1_000_000)
        for area in AREAS:
            shift = float(np.quantile(x - y, area))
            a, b = y + shift, x
            if step:
                a, b = np.clip(np.round(a), -2, 2), np.clip(np.round(b), -2, 2)
            truth = float((a > b).mean() + (a == b).mean() / 2)
            for n in SIZES:

                def draw(
                    rng: Rng, old: bool, n: int = n, shift: float = shift, source: str = family
                ) -> tuple[Bounds, Bounds]:
                    non, mem, rounded = sources()[source]
                    members, others = mem(rng, n) + shift, non(rng, n)
                    if rounded:
                        members, others = (np.clip(np.round(v), -2, 2) for v in (members, others))
                    groups = Classes(members=members, non_members=others)
                    return auc_interval(groups), percentile(
                        boot_auc(groups, picks(rng, n), picks(rng, n))
                    ) if old else None

                yield Case("AUC", family, n, truth, draw)


def gains() -> Iterator[Case]:
    from scipy.stats import norm

    pairs = ((0.5, 0.5), (0.75, 0.5), (0.9, 0.6), (0.99, 0.6), (0.99, 0.9), (0.99, 0.99))
    for (first, second), rho, n in product(pairs, (0.5, 0.9), SIZES):
        shifts = [math.sqrt(2) * float(norm.ppf(a)) for a in (first, second)]

        def draw(
            rng: Rng, old: bool, n: int = n, rho: float = rho, shifts: list[float] = shifts
        ) -> tuple[Bounds, Bounds]:
            labels = np.array([1] * n + [0] * n)
            shared = rng.normal(size=2 * n)
            columns = [
                math.sqrt(rho) * shared + math.sqrt(1 - rho) * rng.normal(size=2 * n) + s * labels for s in shifts
            ]
            found = paired_difference(labels.tolist(), columns[0].tolist(), columns[1].tolist())
            before = None
            if old:
                drawn = picks(rng, n), picks(rng, n)
                before = percentile(
                    boot_auc(classes(labels, columns[0]), *drawn) - boot_auc(classes(labels, columns[1]), *drawn)
                )
            return (found.low, found.high), before

        yield Case("gain in AUC", f"normal, correlated {rho}", n, first - second, draw)


def rates() -> Iterator[Case]:
    from scipy.stats import norm

    for area, level, n in product((0.5, 0.65, 0.8, 0.95, 0.99), (0.01, 0.05), (100, 500)):
        shift = math.sqrt(2) * float(norm.ppf(area))

        def draw(rng: Rng, old: bool, n: int = n, level: float = level, shift: float = shift) -> tuple[Bounds, Bounds]:
            members, others = rng.normal(shift, 1, n), rng.normal(size=n)
            found = tpr_interval(Classes(members=members, non_members=others), level)
            if not old:
                return found, None
            labels = [1] * n + [0] * n
            values = [
                tpr_at_fpr(labels, np.concatenate([members[p], others[q]]), level)
                for p, q in zip(picks(rng, n), picks(rng, n), strict=True)
            ]
            return found, percentile(np.array(values))

        yield Case(f"TPR at {level:.0%} FPR", "normal", n, float(norm.sf(norm.isf(level) - shift)), draw)


def populations() -> dict[str, tuple[Floats, Floats, tuple[float, float] | None]]:
    """Name -> values and their chances; what scores of the protocols look like."""
    grid = np.linspace(-3, 3, 61)
    normal = np.exp(-(grid**2) / 2)
    verdicts = np.array([0.1, 0.3, 0.7, 1.0])
    ratings = np.arange(1.0, 11.0)
    return {
        "normal": (grid, normal, None),
        "KIEval, even": (verdicts, np.array([0.25, 0.25, 0.25, 0.25]), (0.1, 1.0)),
        "KIEval, near the floor": (verdicts, np.array([0.6, 0.25, 0.1, 0.05]), (0.1, 1.0)),
        "MT-Bench": (ratings, np.array([2, 3, 4, 6, 8, 10, 14, 20, 20, 13.0]), (1.0, 10.0)),
        "win, tie, loss": (np.array([0, 0.5, 1]), np.array([0.4, 0.2, 0.4]), (0.0, 1.0)),
        "IDGen": (np.arange(4.0), np.array([0.1, 0.2, 0.3, 0.4]), (0.0, 3.0)),
        "right minus right": (np.array([-1.0, 0, 1]), np.array([0.1, 0.7, 0.2]), (-1.0, 1.0)),
    }


def means() -> Iterator[Case]:
    for family, (values, chances, scale) in populations().items():
        chances = chances / chances.sum()
        truth = float(values @ chances)
        for n in (8, 10, 32, 49, 50, 100):

            def draw(
                rng: Rng,
                old: bool,
                n: int = n,
                values: Floats = values,
                chances: Floats = chances,
                scale: tuple[float, float] | None = scale,
            ) -> tuple[Bounds, Bounds]:
                data = rng.choice(values, size=n, p=chances)
                found = mean_of(data.tolist(), seed=0, scale=scale)
                if found.interval is None:
                    elsewhere = 1 - chances[int(np.argmin(np.abs(values - data[0])))]
                    right = elsewhere <= 1 - 0.025 ** (1 / n)
                    bounds: Bounds = (-math.inf, math.inf) if right else (math.nan, math.nan)
                else:
                    bounds = found.interval
                return bounds, percentile(data[picks(rng, n)].mean(axis=1)) if old else None

            yield Case("mean", family, n, truth, draw)


def gaps() -> Iterator[Case]:
    for family, n, part in product(
        ("normal", "gamma, unequal spread", "gamma, unequal groups"), SIZES, ("per_example", "per_token")
    ):
        other = 3 * n if family == "gamma, unequal groups" else n

        def draw(
            rng: Rng, old: bool, n: int = n, other: int = other, family: str = family, part: str = part
        ) -> tuple[Bounds, Bounds]:
            if family == "normal":
                values = rng.normal(3, 0.5, n), rng.normal(2, 0.5, other)
            else:
                values = rng.gamma(9, 1 / 3, n), rng.gamma(16, 1 / 8, other)
            tokens = rng.integers(20, 120, n), rng.integers(20, 120, other)
            items = [
                [ItemLoss(mean=float(v), tokens=int(t)) for v, t in zip(*s, strict=True)]
                for s in zip(values, tokens, strict=True)
            ]
            found = getattr(loss_gap(items[0], items[1]), f"{part}_ci")
            if not old:
                return found, None
            drawn = []
            for group, count, size in zip(values, tokens, (n, other), strict=True):
                p = picks(rng, size)
                weight = count[p] if part == "per_token" else np.ones(p.shape)
                drawn.append((group[p] * weight).sum(axis=1) / weight.sum(axis=1))
            return found, percentile(drawn[0] - drawn[1])

        yield Case(f"loss gap {part.replace('_', ' ')}", family, n, 1.0, draw)


def agreements() -> Iterator[Case]:
    for rho, n, name in product((0.0, 0.5, 0.9), SIZES, ("pearson", "spearman", "kendall")):
        truth = {"pearson": rho, "spearman": 6 / math.pi * math.asin(rho / 2), "kendall": 2 / math.pi * math.asin(rho)}[
            name
        ]

        def draw(rng: Rng, old: bool, n: int = n, rho: float = rho, name: str = name) -> tuple[Bounds, Bounds]:
            x = rng.normal(size=n)
            y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=n)
            found = correlations(x.tolist(), y.tolist(), seed=int(rng.integers(2**31)), resamples=RESAMPLES)[
                name
            ].interval
            before = None
            if old and name == "pearson":
                before = percentile(np.array([np.corrcoef(x[p], y[p])[0, 1] for p in picks(rng, n)]))
            return found, before if name == "pearson" else found

        yield Case(name.capitalize(), "normal", n, truth, draw)


def shares() -> Iterator[Case]:
    for p, n in product((0.1, 0.25, 0.5, 0.9), SIZES):

        def draw(rng: Rng, old: bool, n: int = n, p: float = p) -> tuple[Bounds, Bounds]:
            found = wilson(int(rng.binomial(n, p)), n)
            return found, found

        yield Case("accuracy (Wilson, as before)", "binomial", n, p, draw)


def paired_gaps() -> Iterator[Case]:
    for n in SIZES:

        def draw(rng: Rng, old: bool, n: int = n) -> tuple[Bounds, Bounds]:
            found = welch(rng.normal(0.2, 0.5, n).tolist(), rng.normal(0, 0.3, n).tolist())
            return (None if found is None else found.interval), (None if found is None else found.interval)

        yield Case("difference of loss gaps (Welch, as before)", "normal", n, 0.2, draw)


FIGURES = {
    "auc": areas,
    "gain": gains,
    "rate": rates,
    "mean": means,
    "gap": gaps,
    "correlation": agreements,
    "share": shares,
    "paired": paired_gaps,
}


def covered(case: Case, sets: int, old: int, seed: int) -> tuple[float, float]:
    """The shares of data sets whose interval holds the truth: new, and old (NaN where it was not asked)."""
    rng = np.random.default_rng(seed)
    hits: list[list[bool]] = [[], []]
    for i in range(max(sets, old)):
        found = case.draw(rng, i < old)
        for place, bounds in enumerate(found):
            if bounds is not None and (i < sets if place == 0 else i < old):
                hits[place].append(bounds[0] - 1e-9 <= case.truth <= bounds[1] + 1e-9)
    new, before = (float(np.mean(part)) if part else math.nan for part in hits)
    return new, before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000, help="simulated data sets per setting")
    parser.add_argument("--old", type=int, default=200, help="of these also with the bootstrap interval of before")
    parser.add_argument("--only", choices=sorted(FIGURES), action="append", help="figures; all by default")
    options = parser.parse_args()
    print("| interval | family | n | least coverage | before |\n|---|---|---|---|---|")
    for name in options.only or FIGURES:
        worst: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
        for seed, case in enumerate(FIGURES[name]()):
            worst.setdefault(case[:3], []).append(covered(case, options.sets, options.old, seed))
        for (figure, family, n), found in worst.items():
            new, before = (min(column) for column in zip(*found, strict=True))
            print(f"| {figure} | {family} | {n} | {new:.3f} | {before:.2f} |", flush=True)


if __name__ == "__main__":
    main()
