"""ConStat: is a model better on the benchmark than its accuracy on a reference benchmark lets expect?

Dekoninck et al. 2024, "ConStat: Performance-Based Contamination Detection in Large Language Models" (arXiv:2405.16281):
a smoothing spline through the accuracies of at least 5 reference models turns an accuracy on the reference benchmark
(a rephrased, newly written or similar one) into the one to be expected on the benchmark. What the examined model has
above that is contamination as it matters: accuracy that does not generalise. No model is asked anything.

Unlike the released code this one keeps each model's two accuracies together (that code sorts the two columns apart),
draws the accuracies of a resample from binomial distributions (it has accuracies, not answers per item), and adds the
point of random guessing only where its accuracies are named.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from detection.method import Context, DetectorOptions, Text
from detection.sets.base import Figures, SetTest
from evaluation.statistics import percentile_interval
from serving.records import Dialogue, derive_seed

LEAST_MODELS = 5
MOST_ITEMS = 10**9
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A model's two accuracies in [0, 1] and the numbers of items behind them."""

    model: str
    accuracy: float
    reference: float
    items: int
    reference_items: int


LONGEST_FIELD = 131_072
"""Characters of a field of ``constat.file``."""


class ConStat(SetTest):
    """Figures beside ``p_value`` and ``n`` (reference models):

    accuracy, reference_accuracy: the examined model's; expected: what the spline gives for the latter
    delta, delta_ci: accuracy minus expected, with its 95% bootstrap interval (over models and items)
    extrapolated: whether the model's reference accuracy lies outside those of the reference models
    p_value: share of resamples whose delta is at most ``margin``, (1 + count) / (1 + resamples)
    """

    name = "constat"
    version = 1
    needs = ()
    passes = 0
    paper = "Dekoninck et al. 2024, arXiv:2405.16281"
    files = ("file",)

    class Options(DetectorOptions):
        """file: CSV with the columns model, accuracy, reference_accuracy and, unless named here, items, reference_items
        model: row of the file that is the examined model (it is no reference then); or its two accuracies, here
        chance, reference_chance: accuracies of random guessing: a point more on the spline
        margin: accuracy by which the model may exceed what is expected of it
        """

        file: str
        model: str = ""
        accuracy: float | None = Field(default=None, ge=0.0, le=1.0)
        reference_accuracy: float | None = Field(default=None, ge=0.0, le=1.0)
        items: int | None = Field(default=None, ge=1, le=MOST_ITEMS)
        reference_items: int | None = Field(default=None, ge=1, le=MOST_ITEMS)
        chance: float | None = Field(default=None, ge=0.0, le=1.0)
        reference_chance: float | None = Field(default=None, ge=0.0, le=1.0)
        margin: float = Field(default=0.0, ge=0.0, lt=1.0)
        resamples: int = Field(default=1000, ge=100)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        options = self.options
        if (options.chance is None) != (options.reference_chance is None):
            raise ValueError("constat: name both chance and reference_chance, or neither")
        path = Path(options.file).expanduser()
        standings = read_standings(path, options.items, options.reference_items)
        self.candidate = _candidate(standings, options, path)
        self.references = [s for s in standings if s.model != options.model]
        if len(self.references) < LEAST_MODELS:
            raise ValueError(f"{path}: {len(self.references)} reference models; constat needs at least {LEAST_MODELS}")

    def examine(self, texts: Sequence[Text], scores: Sequence[Mapping[str, float | None]]) -> Dialogue[Figures]:
        yield []  # a generator that asks nothing
        return constat(self.candidate, self.references, self.options, seed=self.context.seed)


def constat(candidate: Standing, references: Sequence[Standing], options: Any, *, seed: int) -> Figures:
    """The test itself. ``p_value`` None with a ``reason`` where no spline can be fitted."""
    found: Figures = {
        "p_value": None,
        "n": len(references),
        "accuracy": candidate.accuracy,
        "reference_accuracy": candidate.reference,
        "expected": None,
        "delta": None,
        "delta_ci": None,
    }
    x = np.array([s.reference for s in references])
    y = np.array([s.accuracy for s in references])
    anchor = None if options.chance is None else (options.reference_chance, options.chance)
    expected = expected_accuracy(candidate.reference, x, y, anchor)
    if expected is None:
        return {**found, "reason": f"fewer than {LEAST_MODELS} different accuracies on the reference benchmark"}
    rng = np.random.default_rng(derive_seed(seed, "constat"))
    deltas: list[float] = []
    attempts = 0
    while len(deltas) < options.resamples and attempts < 10 * options.resamples:
        attempts += 1
        drawn = _draw_models(rng, len(references))
        everyone = [candidate, *(references[i] for i in drawn)]
        accuracy = rng.binomial([s.items for s in everyone], [s.accuracy for s in everyone])
        reference = rng.binomial([s.reference_items for s in everyone], [s.reference for s in everyone])
        ys = accuracy / np.array([s.items for s in everyone])
        xs = reference / np.array([s.reference_items for s in everyone])
        value = expected_accuracy(xs[0], xs[1:], ys[1:], anchor)
        if value is not None:  # else fewer than 5 different accuracies: drawn again
            deltas.append(float(ys[0]) - value)
    found |= {
        "expected": expected,
        "delta": candidate.accuracy - expected,
        "extrapolated": not min(x) <= candidate.reference <= max(x),
    }
    if len(deltas) < options.resamples:
        return {**found, "reason": "too few resamples have 5 different accuracies on the reference benchmark"}
    at_most = sum(delta <= options.margin for delta in deltas)
    interval = list(percentile_interval(deltas) or ())
    return {**found, "delta_ci": interval, "p_value": (1 + at_most) / (1 + len(deltas))}


