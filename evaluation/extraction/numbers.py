r"""Reading a number out of a reply; the rule is written down in docs/answers.md. It never guesses and never computes.

In this order: the last announced number (``#### 18``, ``\boxed{18}``, ``The answer is 18``); else the last number of the
reply (GSM8K's rule), taken only where it is clear which number it is.

Read: ``1,234.50``, ``-5``, ``−5``, ``minus 5``, ``.5``, ``$18``, ``-$18``, ``18 €``, ``3.5%`` (as 3.5), ``18kg``, ``1e3``,
``1/2`` (exactly a half), ``1 1/2``, ``½``, ``\frac{1}{2}``, digits of any script; thousands set apart by a comma, an
apostrophe, a no-break space, ``{,}`` or ``\,``. ``18.0`` and ``18`` are one number.

No number: words (``eighteen``), ordinals (``3rd``), digits inside a name (``B12``, ``x1``, ``CO2``), and any piece of an
expression: ``\sqrt{2}``, ``3\pi``, ``10^{-3}``, ``2⋅3``, ``5万``, ``18k``, ``±5``; nor what can be read in two ways:
``1,5``, ``1.234.567``, ``1 000``, ``5:30``, ``5-6``, ``3 to 5``, ``5 or 6``.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal

from evaluation.extraction.announcements import Announcement, announcements, prepared, retracted

_LONGEST = 60

_APART = re.compile(r"(?<=[0-9])(?:[\u00a0\u2009\u202f'’٬]|\{,\}|\\,|,\\!)(?=[0-9]{3}(?![0-9]))")
_VULGAR = re.compile("[\u00bc-\u00be\u2150-\u215e]")
_FRAC = re.compile(
    r"(?P<whole>[0-9][ \t]?)?\\[dtc]?frac\s?(?:\{([0-9]{1,9})\}\s?\{([0-9]{1,9})\}|([0-9])\s?([0-9])(?![0-9]))"
)
_MIXED = re.compile(r"(?<![0-9.,/:^_A-Za-z-])(-?)([0-9]{1,9}) {1,2}([0-9]{1,9})/([0-9]{1,9})(?![0-9/])(?!\.[0-9])")
_WRAPPERS = re.compile(r"\\(?:text(?:bf|rm|it|sf|tt)?|math(?:rm|bf|it)|mbox|textnormal|bold|bm)\s?\{([^{}\n]{0,200})\}")
_MARKUP = re.compile(r"\\[()\[\]]|\\[!;:,](?![0-9]{3})|\\(?:left|right|displaystyle|quad|qquad)\b")
_DEGREES = re.compile(r"\^\s?(?:\\circ|\{\s?\\circ\s?\})|°|\\degree\b|\\circ\b")
_UNIT_POWER = re.compile(r"(?<=[A-Za-z])(?<![0-9](?=[^cdkm])[A-Za-z])\^\{?[23]\}?|(?<=[0-9] [a-z])\^\{?[23]\}?")
_SUPER = re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿ]+")
_SUB = re.compile("[₀-₉]+")
# Markdown's ** and *, which are no operators.
_EMPHASIS = re.compile(r"(?<![0-9)*])(?<![0-9)] )(\*{1,3})(?=\S)([^*\n]{1,40})(?<=\S)\1(?!\*)")
_MINUS = re.compile(
    r"(?<![0-9)%])(?<![0-9)%][ \t])(?<![A-Za-z])(?:\b(?:minus|negative|moins|menos|meno|минус)\s|负|負|マイナス\s?|마이너스\s?)"
    r"(?=\\?[$€£¥₹]?\.?[0-9])",
    re.IGNORECASE,
)
# A run is everything that hangs together with a digit; whether it is a number is decided afterwards.
_RUN = re.compile(
    r"(?P<sign>(?<![0-9A-Za-z)\]%])[-+]\s?)?(?:(?:US|A|C)?\\?[$€£¥₹] ?(?P<inner>[-+])?)?"
    r"(?P<run>(?<![0-9A-Za-z_])(?<![0-9][.,:/^-])(?:(?<![.\w])\.)?[0-9]"
    r"(?:[0-9]|[.,:/^xX×*+-](?=[0-9])|[eE][-+]?[0-9])*)(?P<after>[A-Za-z]{0,12})"
)
_CODE = re.compile(r"\b(?:USD|EUR|GBP|CAD|AUD|INR|Rs)\.?(?=[0-9])")
_PLAIN = re.compile(r"(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)?(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,2})?")
_FRACTION = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
_ORDINAL = re.compile(r"(?i:st|nd|rd|th)")
# What may stand before a number that is a piece of something: an operator, a function, a brace, a bound.
_BEFORE = re.compile(
    r"(?:[+×÷·⋅∙∗^_√±∓∛|]|[^\s*][ \t]*\*|\\(?!approx|to\b|Rightarrow|implies|therefore|quad|qquad|rightarrow"
    r"|leftarrow|sim\b|[$%#&])"
    r"[A-Za-z]{2,20}|\\pm"
    r"|[0-9)%][ \t]*(?:\*\*|[-/x:]|or|plus|minus|times|mod|over|divided by|multiplied by|mal|durch|fois|por)"
    r"|分[の之]|\{[ \t]*-?|[A-Za-z0-9)]\([ \t]*|\b(?:sqrt|log|ln|sin|cos|tan|exp)|(?<![=\-\n])[<>≤≥≠]|≤|≥|(?:<=|>="
    r"|!=))[ \t]*\\?[$€£¥₹]?\Z",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\([0-9A-Za-z][^()\n]{0,12}\)|[ \t]{0,2}(?:\^|\\(?:pi|sqrt|times|cdot|div|frac|dfrac|pm|theta|alpha|infty"
    r"|ln|log|sin|cos|tan|mathbb|mathrm|mathcal"
    r"|i\b|e\b)|[π√∞±∓θ⋅·∙×÷]|\*\*?[ \t]?[0-9(\\A-Za-z])|!{2}|_"
    r"|/[ \t]?(?:[xyznkπ]\b|\\|\()|[ \t]?[-+*/][ \t]?(?:[xyznπ]\b|\\(?:pi|sqrt|frac))"
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
    rf"[0-9%][ \t]?(?:{_TO}|{_WITH})[ \t]?\\?[$€£¥₹]?[-+]?\Z"
    rf"|\b(?:between|from|zwischen|von|entre|de|между|от)\b[ \t]\S{{1,20}}[ \t](?:\w{{1,15}}[ \t])?(?:{_TO}"
    rf"|{_WITH})[ \t]\\?[$€£¥₹]?\Z",
    re.IGNORECASE,
)
_RANGE_AFTER = re.compile(
    rf"[ \t]?(?:{_TO}(?![A-Za-z])|,(?=[ \t])|;|、|and|or|und|oder|et|ou|y|или|и|或|和|-)[ \t]?\\?[$€£¥₹]?-?[0-9]"
    rf"|[ \t]?\((?:or|oder|ou|o|或)\s",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"[ \t]*[A-Za-z]*[ \t]*[-+*/×÷⋅·x=][ \t]*\\?[$€£¥₹]?[0-9(\\]")
_CLAUSE_END = re.compile(
    r"(?<=\S)[.!?](?=\s|\Z|[\"'”’)])|[。！？]|,?\s(?:because|since|weil|car|porque|потому)\b|因为|,\s(?:not|nicht"
    r"|und nicht)\b"
)
_ANY = re.compile(r"[0-9]")

UNCLEAR: Final = "unclear"
Read = Fraction | Literal["unclear"] | None
"""A number; ``unclear`` where one was given that can't be read; None where there is none."""


