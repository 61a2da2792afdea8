"""How a number is written: one spelling for all scripts, signs, fractions and LaTeX, and the exact value of a run."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from fractions import Fraction

_LONGEST = 60

_APART = re.compile(r"(?<=[0-9])(?:[\u00a0\u2009\u202f'’٬]|\{,\}|\\,|,\\!)(?=[0-9]{3}(?![0-9]))")
_VULGAR = re.compile("[\u00bc-\u00be\u2150-\u215e]")
_FRAC = re.compile(
    r"(?P<whole>[0-9][ \t]?)?\\[dtc]?frac\s?(?:\{([0-9]{1,9})\}\s?\{([0-9]{1,9})\}|([0-9])\s?([0-9])(?![0-9]))"
)
_MIXED = re.compile(r"(?<![0-9.,/:^_A-Za-z-])(-?)([0-9]{1,9}) {1,2}([0-9]{1,9})/([0-9]{1,9})(?![0-9/])(?!\.[0-9])")
_WRAPPERS = re.compile(r"\\(?:text(?:bf|rm|it|sf|tt)?|math(?:rm|bf|it)|mbox|textnormal|bold|bm)\s?\{([^{}\n]{0,200})\}")
_MARKUP = re.compile(r"\\[()\[\]]|\\[!;:,](?![0-9]{3})|\\(?:left|right|displaystyle|quad|qquad)\b")
_DEGREES = re.compile(r"(?:\^\s?(?:\\circ|\{\s?\\circ\s?\})|°|\\degree\b|\\circ\b)\s?(?:[CFKNSEW]\b)?")
_UNIT_POWER = re.compile(r"(?<=[A-Za-z])(?<![0-9](?=[^cdkm])[A-Za-z])\^\{?[23]\}?|(?<=[0-9] [a-z])\^\{?[23]\}?")
_SUPER = re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿ]+")
_SUB = re.compile("[₀-₉]+")
# Markdown's ** and *, which are no operators.
_EMPHASIS = re.compile(r"(?<![0-9)*])(?<![0-9)] )(\*{1,3})(?=\S)([^*\n]{1,40})(?<=\S)\1(?!\*)")
_MINUS = re.compile(
    r"(?<![0-9)%])(?<![0-9)%][ \t])(?<![A-Za-z])(?:\b(?:minus|negative|moins|menos|meno|минус)\s"
    r"|负|負|マイナス\s?|마이너스\s?)"
    r"(?=\\?[$€£¥₹]?\.?[0-9])",
    re.IGNORECASE,
)
# A run is everything that hangs together with a digit; whether it is a number is decided afterwards.
RUN = re.compile(
    r"(?P<sign>(?<![0-9A-Za-z)\]%])[-+]\s?)?(?:(?:US|A|C)?\\?[$€£¥₹] ?(?P<inner>[-+])?)?"
    r"(?P<run>(?<![0-9A-Za-z_])(?<![0-9][.,:/^-])(?:(?<![.\w])\.)?[0-9]"
    r"(?:[0-9]|[.,:/^xX×*+-](?=[0-9])|[eE][-+]?[0-9])*)(?P<after>[A-Za-z]{0,12})"
)
_CODE = re.compile(r"\b(?:USD|EUR|GBP|CAD|AUD|INR|Rs)\.?(?=[0-9])")
_PLAIN = re.compile(r"(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)?(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,2})?")
_FRACTION = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


def plain_number(text: str) -> str | None:
    """A text that is one number and nothing else (sign, currency, percent and a full stop aside), in one spelling.

    ``1,080`` and ``$1080.00`` are ``1080``; what has no finite decimal stays a fraction. None for anything else.
    """
    said = ascii_text(text).strip().strip("$").strip().removesuffix(".").rstrip("%€$£¥₹").rstrip()
    match = RUN.fullmatch(said)
    if match is None or match["after"]:
        return None
    value = run_value(match, spaced=True)
    return None if value is None else spelled(value)


def value_of(text: str) -> Fraction | None:
    """The exact value of a number in any spelling that ``plain_number`` reads."""
    plain = plain_number(text)
    return None if plain is None else Fraction(plain)


def ascii_text(text: str) -> str:
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


_SIGNS = str.maketrans("−－﹣‐‑–＋．，％＄٫٬：＝（）？", "------+.,%$.,:=()?")


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


def run_value(match: re.Match[str], *, spaced: bool = False) -> Fraction | None:
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


def spelled(value: Fraction) -> str:
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
