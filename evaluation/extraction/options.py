"""The options of one question, and how a phrase names one: by its letter, or by its text.

Everything here sees one phrase, or one line; which of a reply's phrases counts is ``choices``' affair.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, Literal

from evaluation.items import LETTERS

UNCLEAR: Final = "?"
"""An answer was given, and can't be read as one option."""

_QUOTES = " \"'`*“”„‟«»‹›「」『』‘’‚"
_WRAPPERS = re.compile(
    r"\\(?:text(?:bf|rm|it|sf|tt)?|math(?:rm|bf|it|sf|bb|cal)|mbox|textnormal|underline|boldsymbol|bm|emph|bf|rm)"
    r"\s?\{([^{}\n]{0,300})\}"
)
_DRESS = re.compile(
    r"\\[()\[\]]|\\(?:left|right|displaystyle|bf|rm)\b|[*`$✅✔☑👉➡\ufe0f]|__|~~|\\(?=[$%#&_ ])"
    r"|</?(?:b|i|strong|em|u|mark|code|p|br)\s?/?>"
)
SENTENCE = re.compile(r"(?<![.\s])[.!?。！？](?=\s|$|[\"'”’)*])|[。！？]")
# "B because A melts" and "B, not C" name B: what follows such a word is no longer the answer.
TURNS = re.compile(
    r"[\s,(;:–—-]\s?(?:because|since|as|not|rather|instead|while|whereas|though|although|which|where|due|given"
    r"|weil|da|nicht|denn|statt"
    r"|car|parce|puisque|et non|pas|porque|ya que|pues|no|так как|потому|поскольку|а не|perché|poiché|non)\b"
    r"|,?\s?(?:因为|因為|而不是|不是|而非|なぜなら|ので|왜냐하면)"
)
_FILLER = re.compile(
    r"(?:\s*(?:\b(?:clearly|therefore|thus|definitely|most|likely|probably|simply|indeed|obviously|actually"
    r"|hence|either|with"
    r"|option|options?|choice|letter|answer|statement|number|the|for|on|as|that|of|right|correct|one|is|it|be"
    r"|indicated by"
    r"|also|daher|somit|die|der|das|buchstabe|antwort|la|le|el|il|l['’](?:option|opzione)|lettre|a (?=letra"
    r"|opção|alternativa)|letra|lettera"
    r"|opción|opcion|opção|opzione|réponse|respuesta|donc|вариант|буква|под буквой|ответ|lựa chọn|pilihan)\b"
    r"|选项|選項|选择|選択肢|选|選|선택지|보기|번호|الخيار|الحرف|विकल्प|[:=\s(\[{\"'“„«‹「『‘<>_-]))*\s*",
    re.IGNORECASE,
)
_NOT_AFTER = r"(?![A-Za-z0-9À-ɏ_ʼ'’]|-[A-Za-z])"
_NOT_BEFORE = r"(?<![A-Za-z0-9À-ɏ_'’])(?<![A-Za-z]-)"
JOINED = r"(?:or|and|oder|und|ou|et|o|y|e|или|и|либо|atau|dan|hoặc|或者?|和|还是|還是|および|または|と|か|또는|와|과)"
# "A good question", French "A", Spanish "Y": words, unless a mark or the clause's end follows.
_WORDS = "AEIOUY"
_REFUSED = re.compile(
    r"\W*(?:none|neither|unknown|unclear|uncertain|n/?a|not (?:sure|given|possible|known|listed|enough)|cannot|can['’]t"
    r"|(?:i am|i['’]m|i do|i don|sorry)\b|all of|both|no (?:answer|correct|option)|there is no|insufficient"
    r"|undetermined)",
    re.IGNORECASE,
)
AFTER_DENIAL = re.compile(
    r"(?:\s?\([^()\n]{0,80}\))?[\s)\]\"'”.]*(?:ではな|ではあり|じゃな|でな|가 아니|이 아니|가 아닙|이 아닙"
    r"|是?不(?:对|正确|對|是)|是?错|是錯|错误"
    r"|(?:(?:is|was|does|ca|could|would|should)n['’]t\b|cannot\b|(?:is|was|seems|looks|can|could|would|does"
    r"|must|should)"
    r" (?:\w+ )?(?:not|never|wrong|incorrect|false|out|ruled|excluded|eliminated|impossible|be (?:ruled|excluded"
    r"|eliminated|wrong|incorrect|false)))\b|[:–—-]\s?(?:incorrect|wrong|false|not|no\b)|\s?\((?:incorrect|wrong|false)"
    r"|ist (?:nicht|falsch)|n['’]est pas|est (?:faux|fausse|incorrect)|no es|es (?:incorrect|fals)|не(?:верн"
    r"|правильн| )"
    r"|吗|嗎|(?:です)?か[?。]|입니까|인가"
    r"|\s(?:if|unless|wenn|falls|si|если)\b)|\s*\?",
    re.IGNORECASE,
)


