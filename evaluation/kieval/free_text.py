"""Reading a verdict that a judge wrote as free text: leniently, but without guessing.

What is read: a JSON verdict somewhere in the text, or sections that open with a label at the beginning of a line
(``Accuracy: good facts. Score: 3``, ``**Logic** (1-4): 3/4``, a comment and then ``Score: 3`` on a line of its own).
Lines that begin with ``|`` are quotations, as in the judge's own prompt: a candidate's words, never the judge's.

A text that says two different things (two scores of one aspect, yes and no, a JSON verdict beside another score, the
prompt's ``1 to 4`` repeated) is no verdict.
"""

from __future__ import annotations

import re
from typing import Final

from evaluation.asking.form import objects_in
from evaluation.kieval.verdict import ASPECTS, STOP_REASONS, RoundVerdict, verdict_of
from evaluation.templates import one_line, well_formed

COMMENT_LIMIT: Final = 400

_SECTIONS: Final = (*ASPECTS, "overall", "reason", "stop")
_LABEL: Final = re.compile(
    rf"^[^a-zA-Z\n|]{{0,20}}(?:should (?:the |this )?(?:interview|dialogue|conversation) )?"
    rf"(?P<label>{'|'.join(_SECTIONS)}|stopping)\b[^:=(?\n]{{0,24}}(?:[:=?]|(?=\())(?P<rest>.*)$",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"[\s>*•-]*\|")
# The scale or the choice, named beside the label: "(1-4)", "(yes/no)".
_SCALE: Final = re.compile(
    r"[(\[]\s*(?:1\s*(?:-|–|to|\.\.)\s*4|(?:yes|true)\s*(?:/|or)\s*(?:no|false))\s*[)\]]\s*:?", re.IGNORECASE
)
_RANGE: Final = re.compile(r"\b\d\s*(?:-|–|to\b|or\b)\s*\d\b", re.IGNORECASE)
_NUMBER: Final = r"(?<![\d.,/+–-])(?P<score>[1-4])(?:\.0)?(?!\d|[.,]\d)"
_OTHER_SCALE: Final = r"(?!\s*(?:/|out of|of)\s*\d)"
# Where a number is a score: out of 4, after the word, as the first thing said, or alone at the end.
_SAID: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_NUMBER}\s*(?:/|out of|of)\s*4(?!\d|[.,]\d)",
        rf"\b(?:score|rating)\b\W{{0,6}}(?:(?:is|of)\b\W{{0,4}})?{_NUMBER}{_OTHER_SCALE}",
        rf"^\W*{_NUMBER}{_OTHER_SCALE}\s*(?:[^\w\s/]|$)",
        rf"(?:[.:;!?–—-]\s+|\()\**{_NUMBER}[\s.)*\]]*$",
    )
)
_LATER_LINE: Final = re.compile(r"\b(?:score|rating)\W{0,3}[:=]|^\W*[1-4]\s*(?:/\s*4)?\W*$", re.IGNORECASE)


class _Ambiguous(Exception):
    """Free text that says two things."""


def parse_free(text: str, *, cut: bool = False) -> RoundVerdict | None:
    """The verdict, or None where there is none or more than one. It needs an overall score; an aspect without one is
    None, and without a decision the interview goes on. cut: the word that max_tokens broke off in does not count."""
    lines = [line for line in well_formed(text).splitlines() if not _QUOTED.match(line)]
    own = "\n".join(lines)
    try:
        said, rest = objects_in(re.sub(r"[^\s{}]+\Z", "", own) if cut else own, verdict_of, inside=True)
    except ValueError:
        return None
    embedded = [verdict for place, verdict in enumerate(said) if verdict not in said[:place]]
    sections = _sections("".join(rest))
    try:
        scores = {name: _score(sections.get(name, [])) for name in (*ASPECTS, "overall")}
        stop = _decision(sections)
    except _Ambiguous:
        return None
    overall = scores.pop("overall")
    if embedded:
        agree = len(embedded) == 1 and overall in (None, embedded[0].overall)
        return embedded[0] if agree and stop in (None, embedded[0].stop) else None
    if overall is None:
        return None
    return RoundVerdict(
        overall=overall,
        comment=_comment(sections["overall"]),
        scores=scores,
        comments={name: _comment(sections.get(name, [])) for name in ASPECTS},
        stop=bool(stop),
        reason=_reason(sections.get("reason", [])) if stop else "none",
    )


def _sections(text: str) -> dict[str, list[list[str]]]:
    """By label, what follows it: one list of lines for every time that it stands at the beginning of a line."""
    found: dict[str, list[list[str]]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        match = _LABEL.match(line)
        if match:
            label = match["label"].lower().removesuffix("ping")
            current = [_SCALE.sub(" ", match["rest"])]
            found.setdefault(label, []).append(current)
        elif current is not None:
            current.append(_SCALE.sub(" ", line))
    return found


def _score(sections: list[list[str]]) -> int | None:
    said: set[str] = set()
    for first, *later in sections:
        for line in (first, *(line for line in later if _LATER_LINE.search(line))):
            bare = _RANGE.sub(" ", line)
            said.update(match["score"] for pattern in _SAID for match in pattern.finditer(bare))
    if len(said) > 1:
        raise _Ambiguous
    return int(said.pop()) if said else None


def _comment(sections: list[list[str]]) -> str:
    """The first section's text up to its score."""
    if not sections:
        return ""
    text = one_line(" ".join(sections[0]))
    end = min((match.start() for pattern in _SAID for match in pattern.finditer(text)), default=len(text))
    return text[:end].strip(" *_:=([-–—")[:COMMENT_LIMIT]


def _decision(sections: dict[str, list[list[str]]]) -> bool | None:
    """Whether to stop; None where nothing is said."""
    said: set[bool] = set()
    for section in sections.get("stop", []):
        match = re.match(r"\W*(yes|no|true|false)\b(\s*(?:/|or\b)\s*(?:yes|no|true|false)\b)?", _first(section), re.I)
        if match and match[2]:
            raise _Ambiguous
        if match:
            said.add(match[1].lower() in ("yes", "true"))
    if len(said) > 1:
        raise _Ambiguous
    return said.pop() if said else None


def _reason(sections: list[list[str]]) -> str:
    """The one reason that is named, else ``none``."""
    words = "_".join(re.sub(r"[\W_]+", "_", _first(section)).lower().strip("_") for section in sections)
    named = [reason for reason in STOP_REASONS if re.search(rf"(?:^|_){reason}(?:_|$)", words)]
    return named[0] if len(named) == 1 else "none"


def _first(section: list[str]) -> str:
    """The first line that isn't empty."""
    return next((line for line in section if line.strip()), "")
