"""Principle p3 by code, and the options that stand in the way of it: those that speak of other options.

What names letters or places is told by its form, in the languages of the benchmarks that are read here. A doubtful case
(vitamins A and C, the fraction a/b) counts as one: an item that is not permuted is counted, one that is permuted
wrongly loses its key unseen.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from evaluation.items import LETTERS

_OTHERS = re.compile(
    r"\b(?:all|none|neither|any|both|each|some|two|more than one|one or more)\s+of\s+(?:the\s+)?"
    r"(?:above|these|those|them|following|other|others|options|choices|answers|preceding|previous|foregoing|listed)\b"
    r"|\b(?:everything|anything|nothing)\s+(?:above|listed)\b|^\W*(?:more\s+than\s+one|none)\s+(?:is|are|apply|applies|fits?|option)\b"
    r"|\bthe\s+above\b|\babove\s+(?:options|choices|answers|statements)\b|^\W*(?:all|none|both|neither|either)\W*$"
    r"|\b(?:alle|keine[sr]?|beide)\s+(?:der\s+)?(?:oben|obigen|genannten|vorherigen|anderen|antworten|optionen)\b"
    r"|\b(?:toutes|aucune|tous|aucun)\b.{0,12}\b(?:ci-dessus|réponses|propositions|précédentes?)\b"
    r"|\b(?:todas|ninguna|todos|ninguno)\s+(?:de\s+)?(?:las|los)\s+(?:anteriores|opciones|respuestas)\b"
    r"|\b(?:todas|nenhuma|nenhum|tutte|tutti|nessuna|nessuno)\s+(?:(?:le|i|delle|dei|as|os|das|dos)\s+)?"
    r"(?:precedenti|anteriores|opzioni|risposte|opções|respostas|alternativas)\b"
    r"|^\W*(?:(?:toutes\s+)?les\s+deux|entramb[ei]|ambas|ambos|geen\s+van|alle\s+bovenstaande|hepsi|hiçbiri|оба|обе)\b"
    r"|нет\s+(?:правильн|верн)\w+\s+ответ|все\s+ответы|powyższych|tất\s+cả|ما\s+سبق|उपरोक्त"
    r"|上面|上列|^\W*(?:全部|全都|两者|兩者|二者|都)|どれでもない|いずれで?も|どちらも|^\W*(?:すべて|全て)"
    r"|둘\s*다|해당\s*없음|^\W*모두"
    r"|вышеперечисленн|перечисленн|вышеуказанн|ни\s+один\s+из|以上|上述|上記|위의?\s*(?:모두|보기)",
    re.IGNORECASE,
)


class Permuted(NamedTuple):
    """The options in their new order, the index of the key among them, and where each came from."""

    choices: tuple[str, ...]
    answer: int
    order: tuple[int, ...]


def refers_to_others(choice: str) -> bool:
    """Whether an option speaks of the others together: ``all of the above``, ``none of these``, ``both``."""
    return _OTHERS.search(choice) is not None


def names_letters(choice: str, options: int) -> bool:
    """Whether an option may name others by letter: ``both A and C``, ``A/B``, ``A through C``, ``A和B``, ``a or b``,
    ``(a) and (b)``, ``option D``, ``Not A``, or a letter alone."""
    return _letters(options).search(unicodedata.normalize("NFKC", choice)) is not None


def names_positions(choice: str) -> bool:
    """Whether an option may name others by their places: ``the first two options``, ``the latter``, ``option 3``,
    ``the previous answer``, ``前两项``."""
    return _POSITIONS.search(unicodedata.normalize("NFKC", choice)) is not None


_NOUN = (
    r"(?:options?|choices?|answers?|responses?|alternatives?|optionen|antwort(?:en)?|r[ée]ponses?|opci[oó]n(?:es)?|"
    r"respuestas?|вариант\w*|ответ\w*)"
)
_PLACE = (
    r"(?:first|second|third|fourth|fifth|last|next|previous|preceding|following|other|former|latter|top|bottom|"
    r"1st|2nd|3rd|4th|5th|erste[nrs]?|zweite[nrs]?|dritte[nrs]?|letzte[nrs]?|vorige[nrs]?|premi[eè]re?s?|deuxi[eè]mes?|"
    r"derni[eè]re?s?|primer[ao]?s?|segund[ao]s?|[uú]ltim[ao]s?|перв\w+|втор\w+|последн\w+)"
)
_COUNT = r"(?:one|two|three|four|five|few|both|\d|beiden?|zwei|drei|deux|trois|dos|tres|два|две|три)"
_AND = r"\s*(?:,|\band\b|\bor\b|\bund\b|\boder\b|\bet\b|\bou\b|\by\b|\bo\b|\bи\b|\bили\b)\s*(?:the\s+)?"
_THE = r"(?:the|die|les|las|los)"
_POSITIONS = re.compile(
    rf"\b{_PLACE}(?:{_AND}{_PLACE})*(?:\s+{_COUNT})?\s+(?:of\s+the\s+)?{_NOUN}\b"
    rf"|\b{_THE}\s+{_PLACE}(?:{_AND}{_PLACE})*\s+{_COUNT}\W*$"
    rf"|\b{_THE}\s+{_COUNT}\s+{_PLACE}\W*$|\b{_THE}\s+{_COUNT}\s+(?:{_PLACE}\s+)?{_NOUN}\b"
    rf"|\b(?:{_COUNT}|{_NOUN})\s+(?:above|below|oben|unten|ci-dessus)\b"
    rf"|^\W*(?:(?:only|both|just|not|neither)\s+)?{_THE}\s+{_PLACE}(?:{_AND}{_PLACE})*\W*$"
    rf"|\b{_NOUN}\s*(?:no\.?|number|nr\.?|#)?\s*(?:\d+|[ivx]+)\b"
    r"|前[两二三四幾几][项項个個者]|[后後][两二三][项項个個者]|[前后後]者|最初の|最後の"
    r"|^\W*(?:第[一二三四五1-5]|最[后後]一|[上下前后後]一?)[个個项項种種](?:选项|選項|答案)?\W*$",
    re.IGNORECASE,
)


@cache
def _letters(options: int) -> re.Pattern[str]:
    """How letters are named, of so many options. Small letters only where two stand together: ``a`` is an article."""
    upper, lower = LETTERS[:options], LETTERS[:options].lower()
    start, end = r"(?<![A-Za-z0-9_'’])", r"(?![A-Za-z0-9_'’])"
    one = rf"(?:[(\[]?[{upper}][)\]]|[(\[][{lower}][)\]]|[{upper}]\.?){end}"
    small = rf"[(\[]?[{lower}][)\]]?{end}"
    words = r"and|or|nor|als\s+auch|but\s+not|not|to|through|thru|plus|with|und|oder|noch|bis|sowie|et|ou|ni|à|y|e|o|u"
    words += r"|al|и|или|до"
    signs = r"[&,/;+~|、，；]|\.{2,3}|…|[-‐‑‒–—−]|[和与與及或到至并跟と]|や|から|와|과|및|또는"
    join = (
        rf"\s*(?:,\s*)?(?:(?<![A-Za-z])(?:{words})(?![A-Za-z])|{signs})\s*(?:(?:and|or|not|only|options?|choices?)\s+)?"
    )
    before = (
        r"options?|choices?|answers?|only|just|except|but|as|than|not|neither|either|both|nur|nicht|au(?:ß|ss)er|sauf|"
        r"seulement|s[oó]lo|excepto|no|non|только|не|кроме"
    )
    forms = [
        rf"{start}{one}(?i:{join}){one}",
        rf"{start}{small}(?i:{join}){small}",
        rf"(?i:\b(?:{before}))\s+(?i:(?:options?|choices?)\s+)?{one}\W*$",
        rf"(?i:\b(?:options?|choices?|answers?|both|not|only|but|except))\s+{small}\W*$",
        rf"[非不除仅只僅选選项項]\s*(?:了|有|是)?\s*{one}",
        rf"{start}{one}\s*(?:选项|選項|项|項|都|以外|のみ|だけ|만)",
        rf"^\W*{one}\s+(?i:only|alone|is|are|above|nur|seulement|s[oó]lo|только)\b",
        rf"^\W*(?:[{upper}{lower}]|[{upper}]{{2,}})\W*$",
    ]
    return re.compile("|".join(forms))


def speaks_of_others(choice: str, options: int) -> bool:
    """Whether an option speaks of other options in any of these ways."""
    return refers_to_others(choice) or names_letters(choice, options) or names_positions(choice)


def obstacle(choices: Sequence[str]) -> str:
    """Why options can't be added to these: an option speaks of others. "" if none does."""
    for letter, choice in zip(LETTERS, choices, strict=False):
        if speaks_of_others(choice, len(choices)):
            return f"option {letter} ({choice!r:.60}) speaks of other options"
    return ""


