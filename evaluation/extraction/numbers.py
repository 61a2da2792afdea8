r"""Reading a number out of a reply; the rule is written down in docs/answers.md. It never guesses and never computes.

In this order: the last announced number (``#### 18``, ``\boxed{18}``, ``The answer is 18``); else the last number of
the reply (GSM8K's rule), taken only where it is clear which number it is.

Read: ``1,234.50``, ``-5``, ``−5``, ``minus 5``, ``.5``, ``$18``, ``-$18``, ``18 €``, ``3.5%`` (as 3.5), ``18kg``,
``1e3``, ``1/2`` (exactly a half), ``1 1/2``, ``½``, ``\frac{1}{2}``, digits of any script; thousands set apart by a
comma, an apostrophe, a no-break space, ``{,}`` or ``\,``. ``18.0`` and ``18`` are one number.

No number: words (``eighteen``), ordinals (``3rd``), digits inside a name (``B12``, ``x1``, ``CO2``), and any piece of
an expression: ``\sqrt{2}``, ``3\pi``, ``10^{-3}``, ``2⋅3``, ``5万``, ``18k``, ``±5``; nor what can be read in two ways:
``1,5``, ``1.234.567``, ``1 000``, ``5:30``, ``5-6``, ``3 to 5``, ``5 or 6``.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final, Literal

from evaluation.extraction.announcements import Announcement, announcements, prepared, retracted
from evaluation.extraction.spelling import RUN, ascii_text, run_value, spelled

_ORDINAL = re.compile(r"(?i:st|nd|rd|th)")
# What may stand before a number that is a piece of something: an operator, a function, a brace, a bound.
_BEFORE = re.compile(
    r"(?:[+×÷·⋅∙∗^_√±∓∛|]|[^\s*][ \t]*\*|\\(?!approx|to\b|Rightarrow|implies|therefore|quad|qquad|rightarrow"
    r"|leftarrow|sim\b|[$%#&])"
    r"[A-Za-z]{2,20}|\\pm"
    r"|[0-9)%][ \t]*(?:\*\*|[-/x:]|or|plus|minus|times|mod|over|divided by|multiplied by|mal|durch|fois|por)"
    r"|分[の之]|[πa-z}]/[ \t]*|\{[ \t]*-?|[-+A-Za-z0-9)]\([ \t]*|\b(?:sqrt|log|ln|sin|cos|tan|exp)"
    r"|(?<![=\-\n])[<>≤≥≠]|≤|≥|(?:<=|>="
    r"|!=))[ \t]*\\?[$€£¥₹]?\Z",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\([0-9A-Za-z][^()\n]{0,12}\)|[ \t]{0,2}(?:\^|\\(?:pi|sqrt|times|cdot|div|frac|dfrac|pm|theta|alpha|infty"
    r"|ln|log|sin|cos|tan|mathbb|mathrm|mathcal"
    r"|i\b|e\b)|[π√∞±∓θ⋅·∙×÷]|\*\*?[ \t]?[0-9(\\A-Za-z])|!{2}|_"
    r"|/[ \t]?(?:[xyznkπ]\b|\\|\()|[ \t]?[-+*/][ \t]?(?:[xyznπ]\b|\\(?:pi|sqrt|frac))"
)
# A bound, or an operation, in words: "at least 12", "twice 9", "half of 36".
_WORDS_BEFORE = re.compile(
    r"(?:\b(?:(?:less|more|fewer|greater|larger|smaller|higher|lower|bigger|longer|shorter) than|at (?:least|most)"
    r"|up to|over|under|above|below|exceeds|twice|double|triple|(?:half|third|thirds|quarter|fifth|root"
    r"|factorial|logarithm) of|mindestens|höchstens|(?:mehr|weniger|größer|kleiner) als|au moins|au plus"
    r"|(?:plus|moins) de"
    r"|(?:al|por lo) menos|(?:más|menos) de|como máximo|(?:более|менее|больше|меньше|минимум|максимум))[ \t]"
    r"|至少|最多|大于|小于|超过|不到|少なくとも|最大で?)[ \t]?\\?[$€£¥₹]?\Z",
    re.IGNORECASE,
)
_WORDS_AFTER = re.compile(
    r"[ \t](?:squared|cubed|factorial|tenths|hundredths|thousandths|thirds|halves|fifths|or (?:more|less|fewer"
    r"|above|below|higher|lower)|and (?:above|below|up)|at (?:least|most))\b"
    r"|[ \t](?:plus|minus|times|divided by|multiplied by|mal|(?:more|less|fewer) than)[ \t]\$?[0-9]"
    r"|[ \t]?(?:以上|以下|以内|未満|未满|이상|이하|미만)"
    r"|(?:[ \t]?(?:%|percent|per cent))?[ \t](?:out )?of[ \t]\$?[0-9]|!\$|\.{2,3}[0-9]",
    re.IGNORECASE,
)
# "3 hours 20 minutes", "5 feet 3 inches", "7 remainder 2": two numbers that are one quantity.
_UNIT = (
    r"(?:hours?|hrs?|h|minutes?|mins?|seconds?|secs?|days?|weeks?|months?|years?|feet|foot|ft|inch(?:es)?|pounds?|lbs?"
    r"|ounces?|dollars?|euros?|km|kg|yards?|miles?|gallons?|quarts?|stunden?|tage?|heures?|jours?|horas?|d[ií]as?"
    r"|час\w{0,2}|minuten)"
)
_COMPOUND = (
    rf"(?:[ \t]?{_UNIT}\b[.,]?[ \t]{{1,2}}(?:and |und |et |y |и )?"
    r"|[ \t]?(?:小时|小時|時間|时|分钟|分|天|元|시간|분)[ \t]?"
    r"|[ \t]?(?:r|remainder|rest|reste|resto|остаток|余|餘|あまり|나머지)[ \t.]{0,2})"
)
_COMPOUND_AFTER = re.compile(
    rf"{_COMPOUND}[0-9]|[ \t][A-Za-z]{{2,14}}[ \t](?:and|und|et|y)[ \t]\$?[0-9]", re.IGNORECASE
)
_COMPOUND_BEFORE = re.compile(rf"[0-9]{_COMPOUND}\Z", re.IGNORECASE)
# "n = 5 or n = 7"
_TWO_VALUES = re.compile(
    r"=[^=;\n]{0,12}?[0-9]\S{0,2}[ \t]?(?:,|;|\band\b|\bor\b|\bund\b|\boder\b|\bet\b|\bou\b)[ \t]{1,2}"
    r"[A-Za-z]\w{0,2}[ \t]?="
)
_MULTIPLE = re.compile(
    r"\^|[ \t]{0,2}(?:(?:k|K|M|B|bn|mln|Mio|Mrd|Mia|(?i:hundred|thousand|million|billion|trillion|dozen|crore|lakh)s?"
    r"|(?i:tausend|million(?:en)?|milliarden?|mille|milliers?|milliards?|mil|mill[oó]n(?:es)?|milh(?:ão|ões)"
    r"|тыс|млн|млрд"
    r"|тысяч\w{0,3}|миллион\w{0,3}|миллиард\w{0,3}|nghìn|triệu|ribu|juta))\b|[万萬亿億千百十兆만억천백割]|分の|分之)"
)
# 18kg and 5pm are quantities; 3x, 2pi and 5sqrt are pieces of expressions.
_VARIABLE = re.compile(r"(?:[a-zA-Z](?<![gmshlLWVJ])|pi|ln|log|sin|cos|tan|exp|sqrt|xy|ab|i|mod)(?:[A-Z0-9]|\Z)")
_SPACED_VARIABLE = re.compile(r"[ \t](?:[xyznkπ]\b|pi\b|mod\b|sqrt|log\b)(?![ \t]*=|[ \t]+[a-z]{3,})")
_GROUP = re.compile(r"[0-9]{3}(?![0-9])")
_GROUPS_BEFORE = re.compile(r"(?<![0-9.,/:^A-Za-z-])[0-9]{1,3}(?: [0-9]{3})* \Z")
_GROUPED = re.compile(r"[0-9]{1,3}(?: [0-9]{3})+(?![0-9]).*")
_TO = r"(?:to|bis|à|a|до|through|till|until|hasta|até|～|~|〜|到|至|から|에서|부터)"
_WITH = r"(?:,|;|、|and|or|und|oder|et|ou|y|o|e|или|и|或|和|と|か)"
_RANGE_BEFORE = re.compile(
    rf"[0-9%][ \t](?:or|oder|ou|или|或)[ \t](?:[a-z][ \t]?=[ \t]?)?\Z|[0-9%][ \t]?(?:{_TO}"
    rf"|{_WITH})[ \t]?\\?[$€£¥₹]?[-+]?\Z"
    rf"|\b(?:between|from|zwischen|von|entre|de|между|от)\b[ \t]\S{{1,20}}[ \t](?:\w{{1,15}}[ \t])?(?:{_TO}"
    rf"|{_WITH})[ \t]\\?[$€£¥₹]?\Z",
    re.IGNORECASE,
)
_RANGE_AFTER = re.compile(
    rf"[ \t]{{0,3}}(?:{_TO}(?![A-Za-z])|,(?=[ \t])|;|、|and|or|und|oder|et|ou|y|или|и|或|和"
    rf"|-)[ \t]{{0,3}}\\?[$€£¥₹]?-?[0-9]"
    rf"|[ \t]?\((?:or|oder|ou|o|或)\s",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"[ \t]*[A-Za-z]*[ \t]*[-+*/×÷⋅·x=][ \t]*\\?[$€£¥₹]?[0-9(\\]")
_CLAUSE_END = re.compile(
    r"(?<=\S)[.!?](?=\s|\Z|[\"'”’)])|[。！？]|,?\s(?:because|since|weil|car|porque|потому)\b|因为|,\s(?:not|nicht"
    r"|und nicht)\b"
)
_DENIED = re.compile(r"(?:not|never|nicht|pas|no|не)\b|不是", re.IGNORECASE)
_SUPPOSED = re.compile(r"\s(?:if|unless|wenn|falls|si|если)\s", re.IGNORECASE)
_REFUSED = re.compile(
    r"\b(?:answer|antwort|réponse|respuesta|ответ)\b[^.!?\n]{0,40}\Z|(?:答案|答え|정답)[^.!?。\n]{0,20}\Z"
    r"|\b(?:not|isn['’]t|nicht|pas|не)[ \t]\$?\Z",
    re.IGNORECASE,
)
_ANY = re.compile(r"[0-9]")

UNCLEAR: Final = "unclear"
Read = Fraction | Literal["unclear"] | None
"""A number; ``unclear`` where one was given that can't be read; None where there is none."""


