r"""Reading a chosen option out of a model's free reply. It never guesses; the rule is written down in docs/answers.md.

In this order: the last announced answer (``announcements``); else a reply whose first or last line is only an answer
(``B``, ``b. text``, ``It's (B).``, one option's text); else the one option that a statement calls right (``B is
correct``). Two options on one footing are no answer, nor is one that is denied, supposed, asked about or quoted. A single
letter always is an option's label, whatever the options' texts are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, Literal

from evaluation.extraction.announcements import announcements, prepared, retracted
from evaluation.items import LETTERS

UNCLEAR: Final = "?"
"""An answer was given, and can't be read as one option."""

_QUOTES = " \"'`*“”„‟«»‹›「」『』‘’‚"
_WRAPPERS = re.compile(
    r"\\(?:text(?:bf|rm|it|sf|tt)?|math(?:rm|bf|it|sf|bb|cal)|mbox|textnormal|underline|boldsymbol|bm|emph|bf|rm)"
    r"\s?\{([^{}\n]{0,300})\}"
)
_DRESS = re.compile(
    r"\\[()\[\]]|\\(?:left|right|displaystyle|bf|rm)\b|[*`$]|__|~~|\\(?=[$%#&_])|</?(?:b|i|strong|em|u|mark"
    r"|code|p|br)\s?/?>"
)
_SENTENCE = re.compile(r"(?<=[^.\s])[.!?。！？](?=\s|$|[\"'”’)*])|[。！？]")
# "B because A melts" and "B, not C" name B: what follows such a word is no longer the answer.
_TURNS = re.compile(
    r"[\s,(;:–—-]\s?(?:because|since|as|not|rather|instead|while|whereas|which|where|due|given|weil|da|nicht|denn|statt"
    r"|car|parce|puisque|et non|pas|porque|ya que|pues|no|так как|потому|поскольку|а не|perché|poiché|non)\b"
    r"|,?\s?(?:因为|因為|而不是|不是|而非|なぜなら|ので|왜냐하면)"
)
_FILLER = re.compile(
    r"(?:\s*(?:\b(?:clearly|therefore|thus|definitely|most|likely|probably|simply|indeed|obviously|actually"
    r"|hence|either|with"
    r"|option|options?|choice|letter|answer|statement|number|the|for|on|as|that|of|right|correct|one|is|it|be"
    r"|indicated by"
    r"|also|daher|somit|die|der|das|buchstabe|antwort|la|le|el|il|l['’](?:option|opzione)|lettre|letra|lettera"
    r"|opción|opcion|opção|opzione|réponse|respuesta|donc|вариант|буква|под буквой|ответ|lựa chọn|pilihan)\b"
    r"|选项|選項|选择|選択肢|选|選|선택지|보기|번호|الخيار|الحرف|विकल्प|[:=\s(\[{\"'“„«‹「『‘<>_-]))*\s*",
    re.IGNORECASE,
)
_NOT_AFTER = r"(?![A-Za-z0-9À-ɏ_ʼ'’]|-[A-Za-z])"
_NOT_BEFORE = r"(?<![A-Za-z0-9À-ɏ_'’])(?<![A-Za-z]-)"
_JOINED = r"(?:or|and|oder|und|ou|et|o|y|e|или|и|либо|atau|dan|hoặc|或者?|和|还是|還是|および|または|と|か|또는|와|과)"
# "A good question", French "A", Spanish "Y": words, unless a mark or the clause's end follows.
_WORDS = "AEIOUY"
_REFUSED = re.compile(
    r"\W*(?:none|neither|unknown|unclear|uncertain|n/?a|not (?:sure|given|possible|known|listed|enough)|cannot|can['’]t"
    r"|(?:i am|i['’]m|i do|i don|sorry)\b|all of|both|no (?:answer|correct|option)|there is no|insufficient"
    r"|undetermined)",
    re.IGNORECASE,
)
_AFTER_DENIAL = re.compile(
    r"(?:\s?\([^()\n]{0,80}\))?[\s)\]\"'”.]*(?:ではな|ではあり|じゃな|でな|가 아니|이 아니|가 아닙|이 아닙|是?不(?:对|正确|對|是)|是?错|是錯|错误"
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
_LEAD = re.compile(
    r"(?:(?:well|so|okay|ok|yes|sure|therefore|thus|hence|certainly|also|daher|donc|por lo tanto|поэтому|итак|因此|所以"
    r"|따라서|したがって)\b[,:!.]?\s*)?(?:(?:i (?:think|believe|guess|would say|['’]?d say)|i['’]d say|in my opinion,?"
    r"|ich denke,?"
    r"|je pense que|creo que|думаю,?|我认为|我觉得)\s*(?:that\s)?)?"
    r"(?:it(?:['’]s|\sis)|that(?:['’]s|\sis|\swould\sbe)|this\sis|it\smust\sbe|must\sbe|es\sist|das\sist"
    r"|c['’]est|es|это"
    r"|option|options|choice|answer|letter|antwort|réponse|respuesta|opción|ответ|вариант|选项|選項|答案|選択肢)?[\s:]*",
    re.IGNORECASE,
)


def extract_choice(text: str, choices: Sequence[str], *, cut_off: bool = False) -> str | None:
    """The letter that the reply names, or None where it names no option or more than one.

    cut_off: the reply ended at its token limit: only what was announced, and surely whole, before the cut counts
    Only letters of the item's own options count: ``E`` is no answer to a question with four.
    """
    said = _plain(prepared(text))
    options = Options(choices)
    named = _announced(said, options, cut_off)
    if named is None and not cut_off:
        named = _only_answer(said, options)
        if named is None:
            named = _statement(said, options)
    return None if named in (None, UNCLEAR) else named


def normalise(text: str) -> str:
    """For exact matches: NFKC, case folded, white space collapsed; quotation marks, a full stop and exclamation marks at
    the ends removed."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return folded.strip(_QUOTES).rstrip(".!。！").strip(_QUOTES)


class Options:
    """The options of one question: their letters, and which of them a text is."""

    def __init__(self, choices: Sequence[str]) -> None:
        self.letters = LETTERS[: len(choices)]
        self.texts = [normalise(_plain(choice)) for choice in choices]
        one = f"[{self.letters}]"
        any_case = f"[{self.letters}{self.letters.lower()}]"
        self.first = re.compile(rf"({any_case}){_NOT_AFTER}")
        self.alone = re.compile(rf"[\s(\[{{\"'“„«「『‘<_]*({any_case})[\s)\]}}\"'”“»」』’>_.:,;!。、]*")
        self.other = re.compile(rf"{_NOT_BEFORE}({one}){_NOT_AFTER}")
        self.line = re.compile(
            rf"[ \t(\[\"'“>#•-]*({any_case})(?:[)\].:_\"'”。、,]+[ \t]*|[ \t]+[-–—][ \t]*|[ \t]*$)(.*)", re.DOTALL
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


def _plain(text: str) -> str:
    """A reply without its dress: LaTeX's and Markdown's wrappers, dollar signs, full-width forms."""
    text = unicodedata.normalize("NFKC", text)
    for _ in range(3):
        text = _WRAPPERS.sub(r"\1", text)
    return _DRESS.sub("", text)


def _announced(said: str, options: Options, cut_off: bool) -> str | None:
    """The last announcement that holds an option; UNCLEAR where that one gives two, refuses, or was taken back."""
    found = announcements(said)
    for place in reversed(range(len(found))):
        one = found[place]
        value = _value(one.said, options, one.kind)
        if value is None:
            continue
        if cut_off and not (one.closed or one.end < len(said) or _ends_whole(one.said)):
            # half of something: it says nothing, and nothing before it is the last word
            return UNCLEAR
        if retracted(said, one.end) or retracted(one.said, _first_sentence(one.said)):
            return UNCLEAR
        before = found[place - 1] if place else None
        if before and before.kind == "mark" and _JOINING.fullmatch(said[before.end : one.start]):
            # "\boxed{A} and \boxed{B}": one announcement of two answers
            return value if _value(before.said, options, before.kind) == value else UNCLEAR
        return value
    return None


_JOINING = re.compile(rf"[$ \t,;/]*{_JOINED}?[$ \t,;]*")


def _ends_whole(said: str) -> bool:
    """Whether a sentence, or a bracket, ends in it: what it names then can't be half a word."""
    return bool(_SENTENCE.search(said)) or said.rstrip()[-1:] in set(")]}\"”'|")


def _first_sentence(said: str) -> int:
    match = _SENTENCE.search(said)
    return match.start() if match else len(said)


def _value(said: str, options: Options, kind: Literal["mark", "label", "sentence"]) -> str | None:
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
    if first is None or not _is_letter(first, body, options):
        return _text_value(said, body, options, kind)
    letter, rest = first[1].upper(), body[first.end() :]
    if _AFTER_DENIAL.match(rest):
        return UNCLEAR if kind == "mark" else None
    return _second(letter, rest, options)


def _text_value(said: str, body: str, options: Options, kind: str) -> str | None:
    """An option's text where no letter is given: the whole, or up to the sentence's end."""
    for text in (body, said, *(_SENTENCE.split(part, maxsplit=1)[0] for part in (body, said))):
        found = options.named_by(_TURNS.split(text, maxsplit=1)[0].strip(" ,;:)]}"))
        if found:
            return found[0] if len(found) == 1 else UNCLEAR
    # a mark with something else in it is an answer that can't be read
    return UNCLEAR if kind == "mark" and body.strip() else None


def _is_letter(match: re.Match[str], body: str, options: Options) -> bool:
    """Whether it is a label, not a word: lower case, and A or I before a word, need a mark of their own."""
    rest = body[match.end() :]
    lone = (
        not rest.strip(" .!?)]}\"'”’,;:。、\\")
        or rest[:1] in ").]:},"
        or bool(_TURNS.match(rest))
        or bool(re.match(rf"\s{_JOINED}\s|\s?[/&(=;–—|-]", rest))
    )
    if match[1].islower():
        return lone
    if match[1] in _WORDS and re.match(r"\s[^\W\d_]", rest) and not lone:
        own = options.text_of(match[1])
        return bool(own) and normalise(rest).startswith(own)
    return True


def _second(letter: str, rest: str, options: Options) -> str:
    """The letter, or UNCLEAR where another one, or another option's text, stands beside it."""
    own = options.text_of(letter)
    bare = rest.strip(" \t)]}\"'”’.:,;-–—|_(")
    others = options.named_by(bare.rstrip(")"))
    if others:
        return letter if letter in others else UNCLEAR
    folded = normalise(bare)
    if own and folded.startswith(own):
        return letter
    clause = _SENTENCE.split(rest, maxsplit=1)[0]
    clause = _TURNS.split(clause, maxsplit=1)[0]
    beside = options.named_by(clause.strip(" \t)]}\"'”’.:,;-–—|_("))
    if beside and letter not in beside:
        return UNCLEAR
    if re.search(r"\s(?:if|unless|wenn|falls|si|если)\s", clause):
        return UNCLEAR
    for match in options.other.finditer(clause):
        after = clause[match.end() :]
        article = match[1] in _WORDS and re.match(r"\s[^\W\d_]", after)
        joined = re.search(
            rf"(?:\b|\s|^){_JOINED}\s?[(\[]?$|[/&,;(]\s?$", clause[max(0, match.start() - 12) : match.start()]
        )
        clause_of_its_own = joined and joined[0][:1] in ",;" and _VERB.match(after)
        if match[1] != letter and not clause_of_its_own and (joined or not article):
            return UNCLEAR
    small = re.match(rf"\s*(?:[/&,;]|(?:\(|,)?\s*{_JOINED}\s)\s*\(?([{options.letters.lower()}])(?:\)|[.\s]*$)", clause)
    return UNCLEAR if small and small[1].upper() != letter else letter


_VERB = re.compile(r"\s(?:is|was|does|can|cannot|would|has|fails|ist|est|es|è|é)\b")


def _only_answer(said: str, options: Options) -> str | None:
    """A reply whose first or last line is only an answer, while no line is another one.

    Lines that repeat the whole list of options are left out first: small models do that before they answer.
    """
    whole = options.named_by(said)
    if whole:
        return whole[0] if len(whole) == 1 else UNCLEAR
    lines = [line.strip() for line in _without_echo(said, options).split("\n") if line.strip()]
    if not lines:
        return None
    given = [_line_value(line, options, free=i == 0 or len(lines) == 1) for i, line in enumerate(lines)]
    found = {value for value in given if value}
    if len(found) > 1:
        return UNCLEAR
    if not found:
        return None
    return found.pop() if given[0] or given[-1] else None


def _line_value(line: str, options: Options, free: bool) -> str | None:
    """The letter of a line that is an answer; free: it may be followed by other words than the option's own."""
    line = line.strip("| \t")
    alone = options.alone.fullmatch(line)
    if alone:
        return alone[1].upper()
    exact = options.named_by(line)
    if exact:
        return exact[0] if len(exact) == 1 else UNCLEAR
    match = options.line.fullmatch(line)
    if match and not (match[1].islower() and not free):
        letter, rest = match[1].upper(), match[2]
        if _AFTER_DENIAL.match(line[match.end(1) :]) or _denying(rest):
            return None if free else UNCLEAR
        # a line of a walk through the options counts as one of several; by itself only at the beginning
        return _second(letter, " " + rest, options)
    lead = _LEAD.match(line)
    if lead and lead.end() and (first := options.first.match(line[lead.end() :].lstrip("([\"'“"))):
        body = line[lead.end() :].lstrip("([\"'“")
        rest = body[first.end() :]
        if _is_letter(first, body, options) and not _AFTER_DENIAL.match(rest):
            value = _second(first[1].upper(), rest, options)
            short = not _SENTENCE.split(_TURNS.split(rest, maxsplit=1)[0], maxsplit=1)[0].strip(" .)]\"'”,:;–—-")
            own = normalise(rest.strip(" )]\"'”.:,;-–—(")).startswith(options.text_of(first[1].upper()) or "\0")
            return value if short or own or value == UNCLEAR else None
    if free and (first := options.first.match(line)) and first[1].isupper():
        rest = line[first.end() :]
        turned = _TURNS.match(rest)
        joined = re.match(rf"\s*(?:[/&,;]|{_JOINED}\b)", rest)
        if turned or joined:
            return _second(first[1], rest, options)
    return None


def _denying(rest: str) -> bool:
    return bool(
        re.match(
            r"\W*(?:(?:incorrect|wrong|false|not(?!\s\(?(?-i:[A-Z])\b)|no|never|falsch|nicht|faux|incorrecto"
            r"|falso|неверно|неправильно|нет)\b"
            r"|(?:this|it|that|the \w+)\s(?:\w+\s)?(?:(?:does|is|ca|would|could|do)(?:n['’]t|\snot)\b|(?:is|was"
            r"|seems)\s(?:\w+\s)?"
            r"(?:wrong|incorrect|false|too)\b|cannot\b|fails\b)|错|不)",
            rest,
            re.IGNORECASE,
        )
    )


def _statement(said: str, options: Options) -> str | None:
    """The only option that a statement calls right."""
    found = set()
    for match in options.right.finditer(said):
        before = said[max(0, match.start() - 60) : match.start()]
        clause = re.split(r"[.;!?\n。]|,\s(?:so|but|then)\b", before)[-1]
        # "if A is correct", "whether B is right", "B is not the answer"; "A and B are right"
        if _UNSURE.search(clause) or re.search(r"\s(?:not|never|n't|partially|partly|half|only)\s", match[0]) or re.match(r"\s*\?", said[match.end() :]):
            found.add(UNCLEAR)
        else:
            joined = re.search(rf"([{options.letters}])[)\]]?\s?(?:,|/|&|{_JOINED})\s?(?:option\s)?\(?$", before)
            found.update({match[1].upper()} | ({joined[1]} if joined else set()))
    return found.pop() if len(found) == 1 else None


_UNSURE = re.compile(
    r"\b(?:if|whether|suppose|assume|unless|not|why|neither|nor|might|think that if|wenn|falls|ob|si|если|ли)\b"
    r"|n['’]t\b|如果|假设|もし|만약",
    re.IGNORECASE,
)


def _without_echo(said: str, options: Options) -> str:
    """The reply without the lines that repeat the list of options, if it repeats all of them in their order."""
    listed = {f"{LETTERS[i].lower()}{text}": i for i, text in enumerate(options.texts)}
    lines = said.split("\n")

    def which(line: str) -> int | None:
        match = options.line.fullmatch(line.strip())
        return listed.get(match[1].lower() + normalise(match[2])) if match else None

    echoed = [which(line) for line in lines]
    if {i for i in echoed if i is not None} != set(range(len(options.texts))):
        return said
    return "\n".join(line for line, i in zip(lines, echoed, strict=True) if i is None)
