"""Cutting a text without anybody's tokenizer: into words, and into a beginning and its continuation."""

from __future__ import annotations

import math
import re
import unicodedata
from functools import cache
from typing import Any

import regex

from evaluation.text_metrics import words as metric_words

_UNSPACED = r"\u3040-\u30ff\p{Han}\p{Hiragana}\p{Katakana}\p{Line_Break=Complex_Context}"
"""Characters of scripts that set no spaces between words: Chinese, Japanese, and those of which Unicode says so (Thai,
Lao, Khmer, Burmese and their kin: UAX 14, class SA)."""
_WORD = regex.compile(rf"[{_UNSPACED}]\p{{M}}*|(?:(?![{_UNSPACED}])[\p{{L}}\p{{N}}]\p{{M}}*)+")
_WORD_OR_MARK = regex.compile(rf"{_WORD.pattern}|\S")
_PIECE = regex.compile(rf"\s*(?:[{_UNSPACED}]\p{{M}}*|[^\s{_UNSPACED}]+)")
_LINE_END = r"[^\S\r\n]*[\r\n]\s*"
_IGNORABLE = regex.compile(rf"\u00ad{_LINE_END}|[\p{{Default_Ignorable_Code_Point}}\p{{Cf}}\u0640]")
_HYPHEN = regex.compile(rf"(?<=[\p{{L}}\p{{M}}])[-\u2010](?:{_LINE_END})?(?=\p{{L}})")
_ASCII_HYPHEN = re.compile(rf"(?<=[A-Za-z])-(?:{_LINE_END})?(?=[A-Za-z])")
_ASCII_WORD = re.compile(r"[a-z0-9]+")


def pieces(text: str) -> list[str]:
    """The words of a text, each with the white space before it; in scripts that set no spaces between words a character
    with its marks is one (see ``words``).

    Joined they give the text without the white space at its end.
    """
    return list(_PIECE.findall(text))


def fold(text: str) -> str:
    """The text as it is compared: forms that Unicode holds for the same character are one (NFKC), case is folded, and
    what is not seen is gone: soft hyphens, zero-width spaces and joiners, direction marks, the Arabic tatweel. A hyphen
    between letters is taken out, alone or with a line end after it, so that a word broken at a line end is whole."""
    if text.isascii():
        return (_ASCII_HYPHEN.sub("", text) if "-" in text else text).lower()
    text = unicodedata.normalize("NFKC", _IGNORABLE.sub("", text))
    return str(_HYPHEN.sub("", unicodedata.normalize("NFKC", text.casefold())))


def words(text: str, *, marks: bool = False) -> list[str]:
    """Runs of letters and digits of the folded text (``fold``), each with the combining marks after it; in scripts that
    set no spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) each character with its marks is one.

    marks: whether each other character that isn't white space is a word, too
    """
    folded = fold(text)
    if not marks and folded.isascii():
        return _ASCII_WORD.findall(folded)
    return list((_WORD_OR_MARK if marks else _WORD).findall(folded))


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
