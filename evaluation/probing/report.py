"""All figures of candidates that sat a benchmark as published and as probed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from evaluation.probing.abilities import Point, ability_correlations, by_size, size_slopes
from evaluation.probing.calibrate import warning
from evaluation.probing.contamination import CAUTION, drops, fidelity, resistance
from evaluation.probing.effects import (
    Outcomes,
    by_subject,
    comparison,
    monotonicity,
    over_sets,
    pooled,
    relative_effectiveness,
    spread,
)
from evaluation.probing.version import ABILITIES, LEVELS, PRINCIPLES

NO_CALIBRATION = (
    "the judge was not calibrated: run the protocol probing.calibrate on it, and give its figures with the result"
)
EVERYTHING = "(all)"


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateOutcomes:
    """One candidate's results by id of the vanilla item; ``probed``: by named set, then by its number."""

    vanilla: Outcomes
    probed: Mapping[str, Mapping[int, Outcomes]]
    size: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What is known of the vanilla items, and of the probed sets.

    benchmarks, subjects: by item id
    fallbacks: ids by (named set, number); None where it isn't known which items are fallbacks
    """

    benchmarks: Mapping[str, str]
    subjects: Mapping[str, str]
    fallbacks: Mapping[tuple[str, int], Set[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbingSettings:
    """clean, contaminated: names of candidates to be compared; calibration: metrics of ``probing.calibrate``"""

    seed: int = 0
    resamples: int = 2000
    clean: str | None = None
    contaminated: Sequence[str] = ()
    calibration: Mapping[str, Any] | None = field(default=None)


def report(
    sittings: Mapping[str, CandidateOutcomes], described: Described, settings: ProbingSettings
) -> dict[str, Any]:
    """``candidates``: by candidate and benchmark (several: also all items together) the figures of each named set;
    ``abilities``: correlations, size groups and slopes; ``contamination``; ``judge``: its calibration and warnings."""
    candidates: dict[str, Any] = {}
    points: list[Point] = []
    for name, sitting in sittings.items():
        names = sorted({described.benchmarks[item] for item in sitting.vanilla})
        groups = {benchmark: _only(sitting, described.benchmarks, benchmark) for benchmark in names}
        if len(names) > 1:
            groups[EVERYTHING] = sitting
        candidates[name] = {group: _figures(part, described, settings.seed) for group, part in groups.items()}
        for benchmark in names:
            sets = candidates[name][benchmark]["sets"]
            means = {ability: sets[ability]["over_sets"]["probed"]["mean"] for ability in ABILITIES if ability in sets}
            points.append(Point(candidate=name, benchmark=benchmark, accuracies=means, size=sitting.size))
    options = {"seed": settings.seed, "resamples": settings.resamples}
    result: dict[str, Any] = {
        "judge": _judge(settings.calibration),
        "candidates": candidates,
        "abilities": {
            "points": len(points),
            "correlations": ability_correlations(points, **options),
            "by_size": by_size(points, **options),
            "slopes": size_slopes(points),
        },
    }
    if settings.clean is not None:
        clean = sittings[settings.clean]
        result["contamination"] = {
            "clean": settings.clean,
            "caution": CAUTION,
            "candidates": {
                name: {probe: _against(clean, sittings[name], probe, settings.seed) for probe in clean.probed}
                for name in settings.contaminated
            },
        }
    return result


def _figures(sitting: CandidateOutcomes, described: Described, seed: int) -> dict[str, Any]:
    sets: dict[str, Any] = {}
    for probe, parts in sitting.probed.items():
        # a set that holds no item of this benchmark (options, open questions) has no figures here
        known = {number: part for number, part in parts.items() if any(item in sitting.vanilla for item in part)}
        if not known:
            continue
        sets[probe] = _probe(sitting.vanilla, known, probe, described, seed)
    result: dict[str, Any] = {"n": len(sitting.vanilla), "sets": sets}
    if "all" in sets:
        whole = sitting.probed["all"]
        result["relative_effectiveness"] = {
            name: relative_effectiveness(_change(sets[name], sets["all"]), sets["all"]["pooled"])
            for name in PRINCIPLES
            if name in sets
        }
        result["subjects"] = by_subject(sitting.vanilla, list(whole.values()), described.subjects)
    if any(level in sets for level in LEVELS):
        means = [sets[level]["over_sets"]["probed"]["mean"] if level in sets else None for level in LEVELS]
        first = next(sets[level]["over_sets"]["vanilla"]["mean"] for level in LEVELS if level in sets)
        result["monotonicity"] = monotonicity([first, *means])
    return result


def _probe(
    vanilla: Outcomes, parts: Mapping[int, Outcomes], probe: str, described: Described, seed: int
) -> dict[str, Any]:
    def compared(wanted: Mapping[int, Outcomes]) -> list[dict[str, Any]]:
        # items of the benchmark that this set has no version of are no loss: they are compared where there is a pair
        return [comparison({i: vanilla[i] for i in part if i in vanilla}, part, seed=seed) for part in wanted.values()]

    own = {number: {i: o for i, o in part.items() if i in vanilla} for number, part in parts.items()}
    rows = compared(own)
    result = {
        "sets": dict(zip(map(str, own), rows, strict=True)),
        "over_sets": over_sets(rows),
        "pooled": pooled(vanilla, list(own.values()), seed=seed),
    }
    if described.fallbacks is not None:
        failed = {number: described.fallbacks.get((probe, number), set()) for number in own}
        kept = {number: {i: o for i, o in part.items() if i not in failed[number]} for number, part in own.items()}
        result["fallback_rate"] = spread(
            [len(failed[number] & set(part)) / len(part) if part else None for number, part in own.items()]
        )
        result["without_fallbacks"] = {
            "n": [len(part) for part in kept.values()],
            **over_sets(compared(kept)),
        }
    return result


def _change(part: Mapping[str, Any], whole: Mapping[str, Any]) -> float | None:
    """The change by one principle over the items of the whole: those it doesn't touch count as unchanged."""
    delta, n, total = part["pooled"]["delta"], part["pooled"]["n"], whole["pooled"]["n"]
    return None if delta is None or not total else float(delta * n / total)