def normalise(text: str) -> str:
    """For exact matches: NFKC, case folded, white space collapsed; quotation marks, full stops and exclamation marks at
    the ends removed."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return folded.strip(_QUOTES).rstrip(".!。！").strip(_QUOTES)


class Options:
    """The options of one question: their letters, and which of them a text is."""

    def __init__(self, choices: Sequence[str]) -> None:
        self.letters = LETTERS[: len(choices)]
        self.texts = [normalise(plain(choice)) for choice in choices]
        one = f"[{self.letters}]"
        any_case = f"[{self.letters}{self.letters.lower()}]"
        self.first = re.compile(rf"({any_case}){_NOT_AFTER}")
        self.alone = re.compile(rf"[\s(\[{{\"'“„«「『‘<_]*({any_case})[\s)\]}}\"'”“»」』’>_.:,;!。、]*")
        self.other = re.compile(rf"{_NOT_BEFORE}({one}){_NOT_AFTER}")
        self.line = re.compile(
            rf"[ \t(\[\"'“>#•-]*({any_case})(?!['’][A-Za-z])(?:[)\].:_\"'”。、,]+[ \t]*|[ \t]+[-–—][ \t]*|[ \t]*$)(.*)",
            re.DOTALL,
        )
        self.right = re.compile(
            rf"{_NOT_BEFORE}(?-i:({one}))[)\]\"'”.]*(?:\s?\([^()\n]{{0,80}}\))?\s?"
            r"(?:(?:is|was|seems|must\sbe|would\sbe|has\sto\sbe)\s(?:\w+\s)?"
            r"(?:correct|right|true|the\s(?:\w+\s)?(?:answer|option|choice|one))\b"
            r"|ist\s(?:\w+\s)?(?:richtig|korrekt|(?:die|der)\s(?:\w+\s)?(?:antwort|lösung|wahl|option))\b"
            r"|est\s(?:la\s)?(?:\w+\s)?(?:correcte?|juste|vraie?|exacte?|réponse|bonne)\b"
            r"|es\s(?:la\s)?(?:\w+\s)?(?:correct[ao]|respuesta|opción|verdader[ao])\b|(?:è|é)\s(?:la\s"
            r"|a\s)?(?:corret|risposta|resposta|giust)"
            r"|(?:—|-|является)?\s?(?:верн|правильн)\w{0,5}"
            r"|(?:选项|項)?(?:是|为|為)?(?:最)?(?:正确|正確|对的|對的)|が(?:正解|正しい|答え|最も適切)|を(?:選|選択)"
            r"|(?:번)?(?:이|가)?\s?(?:정답|답입|답이|맞|옳)|(?:번)?(?:을|를)\s?선택)",
            re.IGNORECASE,
        )

    def named_by(self, text: str) -> list[str]:
        """The letters of the options whose text this is, word for word. A single letter is a label, never a text."""
        said = normalise(text)
        if not said or (len(said) == 1 and said.upper() in self.letters):
            return []
        return [LETTERS[i] for i, choice in enumerate(self.texts) if choice == said]

    def text_of(self, letter: str) -> str:
        return self.texts[self.letters.index(letter)]


def plain(text: str) -> str:
    """A reply without its dress: LaTeX's and Markdown's wrappers, dollar signs, full-width forms."""
    text = unicodedata.normalize("NFKC", text)
    for _ in range(3):
        text = _WRAPPERS.sub(r"\1", text)
    return _DRESS.sub("", text)


def read_value(said: str, options: Options, kind: Literal["mark", "label", "sentence"]) -> str | None:
    """The letter that what follows an announcement names; UNCLEAR for several; None where it names nothing."""
    said = said.strip().strip("|").strip()
    exact = options.named_by(said.strip("{}[]()"))
    if len(exact) == 1:
        return exact[0]
    if kind != "sentence" and _REFUSED.match(said):
        return UNCLEAR
    start = _FILLER.match(said)
    body = said[start.end() if start else 0 :]
    first = options.first.match(body)
    if first is None or not is_letter(first, body, options):
        return _text_value(said, body, options, kind)
    letter, rest = first[1].upper(), body[first.end() :]
    if AFTER_DENIAL.match(rest):
        return UNCLEAR if kind == "mark" else None
    return second(letter, rest, options)


def _text_value(said: str, body: str, options: Options, kind: str) -> str | None:
    """An option's text where no letter is given: the whole, or up to the sentence's end."""
    for text in (body, said, *(SENTENCE.split(part, maxsplit=1)[0] for part in (body, said))):
        found = options.named_by(TURNS.split(text, maxsplit=1)[0].strip(" ,;:)]}"))
        if found:
            return found[0] if len(found) == 1 else UNCLEAR
    # "4 (option B)", "4, B"
    both = re.fullmatch(rf"(.{{1,200}}?)\s?[,(–-]\s?(?:option|choice|answer)?\s?\(?([{options.letters}])[).\s]*", body)
    if both and (found := options.named_by(both[1])):
        return both[2] if both[2] in found else UNCLEAR
    # a mark with something else in it is an answer that can't be read
    return UNCLEAR if kind == "mark" and body.strip() else None


def is_letter(match: re.Match[str], body: str, options: Options) -> bool:
    """Whether it is a label, not a word: lower case, and A or I before a word, need a mark of their own."""
    rest = body[match.end() :]
    lone = (
        not rest.strip(" .!?)]}\"'”’,;:。、\\")
        or rest[:1] in ").]:},"
        or bool(TURNS.match(rest))
        or bool(re.match(rf"\s{JOINED}\s|\s?[/&(=;–—|-]", rest))
    )
    if match[1].islower():
        return lone
    if match[1] in _WORDS and re.match(r"\s[^\W\d_]", rest) and not lone:
        own = options.text_of(match[1])
        return bool(own) and normalise(rest).startswith(own)
    return True


def second(letter: str, rest: str, options: Options) -> str:
    """The letter, or UNCLEAR where another one, or another option's text, stands beside it."""
    own = options.text_of(letter)
    bare = rest.strip(" \t)]}\"'”’.:,;-–—|_(")
    others = options.named_by(bare.rstrip(")"))
    if others:
        return letter if letter in others else UNCLEAR
    folded = normalise(bare)
    if own and folded.startswith(own):
        return UNCLEAR if _joined(folded[len(own) :], letter, options) else letter
    clause = SENTENCE.split(rest, maxsplit=1)[0]
    clause = TURNS.split(clause, maxsplit=1)[0]
    beside = options.named_by(clause.strip(" \t)]}\"'”’.:,;-–—|_("))
    if beside and letter not in beside:
        return UNCLEAR
    if re.search(r"\s(?:if|unless|wenn|falls|si|если)\s", clause):
        return UNCLEAR
    for match in options.other.finditer(clause):
        after = clause[match.end() :]
        article = match[1] in _WORDS and re.match(r"\s[^\W\d_]", after)
        joined = re.search(
            rf"(?:\b|\s|^){JOINED}\s?[(\[]?$|[/&,;(]\s?$", clause[max(0, match.start() - 12) : match.start()]
        )
        clause_of_its_own = joined and joined[0][:1] in ",;" and _VERB.match(after)
        if match[1] != letter and not clause_of_its_own and (joined or not article):
            return UNCLEAR
    small = re.match(rf"\s*(?:[/&,;]|(?:\(|,)?\s*{JOINED}\s)\s*\(?([{options.letters.lower()}])(?:\)|[.\s]*$)", clause)
    return UNCLEAR if small and small[1].upper() != letter else letter


def _joined(rest: str, letter: str, options: Options) -> bool:
    """Whether another option follows the text of the first: ``(C) bird or (D) stone``."""
    match = re.match(rf"\W{{0,3}}\b(?:{JOINED})\b\s?[(\[]?(?P<said>.+)", rest)
    if match is None:
        return False
    said = match["said"]
    labelled = re.match(rf"(?:option\s)?([{options.letters.lower()}])(?:[)\].:]|\Z)", said)
    return bool(labelled and labelled[1] != letter.lower()) or any(
        found != letter for found in options.named_by(SENTENCE.split(said, maxsplit=1)[0])
    )


_VERB = re.compile(
    r"\s?(?:选项|選項)?(?:是)?(?:错|錯|不)|\s(?:is|was|does|can|cannot|would|has|fails|ist|est|es|è|é)\b"
)