def extract_number(reply: str, *, cut_off: bool = False) -> str | None:
    """The number that a reply gives, as ``plain_number`` spells it; None where it gives none or an unclear one.

    cut_off: the reply ended at its token limit: only what was announced, and surely whole, before the cut counts
    """
    # the line's end that a cut reply has written says that its last number is whole
    text = ascii_text(prepared(reply)) + ("\n" if reply.rstrip(" ").endswith("\n") else "")
    read = _announced(text, cut_off)
    if read is None and not cut_off:
        read = _lone(text)
        read = _last(text) if read is None else read
    return spelled(read) if isinstance(read, Fraction) else None


def _announced(text: str, cut_off: bool) -> Read:
    """The last announcement that holds a number; unclear where that one can't be read, or was taken back."""
    found = announcements(text)
    for place in reversed(range(len(found))):
        one = found[place]
        read = _read(one)
        if read is None:
            continue
        if cut_off and not (one.closed or one.end < len(text) or _whole(one.said)):
            return UNCLEAR
        if one.otherwise or retracted(text, one.end):
            return UNCLEAR
        before = found[place - 1] if place else None
        if before and before.kind == "mark" and _JOINING.fullmatch(text[before.end : one.start]):
            return read if _read(before) == read else UNCLEAR
        return read
    return None