def _only(sitting: CandidateOutcomes, benchmarks: Mapping[str, str], benchmark: str) -> CandidateOutcomes:
    def kept(outcomes: Outcomes) -> Outcomes:
        return {item: outcome for item, outcome in outcomes.items() if benchmarks.get(item) == benchmark}

    probed = {probe: {k: kept(part) for k, part in parts.items()} for probe, parts in sitting.probed.items()}
    return CandidateOutcomes(vanilla=kept(sitting.vanilla), probed=probed, size=sitting.size)


def _against(clean: CandidateOutcomes, other: CandidateOutcomes, probe: str, seed: int) -> dict[str, Any]:
    """Clean and contaminated on one named set: each figure per set, and fidelity's and resistance's mean over them."""
    both = [number for number in clean.probed[probe] if number in other.probed.get(probe, {})]
    sets = {
        str(number): {
            "fidelity": fidelity(clean.vanilla, clean.probed[probe][number]),
            "resistance": resistance(clean.probed[probe][number], other.probed[probe][number]),
            **drops(
                (clean.vanilla, clean.probed[probe][number]), (other.vanilla, other.probed[probe][number]), seed=seed
            ),
        }
        for number in both
    }
    return {
        "sets": sets,
        **{name: spread([part[name]["value"] for part in sets.values()]) for name in ("fidelity", "resistance")},
        "excess_drop": spread([part["excess_drop"] for part in sets.values()]),
        "resistance_vanilla": resistance(clean.vanilla, other.vanilla),
    }


def _judge(calibration: Mapping[str, Any] | None) -> dict[str, Any]:
    if calibration is None:
        return {"warning": NO_CALIBRATION}
    names = ("pairs", "recall", "recall_interval", "false_alarms", "false_alarms_interval", "informedness")
    return {**{name: calibration[name] for name in names}, "warning": warning(calibration)}
