"""The judge agent: may a rewritten version be used? Yes or no, with a reason (MPA, arXiv 2402.14865, section 3.1)."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any, ClassVar, Final

from pydantic import Field

from evaluation.asking.verdict import Judgement, JudgeOptions, Value, VerdictForm, judge
from evaluation.probing.version import Version
from evaluation.templates import prompt_hash, quote, render
from serving.records import Message, Prompt, Yielded

SYSTEM: Final = "probing_judge_system.jinja"
PROMPT: Final = "probing_judge.jinja"

_STATED = re.compile(
    r"^[^\w\n]*(?:(?:my|the|final)[ ]){0,2}verdict\b[^\w\n]{1,8}(yes|no)\b", re.IGNORECASE | re.MULTILINE
)


def _stated(text: str) -> set[Value]:
    found: set[Value] = {match[1].lower() for match in _STATED.finditer(text)}
    return found | {match[1].lower() for match in re.finditer(r"\[\[(yes|no)\]\]", text, re.IGNORECASE)}


ACCEPT: Final = VerdictForm(key="verdict", values=("yes", "no"), stated=_stated)
"""Whether the new version may be used."""


class AcceptOptions(JudgeOptions):
    """How the judge answers: those settings of every judge that concern the verdict (see ``JudgeOptions``)."""

    form: ClassVar[VerdictForm] = ACCEPT

    comment_length: int = Field(default=160, ge=8, le=4000)


def accept(
    principle: str,
    *,
    vanilla: Version,
    before: Version,
    after: Version,
    options: AcceptOptions,
    seed: int,
    step: str,
    item_id: str,
    role: str = "evaluator",
) -> Generator[Yielded, Any, Judgement]:
    """The judge's verdict on one change. Its comment is the reason; without a verdict nothing is accepted."""
    asked = prompt(principle, vanilla=vanilla, before=before, after=after, options=options)
    (judgement,) = yield from judge([asked], [step], options, seed=seed, item_id=item_id, role=role)
    return judgement


def prompt(principle: str, *, vanilla: Version, before: Version, after: Version, options: AcceptOptions) -> Prompt:
    """What the judge is shown: the original, the version before the change where it is another, and the new one."""
    limit = options.quote_limit
    system = render(SYSTEM, principle=principle, free=options.verdict == "free", comment_length=options.comment_length)
    user = render(
        PROMPT,
        vanilla=vanilla.shown(),
        vanilla_answer=quote(vanilla.answer, limit),
        before="" if before == vanilla else before.shown(),
        before_answer=quote(before.answer, limit),
        after=after.shown(),
        after_answer=quote(after.answer, limit),
    )
    return (Message(role="system", content=system), Message(role="user", content=user))


def hashes() -> dict[str, str]:
    """SHA-256 of the judge's prompts."""
    return {name: prompt_hash(name) for name in (SYSTEM, PROMPT)}
