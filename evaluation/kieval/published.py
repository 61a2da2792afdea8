"""Figures from the KIEval paper (arXiv 2402.15043, its main table), to stand beside a user's own.

Accuracy %, KIEval x 100 (scale of the variant ``released``) and rounds out of 5, GPT-4 as interactor and evaluator.
"""

from __future__ import annotations

from evaluation.show.table import Cell, Table

COLUMNS = ("ARC-E", "ARC-C", "MMLU", "HellaSwag", "C-Eval")
FIGURES: dict[str, tuple[tuple[float, float, float], ...]] = {
    "GPT-3.5": ((92.7, 97.6, 4.97), (82.3, 95.5, 4.94), (58.2, 96.2, 4.95), (76.6, 88.2, 4.82), (50.8, 83.3, 4.72)),
    "LLaMA2 70B": ((92.3, 90.7, 4.85), (80.4, 84.1, 4.66), (61.8, 89.6, 4.80), (74.4, 80.1, 4.41), (42.0, 61.0, 3.94)),
    "LLaMA2 13B": ((81.9, 86.2, 4.70), (65.7, 78.6, 4.56), (52.1, 87.4, 4.76), (59.3, 78.5, 4.66), (37.8, 54.4, 3.74)),
    "LLaMA2 7B": ((73.6, 78.9, 4.49), (55.7, 74.4, 4.44), (44.5, 83.0, 4.61), (39.8, 76.4, 4.54), (33.4, 49.3, 3.62)),
    "Mistral 7B": ((83.5, 80.8, 4.64), (67.5, 78.5, 4.46), (52.7, 83.0, 4.62), (54.4, 70.3, 4.34), (39.3, 52.2, 3.61)),
    "Yi 6B": ((90.7, 83.8, 4.58), (79.0, 76.8, 4.33), (61.9, 86.5, 4.58), (73.7, 68.7, 4.20), (71.5, 55.6, 3.66)),
    "MPT 7B": ((53.3, 68.4, 4.34), (43.4, 65.5, 4.33), (33.9, 74.7, 4.46), (27.3, 57.3, 4.10), (26.2, 44.9, 3.52)),
}
CONTAMINATION = (
    "Contamination: the cheaters' accuracy rises by over 45 points while their KIEval score falls slightly below "
    "Normal's; Min-K% reaches an AUC of 0.89 after contamination in pre-training and stays near chance after it in "
    "fine-tuning. Trained on 80 MT-Bench prompts: MT-Bench +1.79, ARC-C stable, KIEval slightly lower."
)
HUMAN_CORRELATION = {
    "KIEval overall": (0.814, 0.789, 0.721),
    "MT-Bench judge": (0.520, 0.494, 0.405),
    "BERTScore": (0.189, 0.336, 0.250),
    "ROUGE-1": (0.259, 0.316, 0.226),
    "METEOR": (0.016, 0.023, 0.021),
}
"""Pearson, Spearman, Kendall with people's ratings; the annotators' own Cohen's kappa is .624, averaged over pairs."""
_BENCHMARKS = {"arc": ("ARC-E", "ARC-C"), "mmlu": ("MMLU",), "hellaswag": ("HellaSwag",), "ceval": ("C-Eval",)}


def published(benchmark: str) -> Table | None:
    """Per model accuracy, KIEval and rounds on a benchmark format's columns; None where there are none."""
    columns = _BENCHMARKS.get(benchmark, ())
    places = [COLUMNS.index(column) for column in columns]
    rows = [
        [Cell(name), *(Cell("{:.1f} / {:.1f} / {:.2f}".format(*row[place])) for place in places)]
        for name, row in FIGURES.items()
    ]
    title = "Published figures (KIEval paper): accuracy / KIEval / rounds, GPT-4 as both examiners"
    return Table("published_kieval", CONTAMINATION, ("model", *columns), rows, title=title) if columns else None
