"""Numbers and units in a question, in digits or English words, for telling whether a rewrite kept them.

``5 kg``, ``five kilograms``, ``twenty-five``, ``two dozen``, ``half``, ``50%``, ``$3``, ``7am``, ``400 000``, ``-8``,
``12/25/1937`` (three numbers). A number that English uses for other things, too (``one``, ``first``, ``pair``, ``zero``
in ``below zero``), is *weak*: it can stand for a number of the original, but is neither demanded of a rewrite nor held
against it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

_UNITS: Final = {
    "%": "% percent per-cent",
    "$": "$ dollar dollars usd bucks",
    "€": "€ euro euros eur",
    "pound": "£ pound pounds lb lbs",
    "cent": "cent cents ¢",
    "kg": "kg kgs kilogram kilograms kilo kilos",
    "g": "g gram grams",
    "mg": "mg milligram milligrams",
    "ounce": "oz ounce ounces",
    "ton": "t ton tons tonne tonnes",
    "km": "km kms kilometer kilometers kilometre kilometres",
    "m": "m meter meters metre metres",
    "cm": "cm centimeter centimeters centimetre centimetres",
    "mm": "mm millimeter millimeters millimetre millimetres",
    "mile": "mile miles mi",
    "yard": "yard yards yd",
    "foot": "foot feet ft",
    "inch": "inch inches",
    "litre": "l liter liters litre litres",
    "ml": "ml milliliter milliliters millilitre millilitres",
    "gallon": "gallon gallons gal",
    "hour": "h hour hours hr hrs",
    "minute": "minute minutes min mins",
    "second": "s sec secs seconds",
    "day": "day days",
    "week": "week weeks",
    "month": "month months",
    "year": "year years yr yrs",
    "am": "am a.m.",
    "pm": "pm p.m.",
    "degree": "degree degrees °",
    "volt": "v volt volts",
    "watt": "w watt watts",
    "newton": "n newton newtons",
    "joule": "j joule joules",
    "ohm": "ohm ohms",
}
UNITS: Final = {word: unit for unit, words in _UNITS.items() for word in words.split()}

_DIGITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
_TEENS = "sixteen seventeen eighteen nineteen"
_SMALL = {word: value for value, word in enumerate(f"{_DIGITS} {_TEENS}".split())}
_ROUND = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * value for value, word in enumerate(_ROUND.split(), start=2)}
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "dozen": 12, "dozens": 12}
_WHOLE = {
    "half": Fraction(1, 2),
    "halves": Fraction(1, 2),
    "quarter": Fraction(1, 4),
    "twice": Fraction(2),
    "double": Fraction(2),
    "doubled": Fraction(2),
    "doubles": Fraction(2),
    "thrice": Fraction(3),
    "triple": Fraction(3),
    "tripled": Fraction(3),
    "triples": Fraction(3),
}
_WEAK = {
    **{"once": 1, "single": 1, "a": 1, "an": 1, "pair": 2, "couple": 2, "both": 2},
    **{word: value for value, word in enumerate(_ORDINALS.split(), start=1)},
}
_PARTS = {"third": 3, "thirds": 3, "fourth": 4, "fourths": 4, "quarters": 4, "fifth": 5, "fifths": 5, "tenths": 10}

_GROUPED = r"\d{1,3}(?:[, \u00a0\u202f]\d{3})+(?!\d)(?:\.\d+)?"
_TOKEN = re.compile(
    rf"(?P<money>[$€£])?\s?(?P<digits>{_GROUPED}|\d+(?:\.\d+)?)(?:st|nd|rd|th)?(?![\d])|(?P<word>[A-Za-z]+)"
)
_MINUS = re.compile(r"(?:(?<![\w.)\]%])[-−]|\b(?:minus|negative)\s)\Z", re.IGNORECASE)
_BELOW = re.compile(r"(?:\s?°\s?C?|\s\w+){0,2}\sbelow\s(?:zero|freezing)", re.IGNORECASE)
_AFTER = re.compile(r"[ \t]?-?[ \t]?(?P<unit>%|°|¢|€|a\.m\.|p\.m\.|[A-Za-z]+)")
_FRACTION = re.compile(r"(?<![\d/.])(\d{1,6})\s?/\s?(\d{1,6})(?![\d/])")


_LONG = 1000
"""Bits of a numerator or denominator beyond which a number is not written out: no float holds it."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, the unit behind (or the currency before) it ("" if none that is known), and whether it is weak."""

    value: Fraction
    unit: str = ""
    weak: bool = False

    def __str__(self) -> str:
        if max(self.value.numerator.bit_length(), self.value.denominator.bit_length()) > _LONG:
            number = "of very many digits"
        else:
            number = str(self.value) if self.value.denominator == 1 else f"{float(self.value):g}"
        return f"{number} {self.unit}".strip()


