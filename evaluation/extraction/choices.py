r"""Reading a chosen option out of a model's free reply. It never guesses; the rule is written down in docs/answers.md.

In this order: the last announced answer (``announcements``); else a reply whose first or last line is only an answer
(``B``, ``b. text``, ``It's (B).``, one option's text); else the one option that a statement calls right (``B is
correct``). Two options on one footing are no answer, nor is one that is denied, supposed, asked about or quoted. A
single letter always is an option's label, whatever the options' texts are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evaluation.extraction.announcements import announcements, prepared, retracted
from evaluation.extraction.options import (
    AFTER_DENIAL,
    JOINED,
    SENTENCE,
    TURNS,
    UNCLEAR,
    Options,
    is_letter,
    normalise,
    plain,
    read_value,
    second,
)
from evaluation.items import LETTERS

_LEAD = re.compile(
    r"(?:(?:well|so|okay|ok|yes|sure|therefore|thus|hence|certainly|also|daher|donc|por lo tanto|поэтому|итак|因此|所以"
    r"|따라서|したがって)\b[,:!.]?\s*)?(?:(?:i (?:think|believe|guess|would say|['’]?d say)|i['’]d say|in my opinion,?"
    r"|ich denke,?"
    r"|je pense que|creo que|думаю,?|我认为|我觉得)\s*(?:that\s)?)?"
    r"(?:it(?:['’]s|\sis)|that(?:['’]s|\sis|\swould\sbe)|this\sis|it\smust\sbe|must\sbe|es\sist|das\sist"
    r"|c['’]est|es|это)?\s?"
    r"(?:la |die |the )?(?:option|options|choice|answer|letter|antwort|réponse|respuesta|opción|ответ|вариант"
    r"|选项|選項|答案|選択肢)?[\s:]*",
    re.IGNORECASE,
)


def extract_choice(text: str, choices: Sequence[str], *, cut_off: bool = False) -> str | None:
    """The letter that the reply names, or None where it names no option or more than one.

    cut_off: the reply ended at its token limit: only what was announced, and surely whole, before the cut counts
    Only letters of the item's own options count: ``E`` is no answer to a question with four.
    """
    said = plain(prepared(text))
    options = Options(choices)
    named = _announced(said, options, cut_off)
    if named is None and not cut_off:
        named = _only_answer(said, options)
        if named is None:
            named = _statement(said, options)
    return None if named in (None, UNCLEAR) else named


def _announced(said: str, options: Options, cut_off: bool) -> str | None:
    """The last announcement that holds an option; UNCLEAR where that one gives two, refuses, or was taken back."""
    found = announcements(said)
    for place in reversed(range(len(found))):
        one = found[place]
        value = None if one.supposed else read_value(one.said, options, one.kind)
        if value is None:
            continue
        if one.otherwise or _listed_on(said[one.end :], value, options):
            return UNCLEAR
        if cut_off and not (one.closed or one.end < len(said) or _ends_whole(one.said)):
            # half of something: it says nothing, and nothing before it is the last word
            return UNCLEAR
        if retracted(said, one.end) or retracted(one.said, _first_sentence(one.said)):
            return UNCLEAR
        before = found[place - 1] if place else None
        if before and before.kind == "mark" and _JOINING.fullmatch(said[before.end : one.start]):
            # "\boxed{A} and \boxed{B}": one announcement of two answers
            return value if read_value(before.said, options, before.kind) == value else UNCLEAR
        return value
    return None


_JOINING = re.compile(rf"[$ \t,;/]*{JOINED}?[$ \t,;]*")


def _listed_on(rest: str, value: str, options: Options) -> bool:
    """Whether the next line is the option after the one read, word for word: the list of options was repeated."""
    match = options.line.fullmatch(rest.lstrip()[:400].partition("\n")[0])
    after = options.letters[options.letters.find(value) + 1 :][:1]
    return match is not None and match[1].upper() == after and normalise(match[2]) == options.text_of(after)


def _ends_whole(said: str) -> bool:
    """Whether a sentence, or a bracket, ends in it: what it names then can't be half a word."""
    return bool(SENTENCE.search(said)) or said.rstrip()[-1:] in set(")]}\"”'|")


def _first_sentence(said: str) -> int:
    match = SENTENCE.search(said)
    return match.start() if match else len(said)


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
        if AFTER_DENIAL.match(line[match.end(1) :]) or _denying(rest):
            return None if free else UNCLEAR
        # a line of a walk through the options counts as one of several; by itself only at the beginning
        return second(letter, " " + rest, options)
    lead = _LEAD.match(line)
    if lead and lead.end() and (first := options.first.match(line[lead.end() :].lstrip("([\"'“"))):
        body = line[lead.end() :].lstrip("([\"'“")
        rest = body[first.end() :]
        if is_letter(first, body, options) and not AFTER_DENIAL.match(rest):
            value = second(first[1].upper(), rest, options)
            short = not SENTENCE.split(TURNS.split(rest, maxsplit=1)[0], maxsplit=1)[0].strip(" .)]\"'”,:;–—-")
            own = normalise(rest.strip(" )]\"'”.:,;-–—(")).startswith(options.text_of(first[1].upper()) or "\0")
            return value if short or own or value == UNCLEAR else None
    if free and (first := options.first.match(line)) and first[1].isupper():
        rest = line[first.end() :]
        if AFTER_DENIAL.match(rest):
            return None
        turned = TURNS.match(rest)
        joined = re.match(rf"\s*(?:[/&,;]|{JOINED}\b)", rest)
        if turned or joined:
            return second(first[1], rest, options)
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
        partly = re.search(r"\s(?:not|never|n't|partially|partly|half|only|nicht|pas|no|не)\s", match[0])
        if _UNSURE.search(clause) or partly or re.match(r"\s*\?", said[match.end() :]):
            found.add(UNCLEAR)
        else:
            joined = re.search(rf"([{options.letters}])[)\]]?\s?(?:,|/|&|{JOINED})\s?(?:option\s)?\(?$", before)
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
