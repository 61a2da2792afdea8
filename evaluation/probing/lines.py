"""The lines that ``proctor probing compare`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.probing.published import CORRELATIONS, beside


def lines(metrics: Mapping[str, Any]) -> Iterator[str]:
    """One line per candidate, benchmark and set; what doubts there are about the judge first."""
    judge = metrics["judge"]
    if "recall" in judge:
        yield f"judge: recall {_cell(judge['recall'])}, false alarms {_cell(judge['false_alarms'])}"
    if judge["warning"]:
        yield f"warning: {judge['warning']}"
    for candidate, groups in metrics["candidates"].items():
        for benchmark, figures in groups.items():
            yield f"{candidate} on {benchmark}: {figures['n']} items"
            for probe, row in figures["sets"].items():
                yield f"  {probe:8} {_set(row)}"
            for name, effect in figures.get("relative_effectiveness", {}).items():
                yield f"  RE({name}): {_cell(effect['value'])} {effect.get('reason', '')}".rstrip()
            if published := beside(benchmark):
                yield f"  published by MPA (accuracy %): {published}"
            levels = figures.get("monotonicity")
            if levels:
                yield f"  levels {', '.join(map(_cell, levels['accuracies']))}: falling throughout: {levels['holds']}"
    for pair, row in metrics["abilities"]["correlations"].items():
        cells = [f"{name} {_cell(row[name]['value'])}" for name in ("pearson", "spearman", "kendall")]
        yield f"{pair}: {', '.join(cells)}, n {row['pearson']['n']} {row['pearson'].get('reason', '')}".rstrip()
    if metrics["abilities"]["correlations"]["LU-PS"]["pearson"]["value"] is not None:
        paper = "; ".join(f"{pair} {' / '.join(f'{x:.3f}' for x in row)}" for pair, row in CORRELATIONS.items())
        yield f"published by MPA (Pearson / Spearman / Kendall): {paper}"
    contamination = metrics.get("contamination")
    if contamination:
        for name, probes in contamination["candidates"].items():
            for probe, row in probes.items():
                shown = (f"{key} {_cell(row[key]['mean'])}" for key in ("fidelity", "resistance", "excess_drop"))
                yield f"{name} against {contamination['clean']}, {probe}: {', '.join(shown)}"
        yield f"note: {contamination['caution']}"


def _set(row: Mapping[str, Any]) -> str:
    over, pooled = row["over_sets"], row["pooled"]
    cells = [
        f"vanilla {_cell(over['vanilla']['mean'])}",
        f"probed {_with_sd(over['probed'])}",
        f"delta {_with_sd(over['delta'])}{_interval(pooled['delta_interval'])}",
        f"changed {_with_sd(over['changed'])}",
        f"n {pooled['n']}",
        f"sets {over['sets']}",
    ]
    if "without_fallbacks" in row:
        part = row["without_fallbacks"]
        cells.append(f"fallbacks {_cell(row['fallback_rate']['mean'])}, delta without {_with_sd(part['delta'])}")
    return ", ".join(cells)


def _with_sd(value: Mapping[str, Any]) -> str:
    return _cell(value["mean"]) + ("" if value["sd"] is None else f" ± {value['sd']:.3f}")


def _interval(bounds: list[float] | None) -> str:
    return "" if bounds is None else f" [{bounds[0]:.3f}, {bounds[1]:.3f}]"


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
