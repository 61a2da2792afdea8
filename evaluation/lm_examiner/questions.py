"""Questions out of an examiner's text: found, numbered, and refused for a reason.

The examiner is asked for numbered lines and nothing else; weak ones greet, bold, quote, count in words of another
script, or don't count at all. Where any line is numbered, only numbered lines can be questions; where none is, every
line that asks something can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from evaluation.templates import one_line, unquoted, well_formed
from evaluation.text_metrics import words

DUPLICATE: Final = 0.7
"""ROUGE-L (F1) above which two questions of a domain are the same question."""
FEWEST_WORDS: Final = 3
MOST_CHARACTERS: Final = 1000
REASONS: Final = ("empty", "statement", "too_short", "too_long", "duplicate", "surplus")

QUESTION_WORDS: Final = ("what", "how", "why", "which", "who", "when", "where", "can", "is", "does", "request")
REQUESTS: Final = frozenset(
    word
    for line in (
        "explain describe compare contrast discuss name list define give state identify outline tell",
        "analyze analyse evaluate summarize summarise",
    )
    for word in line.split()
)
"""Verbs of requests, which ask although they end with a full stop."""

_VARIANTS: Final = {
    **dict.fromkeys(("whom", "whose"), "who"),
    **dict.fromkeys(("could", "should", "would", "will", "may", "might", "must", "shall"), "can"),
    **dict.fromkeys(("are", "was", "were", "has", "have", "had"), "is"),
    **dict.fromkeys(("do", "did"), "does"),
}
_CHINESE: Final = dict(zip("一二三四五六七八九", range(1, 10), strict=True))
_LABEL: Final = r"(?:(?:question|q|no\.?|nr\.?|问题|第)[ ]*[#.:]?[ ]*)?"
_DIGITS: Final = r"(?P<number>[0-9\uff10-\uff19]{1,3})"
_NUMBERED: Final = re.compile(
    rf"^[\s*_#>\"“(\[（【]*{_LABEL}(?:{_DIGITS}|(?P<chinese>[一二三四五六七八九十]{{1,3}})|(?P<circled>[①-⑳]))"
    # a number is followed by a mark; a circled one by nothing
    r"(?:(?P<mark>[*_]*[ ]*[.)\]:：、．）】题][ ]*[.:：、]?)|(?(circled)|(?!)))[\s*_]*(?P<text>.*)$",
    re.IGNORECASE,
)
_BULLET: Final = re.compile(r"^\s*(?:[-*•–·]\s+)?(?P<text>.*)$")
_WRAPPING: Final = " \t*_\"“”'`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A line that may be a question. number: as the examiner counted, or its place where it didn't count."""

    number: int
    text: str
    numbered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    """What came of a text: ``kept`` questions in order, and per reason the lines ``refused``."""

    kept: tuple[str, ...]
    refused: dict[str, tuple[str, ...]]
    numbered: bool

    def counts(self) -> dict[str, int]:
        return {reason: len(lines) for reason, lines in self.refused.items()}


def find_questions(text: str, *, cut: bool = False) -> list[Found]:
    """The lines of a text that can be questions, in order.

    cut: max_tokens ended the text; its last line is left out then unless it ends with a question mark
    """
    lines = [line for line in well_formed(unquoted(text)).splitlines() if line.strip()]
    if cut and lines and not _asks(_bare(lines[-1])):
        lines.pop()
    numbered = [match for line in lines if (match := _NUMBERED.match(line))]
    if numbered:
        return [
            Found(number=_number(match), text=one_line(_bare(match.group("text"))), numbered=True) for match in numbered
        ]
    asking = [_bare(match.group("text")) for line in lines if (match := _BULLET.match(line))]
    return [
        Found(number=place, text=one_line(line), numbered=False)
        for place, line in enumerate((line for line in asking if _asks(line) or _is_request(line)), start=1)
    ]


def sift(found: Sequence[Found], *, wanted: int, before: Sequence[str] = ()) -> Sifted:
    """At most ``wanted`` valid questions, different from each other and from those ``before``."""
    kept: list[str] = []
    refused: dict[str, list[str]] = {}
    for one in found:
        reason = _fault(one.text)
        if not reason and any(rouge_l(other, one.text) > DUPLICATE for other in (*before, *kept)):
            reason = "duplicate"
        if not reason and len(kept) >= wanted:
            reason = "surplus"
        if reason:
            refused.setdefault(reason, []).append(one.text)
        else:
            kept.append(one.text)
    return Sifted(
        kept=tuple(kept),
        refused={reason: tuple(refused[reason]) for reason in REASONS if reason in refused},
        numbered=bool(found) and found[0].numbered,
    )


def question_word(question: str) -> str:
    """The first question word (of ``QUESTION_WORDS``), ``request`` for ``Explain ...``, or ``other``.

    A question may begin with a clause: the first question word of the text counts, before auxiliary verbs.
    """
    spoken = [_VARIANTS.get(word, word) for word in words(question)]
    if not spoken:
        return "other"
    if spoken[0] in REQUESTS:
        return "request"
    if spoken[0] in QUESTION_WORDS:
        return spoken[0]
    real = [word for word in spoken if word in QUESTION_WORDS[:7]]
    return real[0] if real else "other"


def rouge_l(a: str, b: str) -> float:
    """ROUGE-L's F1 of two texts (Lin 2004), 0..1, Porter stemmer on; 0 where one has no words."""
    return _scorer()(a, b) if words(a) and words(b) else 0.0


@cache
def _scorer() -> Callable[[str, str], float]:
    from nltk.stem.porter import PorterStemmer
    from rouge_score.rouge_scorer import RougeScorer

    class Words:
        stemmer = PorterStemmer()

        def tokenize(self, text: str) -> list[str]:
            return [self.stemmer.stem(word) if len(word) > 3 else word for word in words(text)]

    scorer: Any = RougeScorer(["rougeL"], tokenizer=Words())
    return lambda a, b: float(scorer.score(a, b)["rougeL"].fmeasure)


def _fault(text: str) -> str:
    spoken = words(text)
    if not spoken:
        return "empty"
    if len(text) > MOST_CHARACTERS:
        return "too_long"
    if not _asks(text) and not _is_request(text):
        return "statement"
    return "too_short" if len(spoken) < FEWEST_WORDS else ""


def _asks(text: str) -> bool:
    """Whether the text ends with a question mark: what answers itself is no question."""
    return text.rstrip(_WRAPPING + ")）").endswith(("?", "？", "؟"))


def _is_request(text: str) -> bool:
    first = words(text)[:1]
    return bool(first) and first[0] in REQUESTS and "?" not in text


def _bare(text: str) -> str:
    return text.strip().strip(_WRAPPING)


def _number(match: re.Match[str]) -> int:
    if match.group("number"):
        return int(match.group("number"))
    if match.group("circled"):
        return ord(match.group("circled")) - ord("①") + 1
    tens, ten, ones = match.group("chinese").partition("十")
    if not ten:
        return _CHINESE.get(tens[-1], 0)
    return 10 * _CHINESE.get(tens, 1) + _CHINESE.get(ones, 0)
