"""Figures from the paper on meta probing agents (MPA, arXiv 2402.14865), to stand beside a user's own.

Accuracy % as published and as probed with all principles; the correlations are Pearson, Spearman and Kendall.
"""

from __future__ import annotations

from evaluation.show.table import Cell, Table

MODELS = ("GPT-4-Turbo", "GPT-3.5", "Gemini Pro", "Yi-34b", "Mixtral", "Llama2-70b")
FIGURES: dict[str, tuple[tuple[float, float], ...]] = {
    "mmlu": ((84.40, 68.86), (68.12, 56.15), (67.04, 55.55), (67.31, 63.30), (66.49, 55.24), (56.85, 49.70)),
    "gsm8k": ((95.22, 88.50), (77.71, 71.54), (22.97, 20.39), (73.54, 68.54), (61.56, 47.18), (52.92, 51.50)),
    "arc": ((96.16, 84.67), (85.41, 74.60), (86.18, 75.91), (86.78, 74.03), (84.47, 70.36), (73.55, 64.19)),
    "bbh": ((88.53, 87.78), (54.67, 49.73), (65.47, 60.00), (55.47, 52.49), (53.47, 40.53), (38.53, 38.22)),
}
CORRELATIONS = {"LU-PS": (0.994, 0.986, 0.939), "LU-DK": (0.986, 0.972, 0.909), "PS-DK": (0.986, 0.979, 0.909)}
HUMAN = {"same": 0.94, "right": 0.97}


def beside(benchmark: str) -> str:
    """One line: each model's accuracy before and after, in the order of ``MODELS``; "" for another benchmark."""
    rows = zip(MODELS, FIGURES.get(benchmark, ()), strict=False)
    return "; ".join(f"{name} {before:.2f} -> {after:.2f}" for name, (before, after) in rows)


def published(benchmark: str) -> Table | None:
    """Each model's accuracy before and after on a benchmark format; None for another one."""
    rows = [
        [Cell(name), *(Cell(f"{value:.2f}", value) for value in figures)]
        for name, figures in zip(MODELS, FIGURES.get(benchmark, ()), strict=False)
    ]
    caption = "Accuracy in percent on the items as published, and as rewritten by all principles."
    title = "Published figures (MPA paper)"
    return Table("published_probing", caption, ("model", "vanilla", "probed"), rows, title=title) if rows else None
