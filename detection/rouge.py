"""ROUGE-L of a memory test: how much of a reference comes back in its order, word by word."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from evaluation.text_metrics import words


def rouge_l(reference: str, reply: str) -> float:
    """F1 of the longest common subsequence of words (Lin 2004), by rouge-score, in [0, 1]; NaN where the reference has
    no word.

    Words are those of ``evaluation.text_metrics.words``, not stemmed: what is remembered is remembered to the letter.
    """
    if not words(reference):
        return math.nan
    return float(_scorer().score(reference, reply)["rougeL"].fmeasure)


@cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    class Words:
        def tokenize(self, text: str) -> list[str]:
            return words(text)

    return RougeScorer(["rougeL"], tokenizer=Words())