def expected_accuracy(at: float, x: Floats, y: Floats, anchor: tuple[float, float] | None = None) -> float | None:
    """The smoothing spline (penalty by generalised cross-validation) through (x, y) at ``at``, within [0, 1].

    Models of equal x are one point with their mean y. Outside the points the spline goes on as a straight line. None
    where there are fewer than 5 different x.
    """
    from scipy.interpolate import make_smoothing_spline

    if anchor is not None:
        x, y = np.append(x, anchor[0]), np.append(y, anchor[1])
    distinct, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    if len(distinct) < LEAST_MODELS:
        return None
    means = np.bincount(place, weights=y) / counts
    try:
        spline = make_smoothing_spline(distinct, means, w=counts.astype(np.float64))
    except (ValueError, np.linalg.LinAlgError):  # points so close together that the problem is ill-posed
        return None
    inside = min(max(at, distinct[0]), distinct[-1])
    value = float(spline(inside)) + (at - inside) * float(spline(inside, 1))
    return min(1.0, max(0.0, value)) if math.isfinite(value) else None


def read_standings(path: Path, items: int | None, reference_items: int | None) -> list[Standing]:
    """The rows of a CSV file. ValueError, naming file, line and column, for what is missing or wrong."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start + 1} is not UTF-8") from error
    reader = csv.DictReader(text.splitlines())
    try:
        header = reader.fieldnames or ()
        rows = [(reader.line_num, row) for row in reader]
        for number, row in rows:  # the reader's own limit is whatever another library made of it
            if any(isinstance(value, str) and len(value) > LONGEST_FIELD for value in row.values()):
                raise ValueError(f"{path}:{number}: not CSV: field larger than field limit ({LONGEST_FIELD})")
    except csv.Error as error:
        raise ValueError(f"{path}:{reader.line_num + 1}: not CSV: {error}") from error
    wanted = ["model", "accuracy", "reference_accuracy"]
    wanted += [name for name, value in (("items", items), ("reference_items", reference_items)) if value is None]
    missing = [name for name in wanted if name not in header]
    if missing:
        raise ValueError(
            f"{path}:1: no column {missing[0]!r}; the header must name model, accuracy, reference_accuracy, items, "
            "reference_items (the last two may be options instead)"
        )
    found: list[Standing] = []
    for line, row in rows:
        where = f"{path}:{line}"
        model = (row["model"] or "").strip()
        if not model or any(s.model == model for s in found):
            raise ValueError(f"{where}: column model is {model!r}; each row names another model")
        found.append(
            Standing(
                model=model,
                accuracy=_share(row["accuracy"], f"{where}: column accuracy"),
                reference=_share(row["reference_accuracy"], f"{where}: column reference_accuracy"),
                items=_count(row.get("items"), items, f"{where}: column items"),
                reference_items=_count(row.get("reference_items"), reference_items, f"{where}: column reference_items"),
            )
        )
    return found


def _share(text: str | None, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{where} is {text!r}; an accuracy is a number between 0 and 1")
    return value


def _count(text: str | None, default: int | None, where: str) -> int:
    if not (text or "").strip() and default is not None:
        return default
    digits = (text or "").strip()
    if not digits.isdecimal() or len(digits) > len(str(MOST_ITEMS)) or not 1 <= int(digits) <= MOST_ITEMS:
        raise ValueError(f"{where} is {(text or '')[:40]!r}; it must be a number of items, from 1 to {MOST_ITEMS}")
    return int(digits)


def _candidate(standings: Sequence[Standing], options: Any, path: Path) -> Standing:
    """The examined model: a row of the file, or the accuracies named in the options."""
    if options.model:
        if options.accuracy is not None or options.reference_accuracy is not None:
            raise ValueError("constat: name the examined model's row (model) or its two accuracies, not both")
        row = next((s for s in standings if s.model == options.model), None)
        if row is None:
            known = ", ".join(s.model for s in standings[:8])
            raise ValueError(f"constat.model: {path} has no row for {options.model!r}; its models: {known}")
        return row
    named = {key: getattr(options, key) for key in ("accuracy", "reference_accuracy", "items", "reference_items")}
    missing = [key for key, value in named.items() if value is None]
    if missing:
        raise ValueError(
            f"constat.{missing[0]}: name the examined model's row of {path} (constat.model), or accuracy, "
            "reference_accuracy, items and reference_items"
        )
    return Standing(
        model="",
        accuracy=options.accuracy,
        reference=options.reference_accuracy,
        items=options.items,
        reference_items=options.reference_items,
    )


def _draw_models(rng: np.random.Generator, models: int) -> Sequence[int]:
    """With replacement, 5 different ones at least; all of them where there are no more than 5."""
    if models == LEAST_MODELS:
        return range(models)
    while True:
        drawn = [int(i) for i in rng.integers(0, models, models)]
        if len(set(drawn)) >= LEAST_MODELS:
            return drawn