def extract_number(reply: str, *, cut_off: bool = False) -> str | None:
    """The number that a reply gives, as ``plain_number`` spells it; None where it gives none or an unclear one.

    cut_off: the reply ended at its token limit: only what was announced, and surely whole, before the cut counts
    """
    text = _ascii(prepared(reply))
    read = _announced(text, cut_off)
    if read is None and not cut_off:
        read = _lone(text)
        read = _last(text) if read is None else read
    return _spell(read) if isinstance(read, Fraction) else None


def plain_number(text: str) -> str | None:
    """A text that is one number and nothing else (sign, currency, percent and a full stop aside), in one spelling.

    ``1,080`` and ``$1080.00`` are ``1080``; what has no finite decimal stays a fraction. None for anything else.
    """
    said = _ascii(text).strip().strip("$").strip().removesuffix(".").rstrip("%€$£¥₹").rstrip()
    match = _RUN.fullmatch(said)
    if match is None or match["after"]:
        return None
    value = _value(match, spaced=True)
    return None if value is None else _spell(value)


def value_of(text: str) -> Fraction | None:
    """The exact value of a number in any spelling that ``plain_number`` reads."""
    plain = plain_number(text)
    return None if plain is None else Fraction(plain)


def _ascii(text: str) -> str:
    """Digits, signs, fractions and LaTeX in one spelling. Not NFKC, which turns 10² into 102."""
    if not text.isascii():
        text = _VULGAR.sub(_vulgar, text.replace("\u2044", "/"))
        text = _SUPER.sub(_raised, text)
        text = _SUB.sub("_0", text)
        text = "".join(str(unicodedata.decimal(c, "")) or c if c.isdecimal() else c for c in text)
        text = text.translate(_SIGNS)
    for _ in range(2):
        text = _WRAPPERS.sub(r"\1", text)
    text = _DEGREES.sub("", _MARKUP.sub(" ", _APART.sub(",", text)))
    text = _UNIT_POWER.sub("", text)
    text = _FRAC.sub(_fraction, _EMPHASIS.sub(r"\2", text))
    text = _CODE.sub("$", _MINUS.sub("-", text))
    return _MIXED.sub(_mixed, text)