def _whole(said: str) -> bool:
    """Whether a sentence surely ends in it: a full stop behind a digit may be a decimal point where nothing follows."""
    end = _CLAUSE_END.search(said)
    return bool(end) and re.search(r"[0-9]\.\Z", said) is None


_JOINING = re.compile(rf"[$ \t,;]*{_WITH}?[$ \t,;]*")


def _read(one: Announcement) -> Read:
    return _marked(one.said) if one.kind == "mark" else _first(one.said)


def _marked(said: str) -> Read:
    """What a mark encloses: the number with its unit, or the result of a calculation; unclear for anything else."""
    said = said.strip().strip("$").strip()
    if _TWO_VALUES.search(said) or re.search(r"[0-9)]!\Z", said):
        return UNCLEAR
    if "=" in said:
        said = said.rpartition("=")[2]
    read = _first(said)
    return UNCLEAR if read is None else read


def _first(said: str) -> Read:
    """The number that an announcement leads to, before anything else that its sentence says."""
    end = _CLAUSE_END.search(said)
    clause = (said[: end.start()] if end else said).strip(" \t:*_")
    if _DENIED.match(clause) or (end and end[0] == "?"):
        return None
    if _TWO_VALUES.search(clause):
        return UNCLEAR
    if "=" in clause:
        clause = clause.rpartition("=")[2]
    match = RUN.search(clause)
    if match is None:
        return UNCLEAR if _ANY.search(clause) and re.search(r"[\\^_√π]", clause) else None
    if re.search(r"[\\√π]", clause[: match.start()].replace("\\$", "").replace("\\approx", "")):
        return UNCLEAR
    if _SUPPOSED.search(clause, match.end()):
        return UNCLEAR
    if _GOES_ON.match(clause, match.end()) or _GROUPED.fullmatch(clause, match.start("run")):
        return UNCLEAR
    if _RANGE_AFTER.match(clause, match.end()) or re.search(
        r"\bbetween\b|\bzwischen\b|\bentre\b|между", clause[: match.start()]
    ):
        return UNCLEAR
    # "3 \sqrt{2}", "18 \text{ eggs}": what is left of LaTeX behind the number belongs to it
    if re.match(
        r"(?:[^.,;]{0,12}?|\.)\\(?:overline|bar|dots|ldots|sqrt|pi|frac|times|cdot|pm)", clause[match.end() :]
    ) or _unclear(clause, match):
        return UNCLEAR
    value = run_value(match, spaced=True)
    return UNCLEAR if value is None else value


