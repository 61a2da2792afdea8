"""Cutting a text without anybody's tokenizer: into words, and into a beginning and its continuation."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

from evaluation.text_metrics import words as metric_words

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_WORD_OR_MARK = re.compile(rf"{_WORD.pattern}|[^\w\s]")
_PIECE = re.compile(rf"\s*(?:[{_UNSPACED}]|[^\s{_UNSPACED}]+)")


def pieces(text: str) -> list[str]:
    """The words of a text, each with the white space before it; a Chinese or Japanese character is a word of its own.

    Joined they give the text without the white space at its end.
    """
    return _PIECE.findall(text)


def words(text: str, *, marks: bool = False) -> list[str]:
    """Lower-cased runs of letters, digits and underscores; a Chinese or Japanese character is a word of its own.

    marks: whether each other character that isn't white space is one, too
    """
    return (_WORD_OR_MARK if marks else _WORD).findall(text.lower())


def halves(text: str) -> tuple[str, str] | None:
    """The first half of a text's words (rounded down) and the rest, which begins with white space if there is any.

    None for a text of fewer than two words. White space at the text's end is left out.
    """
    found = pieces(text)
    if len(found) < 2:
        return None
    middle = len(found) // 2
    return "".join(found[:middle]), "".join(found[middle:])


def rouge_l(reference: str, reply: str) -> float:
    """F1 of the longest common subsequence of words (Lin 2004), by rouge-score, in [0, 1]; NaN where the reference has
    no word.

    Words are those of ``evaluation.text_metrics.words``, not stemmed: what is remembered is remembered to the letter.
    """
    if not metric_words(reference):
        return math.nan
    return float(_scorer().score(reference, reply)["rougeL"].fmeasure)


@cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    class Words:
        def tokenize(self, text: str) -> list[str]:
            return metric_words(text)

    return RougeScorer(["rougeL"], tokenizer=Words())
