"""What the examiner is told: the prompt files, filled in."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.lm_examiner.taxonomy import Domain
from evaluation.templates import prompt_hash, quote, render
from serving.records import Message, Prompt

QUESTIONS = "lm_examiner_questions.jinja"
REFERENCE = "lm_examiner_reference.jinja"
LEVEL = "lm_examiner_level.jinja"
MARKS_SYSTEM = "lm_examiner_marks_system.jinja"
MARKS = "lm_examiner_marks.jinja"
COMPARE_SYSTEM = "lm_examiner_compare_system.jinja"
COMPARE = "lm_examiner_compare.jinja"
FOLLOWUP = "lm_examiner_followup.jinja"
CHECK = "lm_examiner_check.jinja"
RESTYLE = "lm_examiner_restyle.jinja"
EQUIVALENT = "lm_examiner_equivalent.jinja"

SIMPLE = COMPOUND = 3
"""Of ten questions the first three have short answers and the last three are compound."""


def hashes(*names: str) -> dict[str, str]:
    return {name: prompt_hash(name) for name in names}


def questions(domain: Domain, n: int, *, hard: bool = False, before: Sequence[str] = ()) -> Prompt:
    """The demand for ``n`` questions, different from those ``before``."""
    text = render(
        QUESTIONS,
        domain=quote(" > ".join([*domain.path[1:], domain.name])),
        n=n,
        hard=hard,
        simple=min(SIMPLE, n // 3),
        compound=min(COMPOUND, n // 3),
        before="\n".join(map(quote, before)),
    )
    return _user(text)


def reference(question: str, *, short: bool) -> Prompt:
    """The demand that the examiner answer its own question."""
    return _user(render(REFERENCE, question=question, length="at most 20 words" if short else "at most 100 words"))


def level(question: str, *, free: bool = False) -> Prompt:
    return _user(render(LEVEL, question=quote(question), free=free))


def marks(
    question: str, answer: str, *, reference: str = "", free: bool = False, comment_length: int = 0, limit: int
) -> Prompt:
    """The demand for five marks of an answer, of which ``limit`` characters are shown."""
    system = render(MARKS_SYSTEM, free=free, comment_length=comment_length, reference=bool(reference))
    shown = quote(reference, limit) if reference else ""
    text = render(MARKS, question=quote(question), answer=quote(answer, limit), reference=shown)
    return (Message(role="system", content=system), Message(role="user", content=text))


def compare(
    question: str, first: str, second: str, *, free: bool = False, comment_length: int = 0, limit: int
) -> Prompt:
    """The demand for the better of two responses."""
    system = render(COMPARE_SYSTEM, free=free, comment_length=comment_length)
    text = render(COMPARE, question=quote(question), first=quote(first, limit), second=quote(second, limit))
    return (Message(role="system", content=system), Message(role="user", content=text))


def followup(question: str, answer: str, *, limit: int) -> Prompt:
    return _user(render(FOLLOWUP, question=quote(question), answer=quote(answer, limit)))


def check(question: str, answer: str, *, free: bool = False, limit: int) -> Prompt:
    return _user(render(CHECK, question=quote(question), answer=quote(answer, limit), free=free))


def restyle(question: str, answer: str, *, limit: int) -> Prompt:
    return _user(
        render(RESTYLE, question=quote(question), answer=quote(answer, limit), words=max(1, len(answer.split())))
    )


def equivalent(question: str, first: str, second: str, *, free: bool = False, limit: int) -> Prompt:
    return _user(
        render(EQUIVALENT, question=quote(question), first=quote(first, limit), second=quote(second, limit), free=free)
    )


def _user(text: str) -> Prompt:
    return (Message(role="user", content=text),)