def quantities(text: str) -> list[Quantity]:
    """The numbers of a text, in their order."""
    found: list[Quantity] = []
    fractions = {match.start(1): match for match in _FRACTION.finditer(text) if int(match[2])}
    position = 0
    while match := _TOKEN.search(text, position):
        position = match.end()
        if match["digits"]:
            start = match.start("digits")
            # by way of Decimal: Python refuses to read an int of thousands of digits
            value = Fraction(Decimal(re.sub("[, \u00a0\u202f]", "", match["digits"])))
            if start in fractions:
                value = Fraction(int(fractions[start][1]), int(fractions[start][2]))
                position = fractions[start].end()
            scale = re.compile(r"\s(hundred|thousand|million|billion|dozen)\b", re.IGNORECASE).match(text, position)
            if scale:
                value, position = value * _SCALES[scale[1].lower()], scale.end()
            unit = UNITS[match["money"]] if match["money"] else _unit(text, position)
            found.append(Quantity(_signed(value, text, match.start(), position), unit))
            continue
        number, end, weak = _words(text, match)
        if number is not None:
            position = end
            signed = number if weak else _signed(number, text, match.start(), position)
            found.append(Quantity(signed, "" if weak else _unit(text, position), weak))
    return found


def units(text: str) -> set[str]:
    """The known units that a text names anywhere, abbreviations of one letter only behind a number."""
    words = re.findall(r"[$€£%°]|[A-Za-z]{2,}", text)
    return {UNITS[word.lower()] for word in words if word.lower() in UNITS} | {q.unit for q in quantities(text)} - {""}


def same(a: Quantity, b: Quantity) -> bool:
    """Whether two say the same number: equal, or one a percentage and the other its share (50 % and a half)."""
    if a.value == b.value:
        return True
    if (a.unit == "%") != (b.unit == "%"):
        percent, share = (a, b) if a.unit == "%" else (b, a)
        return percent.value == share.value * 100
    return False


def _signed(value: Fraction, text: str, start: int, end: int) -> Fraction:
    """Negative behind a minus sign (not a hyphen or the dash of a range) or before ``degrees below zero``."""
    return -value if _MINUS.search(text[max(0, start - 12) : start]) or _BELOW.match(text, end) else value


def _unit(text: str, position: int) -> str:
    match = _AFTER.match(text, position)
    return UNITS.get(match["unit"].lower(), "") if match else ""


def _words(text: str, first: re.Match[str]) -> tuple[Fraction | None, int, bool]:
    """The number that begins with this word: its value (None if there is none), where it ends, whether it is weak."""
    word = first["word"].lower()
    if word in _WHOLE:
        return _WHOLE[word], first.end(), False
    if word not in _SMALL and word not in _TENS and word not in _SCALES:
        part = _next_part(text, first.end()) if word in ("a", "an") else None
        if part is not None:
            return Fraction(1, part[0]), part[1], False
        return (Fraction(_WEAK[word]), first.end(), True) if word in _WEAK else (None, first.end(), False)
    # bare "hundreds" and "dozens" say no number
    total, current, end, seen = 0, 0, first.start(), ""
    for match in _run(text, first.start()):
        name = match.group().lower()
        if name == "and":
            if not seen or seen not in _SCALES:
                break
            continue
        if name in _SMALL:
            if seen in _SMALL or (seen in _TENS and not 0 < _SMALL[name] < 10):
                break
            current += _SMALL[name]
        elif name in _TENS:
            if seen in _SMALL or seen in _TENS:
                break
            current += _TENS[name]
        elif name in _SCALES:
            if name in ("hundred", "dozen", "dozens"):
                current = max(1, current) * _SCALES[name]
            else:
                total, current = total + max(1, current) * _SCALES[name], 0
        else:
            break
        seen, end = name, match.end()
    value = total + current
    part = _next_part(text, end)
    if part is not None and 0 < value < part[0] and word in _SMALL:
        return Fraction(value, part[0]), part[1], False
    return Fraction(value), end, value == 0 or (word == "one" and value == 1)


def _run(text: str, start: int) -> Iterator[re.Match[str]]:
    """Words that hang together by one space or hyphen."""
    pattern = re.compile(r"[A-Za-z]+")
    match = pattern.match(text, start)
    while match:
        yield match
        gap = re.compile(r"[ -]").match(text, match.end())
        match = pattern.match(text, gap.end()) if gap else None


def _next_part(text: str, end: int) -> tuple[int, int] | None:
    """A fraction's denominator in words right behind: (3, its end) of `` third`` or ``-thirds``."""
    match = re.compile(r"[ -](third|thirds|fourth|fourths|quarters|fifth|fifths|tenths)\b", re.IGNORECASE).match(
        text, end
    )
    return (_PARTS[match[1].lower()], match.end()) if match else None