def permute(choices: Sequence[str], answer: int, seed: int) -> Permuted | str:
    """The options in another order, drawn with the seed among all orders but the present one; or why that can't be.

    An option that speaks of the others together keeps its place, and those above it stay above it. Where an option
    names others by letter or by place nothing is moved. Indices are moved, not texts: an option that stands there twice
    does no harm. answer: the key's index.
    """
    named = next((choice for choice in choices if names_letters(choice, len(choices))), None)
    if named is not None:
        return f"the option {named!r:.60} names others by letter"
    placed = next((choice for choice in choices if names_positions(choice)), None)
    if placed is not None:
        return f"the option {placed!r:.60} names others by their places"
    segments: list[list[int]] = [[]]
    for index, choice in enumerate(choices):
        if refers_to_others(choice):
            segments.append([])
        else:
            segments[-1].append(index)
    if all(len(segment) < 2 for segment in segments):
        return "there are no two options that can change places"
    generator = random.Random(seed)  # noqa: S311 - a draw, not a secret
    identity = list(range(len(choices)))
    order = identity
    while order == identity:
        order = identity.copy()
        for segment in segments:
            drawn = segment.copy()
            generator.shuffle(drawn)
            for place, source in zip(segment, drawn, strict=True):
                order[place] = source
    return Permuted(tuple(choices[source] for source in order), order.index(answer), tuple(order))
