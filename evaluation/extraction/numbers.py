"""Reading a number out of a reply: GSM8K's rule, the last number, taken only where it is clear which number it is.

A marked answer goes before the last number: ``#### 18`` or ``\\boxed{18}``; two marks that differ are no answer.

Read: ``1,234.50``, ``-5`` and ``−5``, ``.5``, ``$18``, ``-$18``, ``18 €``, ``3.5%`` (as 3.5), ``18kg``, ``5pm``,
``1e3``, ``1/2`` without spaces (one number, exactly a half), ``1 1/2``, ``½``; thousands set apart by a comma, an
apostrophe, a no-break space, ``{,}`` or ``\\,``. ``18.0`` and ``18`` are one number.

No number: words (``eighteen``), ordinals (``3rd``), digits inside a name (``B12``, ``x1``, ``CO2``). And there is no
answer at all where the last number can be read in two ways or is left uncomputed: ``1,5``, ``1.234.567``, ``1 000``,
``5:30``, ``5-6``, ``5 or 6``, ``10^2``, ``5 * 3``, ``18k``, ``2 dozen``.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from fractions import Fraction

_LONGEST = 60

_APART = re.compile(r"(?<=[0-9])(?:[\u00a0\u2009\u202f'’]|\{,\}|\\,)(?=[0-9]{3}(?![0-9]))")
_VULGAR = re.compile("[\u00bc-\u00be\u2150-\u215e]")
_FRAC = re.compile(r"\\[dt]?frac\{([0-9]{1,9})\}\{([0-9]{1,9})\}")
# Markdown's ** and *, which are no operators.
_EMPHASIS = re.compile(r"(?<![0-9)*])(?<![0-9)] )(\*{1,3})(?=\S)([^*\n]{1,40})(?<=\S)\1(?!\*)")
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
# What may stand before the last number of a calculation that was not carried out, or of a choice of two.
_OPERATOR = re.compile(r"(?:[+×÷·^]|[^\s*][ \t]*\*|\\times|\\cdot|[0-9)%][ \t]*(?:\*\*|[-/x]|or))[ \t]*\\?[$€£¥₹]?\Z")
_MULTIPLE = re.compile(r"\^|[ \t]?(?:k|K|M|B|bn|(?i:hundred|thousand|million|billion|trillion|dozen)s?)\b")
_GROUP = re.compile(r"[0-9]{3}(?![0-9])")
_GROUPS_BEFORE = re.compile(r"(?<![0-9.,/:^A-Za-z-])[0-9]{1,3}(?: [0-9]{3})* \Z")
_GROUPED = re.compile(r"[0-9]{1,3}(?: [0-9]{3})+(?![0-9]).*")
_WHOLE_BEFORE = re.compile(r"(?<![0-9.,/:^-])([0-9]{1,9}) \Z")
# "#### 18", but not the heading "#### 1. First".
_MARKED = re.compile(
    r"####[ \t]*(?=[-+]?\\?[$€£¥₹]?[-+]?\.?[0-9])(?![0-9]+[.):][ \t]+\S)(?P<line>[^\n]{0,400})"
    r"|\\boxed\{(?P<box>[^{}\n]{0,200}(?:\{[^{}\n]{0,100}\}[^{}\n]{0,100})?)\}"
)
_GOES_ON = re.compile(r"[ \t]*[A-Za-z]*[ \t]*[-+*/×÷x=][ \t]*\\?[$€£¥₹]?[0-9]")


def extract_number(reply: str, *, marked_only: bool = False) -> str | None:
    """The number that a reply gives, as ``plain_number`` spells it; None where it gives none or an unclear one."""
    text = _ascii(reply)
    marks = [
        _last(match["box"]) if match["line"] is None else _first(match["line"]) for match in _MARKED.finditer(text)
    ]
    if marks:
        return _spell(marks[0]) if len(set(marks)) == 1 and marks[0] is not None else None
    last = None if marked_only else _last(text)
    return None if last is None else _spell(last)


def plain_number(text: str) -> str | None:
    """A text that is one number and nothing else (sign, currency, percent and a full stop aside), in one spelling.

    ``1,080`` and ``$1080.00`` are ``1080``; what has no finite decimal stays a fraction. None for anything else.
    """
    said = _ascii(text).strip().removesuffix(".").rstrip("%€$£¥₹").rstrip()
    match = _RUN.fullmatch(said)
    if match is None or match["after"]:
        return None
    value = _value(match)
    return None if value is None else _spell(value)


def value_of(text: str) -> Fraction | None:
    """The exact value of a number in any spelling that ``plain_number`` reads."""
    plain = plain_number(text)
    return None if plain is None else Fraction(plain)


def _ascii(text: str) -> str:
    """Digits, signs and vulgar fractions in one spelling. Not NFKC, which turns 10² into 102."""
    text = _VULGAR.sub(lambda match: " " + unicodedata.normalize("NFKC", match[0]).replace("\u2044", "/"), text)
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(c, "")) or c if c.isdecimal() else c for c in text)
        text = text.translate(_SIGNS)
    return _CODE.sub("$", _FRAC.sub(r" \1/\2", _APART.sub(",", _EMPHASIS.sub(r"\2", text))))


_SIGNS = str.maketrans("−－﹣‐‑–＋．，％＄²³", "------+.,%$^^")


def _first(line: str) -> Fraction | None:
    """The number that a marked line begins with; of a calculation its result, ``#### 3 * 6 = 18``."""
    match = _RUN.match(line)
    if match is None or "=" in line:
        return _last(line)
    unclear = (
        _GOES_ON.match(line, match.end())
        or _MULTIPLE.match(line, match.end("run"))
        or _GROUPED.fullmatch(line, match.start("run"))
    )
    return None if unclear else _value(match)


def _last(text: str) -> Fraction | None:
    """The last number; None if there is none, or the last run of digits is not clearly one."""
    last: re.Match[str] | None = None
    for match in _RUN.finditer(text):
        if not _ORDINAL.fullmatch(match["after"]):
            last = match
    if last is None or _MULTIPLE.match(text, last.end("run")):
        return None
    before = text[max(0, last.start() - 40) : last.start()]
    # A sign behind a number and a space is a subtraction, "16 - 3"; so is the operator before an unsigned one.
    if _OPERATOR.search(before) or (last["sign"] and re.search(r"[0-9)%][ \t]*\Z", before)):
        return None
    # "1 000" is a thousand to some and two numbers to others.
    if not last["sign"] and _GROUP.match(last["run"]) and _GROUPS_BEFORE.search(before):
        return None
    value = _value(last)
    whole = _WHOLE_BEFORE.search(before) if value is not None and not last["sign"] else None
    if whole and value is not None and _FRACTION.fullmatch(last["run"]) and 0 < value < 1:
        return int(whole[1]) + value
    return value


def _value(match: re.Match[str]) -> Fraction | None:
    run = match["run"]
    sign = (match["sign"] or "").strip() + (match["inner"] or "")
    # "- 5" begins a list's line, or follows a dash.
    negative = sign == "-" and not (match["sign"] or "").endswith((" ", "\n", "\t"))
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
