"""Cutting a text without anybody's tokenizer: into words, and into a beginning and its continuation."""

from __future__ import annotations

import re

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