_SIGNS = str.maketrans("−－﹣‐‑–＋．，％＄٫٬", "------+.,%$.,")


def _vulgar(match: re.Match[str]) -> str:
    before = match.string[match.start() - 1 : match.start()] if match.start() else ""
    fraction = unicodedata.normalize("NFKC", match[0]).replace("\u2044", "/")
    return f" {fraction}" if before.isdigit() else fraction


def _raised(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 2) : match.start()]
    # m² is a unit
    return "" if before[-1:].isalpha() and match[0] in ("²", "³") else "^0"


def _fraction(match: re.Match[str]) -> str:
    whole, upper, lower = match["whole"], match[2] or match[4], match[3] or match[5]
    return f"{whole.strip()} {upper}/{lower}" if whole else f"{upper}/{lower}"


def _mixed(match: re.Match[str]) -> str:
    sign, whole, upper, lower = match[1], int(match[2]), int(match[3]), int(match[4])
    return f"{sign}{whole * lower + upper}/{lower}" if 0 < upper < lower else match[0]


def _announced(text: str, cut_off: bool) -> Read:
    """The last announcement that holds a number; unclear where that one can't be read, or was taken back."""
    found = announcements(text)
    for place in reversed(range(len(found))):
        one = found[place]
        read = _read(one)
        if read is None:
            continue
        if cut_off and not (one.closed or one.end < len(text) or _CLAUSE_END.search(one.said)):
            return UNCLEAR
        if retracted(text, one.end):
            return UNCLEAR
        before = found[place - 1] if place else None
        if before and before.kind == "mark" and _JOINING.fullmatch(text[before.end : one.start]):
            return read if _read(before) == read else UNCLEAR
        return read
    return None


_JOINING = re.compile(rf"[$ \t,;]*{_WITH}?[$ \t,;]*")


def _read(one: Announcement) -> Read:
    return _marked(one.said) if one.kind == "mark" else _first(one.said)


def _marked(said: str) -> Read:
    """What a mark encloses: the number with its unit, or the result of a calculation; unclear for anything else."""
    said = said.strip().strip("$").strip()
    if "=" in said:
        said = said.rpartition("=")[2]
    read = _first(said)
    return UNCLEAR if read is None else read


