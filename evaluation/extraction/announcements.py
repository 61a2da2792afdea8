r"""Where a reply announces its answer: the marks, labels and sentences, in the languages that models answer in.

A mark encloses the answer (``\boxed{B}``, ``<answer>B</answer>``, ``#### 42``, ``{"answer": "B"}``), a label stands
before it (``Answer: B``, ``Antwort: B``), a sentence leads to it (``the correct option is B``, ``答案是 B``). What is
denied (``the wrong answer is``), supposed (``if the answer is``), asked (``is the answer B?``) or quoted is none.
Every pattern is linear: a repetition is bounded, or can't begin at two places of one run.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["mark", "label", "sentence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """One announcement.

    start: where its phrase begins; end: where ``said`` ends
    said: what follows the phrase on its line (the next line, where nothing does), or what a mark encloses
    closed: whether a mark's end was written, so that nothing of it can be missing
    supposed: whether its sentence begins with a condition: ``if it swims, the answer is A``
    otherwise: whether it is what holds if a condition does not: it and what stands before it cancel out
    """

    kind: Kind
    start: int
    end: int
    said: str
    closed: bool = False
    supposed: bool = False
    otherwise: bool = False


_SPACE = r"[^\S\n]"
_NOUN = (
    r"\b(?:answer|ans|antwort|lösung|r[ée]ponse|respuesta|soluci[oó]n|risposta|resposta|antwoord|odpowiedź|cevap|yanıt"
    r"|jawaban(?:nya)?|răspuns(?:ul)?(?: corect)?|bon choix|svaret|svar|ответ|вариант|đáp án"
    r"|उत्तर)\b|(?:الإجابة|الجواب)(?: الصحيحة| الصحيح)?"
    r"|答案|答え|解答|回答|正解|正答|(?:정답|답변|답안|답)(?=[은는이:\s=])"
    r"|\b(?:correct|right|best|true|final|my|only|appropriate|valid)[ ](?:option|choice|letter|statement|result"
    r"|pick|guess|selection)\b|\b(?:richtige|korrekte)[ ](?:option|aussage|wahl)\b|\b(?:richtig"
    r"|korrekt)(?=[ ]ist[ ])|\b(?:bonne|juste)[ ]option\b"
    r"|\b(?:option|proposition|opción|alternativa|opção|opzione|scelta)[ ](?:correcte|exacte|correcta|correta"
    r"|corretta)\b"
    r"|(?:正确|正確)(?:的)?(?:选项|選項)|正しい(?:選択肢|もの)|(?:올바른|맞는|옳은)[ ](?:선택지|보기|것)"
)
# "the correct answer to this question is", "la réponse correcte est", "answer choice is", "answer (final):"
_AFTER_NOUN = (
    rf"(?:{_SPACE}{{1,3}}(?:choice|option|letter|key|correcte|exacte|correcta|correta|corretta|final|finale|here|then"
    rf"|therefore|thus|benar|đúng|poprawna|doğru|сам))?"
    rf"(?:{_SPACE}?\([^()\n]{{0,30}}\))?(?:{_SPACE}(?:to|for|among|of|from|in|zu|à|a la|auf|на)\b[^\n.:;?!=]{{0,80}}?)?"
)
_LINK = (
    r"(?::|】:?|под буквой|=(?!=)|[-–—](?=\s)|\b(?:is|was|would be|must be|should be|will be|has to be|equals"
    r"|ist|lautet|wäre|est|este|es|é"
    r"|è|sería|seria|jest|to|adalah|là|это|будет|являет\w{0,5}|är|er)\b(?:\s?:)?|(?:هي|هو)(?:\s?:)?"
    r"|(?:应该|應該|应当|应|應)?(?:是|为|為|选|選)(?:\s?:)?|は|은|는|(?<=[の])が)"
)
_LABEL_NOUN = (
    r"\b(?:option|choice|result|verdict|conclusion|ergebnis|résultat|resultado|результат|total)\b|結論|结论|结果|選択肢"
)
_SELF = (
    r"\bI(?:['’]d|['’]ll|['’]m| would| will| am)?(?: (?:therefore|thus|also|still|probably|most likely|definitely|going"
    r" to|then))?"
    r" (?:pick|choose|select|go for|go with|going with|going for|opt for|guess|vote for|settle on|answer)\b"
    r"|\bI (?:pick|chose|choose|select)\b|(?<=[,.] )(?:choose|select|pick)\b|^(?:choose|select|pick)\b"
    r"|\bich (?:würde|wähle|nehme|tippe auf|entscheide mich für)\b|\bje (?:choisis|choisirais|dirais|prends"
    r"|sélectionne)\b"
    r"|\b(?:elijo|elegiría|escojo|escogería|escolho|scelgo)\b|\b(?:я )?(?:выбираю|выбрал(?:а)? бы|бы выбрал(?:а)?)\b"
    r"|(?:[应故此以该题,。]|因此|所以|综上)(?:我)?[选選](?:择|擇)?|^(?:我)?(?:会)?[选選](?:择|擇)?|我(?:会)?[选選](?:择|擇)?"
)
_PHRASE = re.compile(
    rf"(?P<label>(?:{_NOUN}){_AFTER_NOUN}[\s*_]{{0,4}}{_LINK}|\bans\.|(?:{_LABEL_NOUN})[*_]{{0,3}}{_SPACE}?:)"
    rf"|(?P<heading>^{_SPACE}{{0,3}}(?:#{{1,6}}{_SPACE}{{1,3}})?[*_]{{0,3}}(?:(?:final|correct|the|richtige"
    rf"|finale)[ ]){{0,2}}"
    rf"(?:{_NOUN})[*_]{{0,3}}{_SPACE}{{0,3}}$)"
    rf"|(?P<json>[\"'](?:(?:final|correct|selected|chosen|my|the|your)[ _-]?)?(?:answer|choice|option|label"
    rf"|letter|prediction"
    rf"|antwort|答案)(?:[ _-]?(?:letter|choice|option|key|index))?[\"']{_SPACE}?:)"
    rf"|(?P<self>{_SELF})",
    re.IGNORECASE | re.MULTILINE,
)
_TAG = re.compile(
    r"<\s?(?:final_?|correct_?)?(?:answer|ans|choice)\s?>(?P<said>[^<]{0,2000})(?P<close><)?", re.IGNORECASE
)
_HASHES = re.compile(r"^(?P<quote>[ \t>]{0,4})####(?!#)[ \t]{0,9}(?P<said>[^\n]{1,400})", re.MULTILINE)
_BOX = re.compile(r"\\(?:boxed|fbox)\s?\{")
_BARE_BOX = re.compile(r"\\boxed ?([A-Za-z0-9])(?![A-Za-z0-9])")
_BOX_LENGTH = 400
MOST = 100
"""How many announcements of one reply are read; a hostile reply may hold thousands."""

# Denied, supposed, or somebody else's: in the words of the same clause before the phrase.
_DENIED = re.compile(
    r"\b(?:if|suppose|supposing|assume|assuming|unless|whether|wrong|incorrect|false|worst|not|never|neither|nor"
    r"|(?:do|does|did|is|was|ca|could|would|should|wo)n['’]t|cannot|your|his|her|their|student['’]?s?|user['’]?s?"
    r"|someone|eliminate|exclude|might|could|may|tempting|previous|another|why would|(?:people|students|some|others"
    r"|they|many|most|you|one|every(?:one|body))(?: (?:might|would|may|will|often|wrongly))?"
    r" (?:think|say|believe|assume|claim)s?|pretend|imagine|say that|unlikely|impossible|improbable|second[ -]best"
    r"|(?<!no )(?<!a )(?<!any )(?<!beyond )doubt(?:ful)?|says|thinks|believes|claims|assumes"
    r"|[a-z]{2,20}s (?:say|think|believe|claim|assume)|(?:probability|chance|likelihood|odds|possibility)(?: that"
    r"|(?= (?:the )?(?:correct |right )?\Z))"
    r"|könnten?|pourrai(?:t|ent)|podrían?"
    r"|wenn|falls|angenommen|falsche|nicht|si|supposons|supposant|mauvaise|fausse|pas|incorrecta|equivocada|supongamos"
    r"|если|предположим|неправильн\w{0,4}|неверн\w{0,4}|не)\b"
    r"|如果|假设|假設|若|错误|錯誤|不正|もし|仮に|間違|誤|만약|만일|틀린|잘못|有人|有些人|很多人|会认为",
    re.IGNORECASE,
)
# What is said under a condition, the whole of it in the sentence before the phrase; and what holds without it.
_CONDITION = re.compile(
    r"(?:^|[.!?。\n]\s?)(?:(?:but|and|now|however),?\s)?"
    r"(?:(?:if|unless|wenn|falls|si|если)\b(?!\s(?:i|we|you|ich|wir|man|je|nous|on)\b)|(?:had|were|should)\s(?:the|it|this|that|we|he|she|they|you)\b"
    r"|(?:manche|viele|einige|certains|algunos|muchos|некоторые|многие)\s|如果|假如|若|もし|만약)"
    r"[^.!?。\n]{1,120}[,，、]\s?"
    r"(?:(?!so\b|therefore|thus|hence|but|also|daher|donc|поэтому)[^\W\d]{1,12}\s){0,3}(?:则|則|那么)?(?:正确的?)?\Z",
    re.IGNORECASE,
)
_OTHERWISE = re.compile(
    r"(?:\b(?:otherwise|else|sonst|ansonsten|andernfalls|sinon|de lo contrario|si no|иначе)\b|否则|否則|さもなければ"
    r"|그렇지 않으면)[^.!?。\n]{0,20}\Z",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[.,:;!?\n。、，；：()（）]|\b(?:so|therefore|thus|hence|but|because|since|means|also|donc)\b")
_QUOTES = re.compile(
    r"„[^„“”\n]{1,400}[“”]|“[^“”\n]{1,400}”|«[^«»\n]{1,400}»|「[^「」\n]{1,400}」|『[^『』\n]{1,400}』"
    r"|(?<!\w)\"[^\"\n]{1,400}\"(?!\w)|`[^`\n]{1,400}`"
)


def announcements(text: str) -> list[Announcement]:
    """A reply's announcements in their order, at most the last ``MOST``: an earlier one can't be the answer."""
    quoted = [match.span() for match in _QUOTES.finditer(text)]
    # a line that is nothing but a quotation is set off, not quoted
    quoted = [span for span in quoted if not _fills_its_line(text, *span)]
    starts = [start for start, _ in quoted]
    found = [a for a in (*_marks(text), *_phrases(text)) if not _inside(a, quoted, starts)]
    return sorted(found, key=lambda a: (a.start, a.end))[-MOST:]


def prepared(text: str) -> str:
    """A reply without its reasoning, and without the controls of chat templates.

    Reasoning that was left in the reply ends with its last closing tag (``</think>``, GPT-OSS's channel ``final``); one
    that is never closed leaves nothing.
    """
    return _CONTROL.sub("\n", without_reasoning(text)).strip()


def without_reasoning(text: str) -> str:
    """What follows the reasoning; the text as it is where it holds none."""
    text = _FINAL.split(text)[-1]
    text = _CLOSED.split(text)[-1]
    open_tag = _OPEN.search(text)
    return text[: open_tag.start()] if open_tag else text


_FINAL = re.compile(
    r"<\|channel\|>\s?final(?:\s?<\|constrain\|>\s?\w{0,20})?\s?<\|message\|>|(?<=[\w.!?])assistantfinal(?=\S)"
    r"|<\|START_RESPONSE\|>"
)
_CLOSED = re.compile(
    r"</(?:think|thinking|thought|reasoning|reflection|analysis|scratchpad|seed:think)>|\[/THINK\]|<\|/think\|>"
    r"|◁/think▷"
    r"|<\|END_THINKING\|>",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"<(?:think|thinking|thought|reasoning|seed:think)>|\[THINK\]|<\|think\|>|◁think▷|<\|channel\|>\s?analysis"
    r"|<\|START_THINKING\|>",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"<\|[A-Za-z_]{1,24}\|>|</?s>|<(?:end|start)_of_turn>")


def retracted(text: str, end: int) -> bool:
    """Whether what follows ``end`` takes the answer back: ``No, wait``, ``that's wrong``."""
    return bool(_RETRACTED.search(text[end : end + 400]))


_RETRACTED = re.compile(
    r"(?:^|[.!?;\n—–-]|\.\.\.)\s{0,3}(?:no,|no wait|wait\b|hmm|hold on|scratch that|correction\b|oops"
    r"|(?:actually|sorry),? (?:no\b|wait|that|i (?:was|made)|let me)|that(?:['’]s| is| was) (?:wrong|incorrect"
    r"|not right)"
    r"|let me (?:re|double|correct|check))|不对|等等|等一下|いや、|아니,",
    re.IGNORECASE,
)


def _marks(text: str) -> Iterator[Announcement]:
    closing = _closing(text)
    for match in _BOX.finditer(text):
        end = closing.get(match.end() - 1)
        said = text[match.end() : match.end() + _BOX_LENGTH] if end is None else text[match.end() : end]
        yield Announcement(
            kind="mark",
            start=match.start(),
            end=len(text) if end is None else end + 1,
            said=said[:_BOX_LENGTH],
            closed=end is not None,
        )
    for match in _BARE_BOX.finditer(text):
        yield Announcement(kind="mark", start=match.start(), end=match.end(), said=match[1], closed=True)
    for match in _TAG.finditer(text):
        closed = match["close"] is not None
        yield Announcement(kind="mark", start=match.start(), end=match.end(), said=match["said"], closed=closed)
    for match in _HASHES.finditer(text):
        # "#### 1. First" and "#### Step 1" are headings, "#### Answer: B" is read by its label
        if not re.match(
            r"[0-9]{1,3}[.):][ \t]+\S|(?:step|schritt|étape|paso|шаг)\b|[第]", match["said"], re.IGNORECASE
        ):
            start = match.end() - len(match["said"])
            yield Announcement(kind="mark", start=match.start(), end=match.end(), said=text[start : match.end()])


def _closing(text: str) -> dict[int, int]:
    """The place of every closing brace, by that of its opening one."""
    pairs: dict[int, int] = {}
    waiting: list[int] = []
    for match in re.finditer(r"(?<!\\)[{}]", text):
        if match[0] == "{":
            waiting.append(match.start())
        elif waiting:
            pairs[waiting.pop()] = match.start()
    return pairs


def _phrases(text: str) -> Iterator[Announcement]:
    for match in deque(_PHRASE.finditer(text), maxlen=2 * MOST):
        if not match["json"] and _DENIED.search(_clause_before(text, match.start())):
            continue
        before = text[max(0, match.start() - 160) : match.start()]
        supposed = not match["json"] and bool(_CONDITION.search(before))
        if supposed and re.search(r"\bwould (?:be|have)\b", match[0] + text[match.end() : match.end() + 8]):
            continue
        end = text.find("\n", match.end())
        end = min(len(text) if end < 0 else end, match.end() + 400)
        said = text[match.end() : end]
        if match["json"]:
            yield _json_value(text, match.start(), match.end(), end)
            continue
        if not said.strip(" \t*_:=$") and not match["self"]:
            following = re.compile(r"[\s*_:>]{1,12}(?P<said>[^\n]{1,400})").match(text, end)
            if following is None:
                continue
            said, end = following["said"], following.end()
        ends_in = match[0].rstrip("*_ ")[-1:]
        kind: Kind = "label" if match["json"] or match["heading"] or ends_in in ":=-–—" else "sentence"
        otherwise = bool(_OTHERWISE.search(before))
        yield Announcement(kind=kind, start=match.start(), end=end, said=said, supposed=supposed, otherwise=otherwise)


_JSON_VALUE = re.compile(
    r"\s*(?:\"((?:[^\"\\\n]|\\.){0,400})(\")|'([^'\n]{0,400})(')|\[([^\]\n]{0,200})(\])|([^,}\]\n]{1,100})([,}\]\n])?)"
)


def _json_value(text: str, start: int, end: int, line_end: int) -> Announcement:
    """The value of a key ``answer`` as JSON, or Python, writes it; of a list its parts."""
    value = _JSON_VALUE.match(text, end)
    if value is None:
        return Announcement(kind="label", start=start, end=line_end, said=text[end:line_end])
    said = next(group for group in (value[1], value[3], value[5], value[7]) if group is not None)
    if value[5] is not None:
        said = re.sub("[\"']", "", said)
    closed = any((value[2], value[4], value[6], value[8]))
    return Announcement(kind="label", start=start, end=value.end(), said=said, closed=closed)


def _clause_before(text: str, start: int) -> str:
    before = text[max(0, start - 80) : start]
    cut = 0
    for match in _CLAUSE.finditer(before):
        cut = match.end()
    return before[cut:]


def _inside(a: Announcement, quoted: list[tuple[int, int]], starts: list[int]) -> bool:
    """Whether the announcement, its phrase with the answer, is a quotation: ``you wrote "Answer: B"``."""
    place = bisect_right(starts, a.start) - 1
    return place >= 0 and quoted[place][0] < a.start < quoted[place][1]


def _fills_its_line(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 12) : start].rpartition("\n")[2] + text[end : end + 12].partition("\n")[0]
    return not around.strip(" \t*_>#.:-")