def _lone(text: str) -> Read:
    """A reply that is nothing but a number: a dash before it is its sign, even with a space."""
    match = RUN.fullmatch(text.strip().removesuffix("."))
    if match is None or match["after"]:
        return None
    value = run_value(match, spaced=True)
    return UNCLEAR if value is None else value


def _last(text: str) -> Read:
    """The last number; unclear if the last run of digits is not clearly one."""
    last: re.Match[str] | None = None
    for match in RUN.finditer(text):
        if not _ORDINAL.fullmatch(match["after"]):
            last = match
    if last is None:
        return None
    before = text[max(0, last.start() - 60) : last.start()]
    # A sign behind a number and a space is a subtraction, "16 - 3".
    if _unclear(text, last) or _RANGE_BEFORE.search(before) or (last["sign"] and re.search(r"[0-9)%][ \t]*\Z", before)):
        return UNCLEAR
    # "not 5", "5?"; and what stands behind the word answer was no announcement: denied, supposed or asked
    if _REFUSED.search(before) or re.match(r"[^\W\d]{0,12}[ \t]?\?", text[last.end("run") : last.end("run") + 16]):
        return UNCLEAR
    # "1 000" is a thousand to some and two numbers to others.
    if not last["sign"] and _GROUP.match(last["run"]) and _GROUPS_BEFORE.search(before):
        return UNCLEAR
    # "- 5" at the beginning of a line is an item of a list, behind anything else a minus
    line = before.rpartition("\n")[2]
    value = run_value(last, spaced=bool(re.search(r"[=:≈]\s?\$?\Z", line)))
    return UNCLEAR if value is None else value


def _unclear(text: str, match: re.Match[str]) -> bool:
    """Whether a run is a piece of an expression, or a multiple."""
    before = text[max(0, match.start() - 40) : match.start()]
    after = text[match.end("run") : match.end("run") + 40]
    return bool(
        _BEFORE.search(before)
        or _WORDS_BEFORE.search(before)
        or _COMPOUND_BEFORE.search(before)
        or _WORDS_AFTER.match(after)
        or _COMPOUND_AFTER.match(after)
        or _MULTIPLE.match(after)
        or _AFTER.match(after)
        or _SPACED_VARIABLE.match(after)
        or (match["after"] and (_VARIABLE.fullmatch(match["after"]) or _AFTER.match(text, match.end())))
    )