def _first(said: str) -> Read:
    """The number that an announcement leads to, before anything else that its sentence says."""
    end = _CLAUSE_END.search(said)
    clause = (said[: end.start()] if end else said).strip(" \t:*_")
    if "=" in clause:
        clause = clause.rpartition("=")[2]
    match = _RUN.search(clause)
    if match is None:
        return UNCLEAR if _ANY.search(clause) and re.search(r"[\\^_√π]", clause) else None
    if re.search(r"[\\√π]", clause[: match.start()].replace("\\$", "").replace("\\approx", "")):
        return UNCLEAR
    if _GOES_ON.match(clause, match.end()) or _GROUPED.fullmatch(clause, match.start("run")):
        return UNCLEAR
    if _RANGE_AFTER.match(clause, match.end()) or re.search(
        r"\bbetween\b|\bzwischen\b|\bentre\b|между", clause[: match.start()]
    ):
        return UNCLEAR
    # "3 \sqrt{2}", "18 \text{ eggs}": what is left of LaTeX behind the number belongs to it
    if re.match(r"[^.,;]{0,12}?\\(?:sqrt|pi|frac|times|cdot|pm)", clause[match.end() :]) or _unclear(clause, match):
        return UNCLEAR
    value = _value(match, spaced=True)
    return UNCLEAR if value is None else value


def _lone(text: str) -> Read:
    """A reply that is nothing but a number: a dash before it is its sign, even with a space."""
    match = _RUN.fullmatch(text.strip().removesuffix("."))
    if match is None or match["after"]:
        return None
    value = _value(match, spaced=True)
    return UNCLEAR if value is None else value


def _last(text: str) -> Read:
    """The last number; unclear if the last run of digits is not clearly one."""
    last: re.Match[str] | None = None
    for match in _RUN.finditer(text):
        if not _ORDINAL.fullmatch(match["after"]):
            last = match
    if last is None:
        return None
    before = text[max(0, last.start() - 60) : last.start()]
    # A sign behind a number and a space is a subtraction, "16 - 3".
    if _unclear(text, last) or _RANGE_BEFORE.search(before) or (last["sign"] and re.search(r"[0-9)%][ \t]*\Z", before)):
        return UNCLEAR
    # "1 000" is a thousand to some and two numbers to others.
    if not last["sign"] and _GROUP.match(last["run"]) and _GROUPS_BEFORE.search(before):
        return UNCLEAR
    # "- 5" at the beginning of a line is an item of a list, behind anything else a minus
    line = before.rpartition("\n")[2]
    value = _value(last, spaced=bool(re.search(r"[=:≈]\s?\$?\Z", line)))
    return UNCLEAR if value is None else value


def _unclear(text: str, match: re.Match[str]) -> bool:
    """Whether a run is a piece of an expression, or a multiple."""
    before = text[max(0, match.start() - 40) : match.start()]
    after = text[match.end("run") : match.end("run") + 40]
    return bool(
        _BEFORE.search(before)
        or _MULTIPLE.match(after)
        or _AFTER.match(after)
        or _SPACED_VARIABLE.match(after)
        or (match["after"] and (_VARIABLE.fullmatch(match["after"]) or _AFTER.match(text, match.end())))
    )


def _value(match: re.Match[str], *, spaced: bool = False) -> Fraction | None:
    """spaced: a dash with a space before the digits is a minus, too"""
    run = match["run"]
    sign = (match["sign"] or "").strip() + (match["inner"] or "")
    negative = sign == "-" and (spaced or not (match["sign"] or "").endswith((" ", "\n", "\t")))
    if len(run) > _LONGEST or len(sign) > 1:
        return None
    if fraction := _FRACTION.fullmatch(run):
        value = Fraction(int(fraction[1]), int(fraction[2])) if int(fraction[2]) else None
    elif _PLAIN.fullmatch(run):
        value = Fraction(Decimal(run.replace(",", "")))
    else:
        return None
    return -value if negative and value is not None else value


def _spell(value: Fraction) -> str:
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return str(value)
    places = 0
    while value.denominator != 1 and (value * 10**places).denominator != 1:
        places += 1
    digits = str(abs(value.numerator * 10**places // value.denominator)).rjust(places + 1, "0")
    spelled = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{spelled}" if value < 0 else spelled
