"""The probing agent and its loop: write, check by code, ask the judge, and again with the reason (MPA, section 3.1)."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from evaluation.asking.until_read import SAMPLED_TEMPERATURE, sampling
from evaluation.items import LETTERS
from evaluation.probing import checks, judge
from evaluation.probing.checks import Fault
from evaluation.probing.permutation import obstacle
from evaluation.probing.quantities import quantities
from evaluation.probing.version import Version, lettered
from evaluation.templates import one_line, prompt_hash, quote, render, unquoted, well_formed
from serving.records import Ask, Completion, Message, Yielded

SYSTEM: Final = "probing_prober_system.jinja"
PROMPT: Final = "probing_prober.jinja"

Status = Literal["accepted", "fallback", "unchanged", "not_applicable"]
"""accepted by the judge; every attempt turned down, the stage's input is kept; nothing there that could be said
differently (short options, repeated as they are); nothing to be done at all."""

_FENCE = re.compile(r"\A```[a-z]*\n(.*?)\n?```\Z", re.DOTALL)
_LABEL = re.compile(
    r"\A\W{0,4}(?:(?:the|a|my|new|rewritten|rephrased|rewrite of the|one more|additional|background)\s+){0,3}"
    r"(?:question|background|context|option|sentences?|rewrite|version)\W{0,3}[:：]\s*",
    re.IGNORECASE,
)
_OPTION = re.compile(r"^[ \t]*\(?([A-Z])\s*[.):：]\)?[ \t]*(.*)$")
_OPTION_LABEL = re.compile(r"\A\W{0,2}[A-Z]\s*[.)：:]\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """attempts: at most so many per stage; feedback: tell the agent why the last one was turned down (else it is only
    asked again, with another seed); max_growth: how many times longer a text may become; tokens: of an attempt"""

    attempts: int
    feedback: bool
    max_growth: float
    tokens: int
    accept: judge.AcceptOptions


@dataclass(slots=True)
class Stage:
    """One principle applied to one version: what came of it, and each attempt as the record holds it."""

    version: Version
    status: Status
    reason: str = ""
    attempts: list[dict[str, Any]] = field(default_factory=list)


class Unreadable(NamedTuple):
    """A reply in which the wanted form is not found."""

    reason: str


def rewrite(
    stage: str, before: Version, *, vanilla: Version, loop: Loop, seed: int, item_id: str, number: int
) -> Generator[Yielded, Any, Stage]:
    """Applies the last principle of ``stage`` (``p1+p4``: p4) to ``before``; of an attempt that passes the checks the
    judge has the last word.

    number: of the set, part of every derived seed
    """
    principle = stage.rpartition("+")[2]
    if reason := inapplicable(principle, before):
        return Stage(before, "not_applicable", reason)
    attempts: list[dict[str, Any]] = []
    rejected, why = "", ""
    for attempt in range(1, loop.attempts + 1):
        completion: Completion = yield Ask(
            role="prober",
            prompt=prompt(principle, before, rejected=rejected, reason=why),
            sampling=sampling(loop.tokens, SAMPLED_TEMPERATURE, seed, item_id, f"probing/{number}/{stage}", attempt),
        )
        said = completion.text.strip()
        row: dict[str, Any] = {"text": well_formed(said), "result": "", "reason": ""}
        attempts.append(row)
        made = read(principle, before, said, cut=completion.finish_reason != "stop")
        if isinstance(made, Unreadable):
            row |= {"result": "unparsable", "reason": made.reason}
        elif fault := check(principle, before, made, loop.max_growth):
            row |= {"result": f"code: {fault.kind}", "reason": fault.text}
        elif made == before:  # options that can't be said differently
            row |= {"result": "unchanged"}
            return Stage(before, "unchanged", "", attempts)
        else:
            judgement = yield from judge.accept(
                principle,
                vanilla=vanilla,
                before=before,
                after=made,
                options=loop.accept,
                seed=seed,
                step=f"probing/{number}/{stage}/judge/{attempt}",
                item_id=item_id,
            )
            if judgement.value == "yes":
                row |= {"result": "accepted", "reason": judgement.comment}
                return Stage(made, "accepted", "", attempts)
            missing = judgement.verdict is None
            row |= {
                "result": f"no verdict: {judgement.status}" if missing else "judge",
                "reason": "the judge gave no readable verdict" if missing else judgement.comment,
            }
        if loop.feedback:
            rejected, why = said, row["reason"]
    return Stage(before, "fallback", attempts[-1]["reason"], attempts)


def inapplicable(principle: str, before: Version) -> str:
    """Why a principle can't be applied to a version; "" if it can."""
    if principle in ("p2", "p5") and not before.choices:
        return "an open question has no options"
    if principle == "p5":
        if len(before.choices) >= len(LETTERS):
            return f"there are {len(before.choices)} options already"
        return obstacle(before.choices)
    if principle == "p2" and all(checks.fixed(choice, len(before.choices)) for choice in before.choices):
        return "no option can be said differently"
    return ""


def prompt(principle: str, before: Version, *, rejected: str = "", reason: str = "") -> tuple[Message, ...]:
    """What the agent is shown; a rejected attempt and the reason only in feedback mode."""
    values: dict[str, Any] = {"principle": principle, "count": len(before.choices)}
    user = render(
        PROMPT,
        question=quote("\n".join(part for part in (before.context, before.question) if part)),
        choices=quote(lettered(before.choices)) if before.choices else "",
        answer=quote(before.answer),
        rejected=quote(rejected, 2000) if rejected else "",
        reason=quote(reason or "no reason was given", 500),
        **values,
    )
    return (Message(role="system", content=render(SYSTEM, **values)), Message(role="user", content=user))


def read(principle: str, before: Version, reply: str, *, cut: bool) -> Version | Unreadable:
    """The version that an agent's reply makes of ``before``."""
    if cut:
        return Unreadable("the reply was cut off; be shorter")
    text = unquoted(well_formed(reply))
    if match := _FENCE.match(text):
        text = match[1].strip()
    if principle == "p2":
        return _read_options(before, text)
    text = _bare(_LABEL.sub("", text))
    if not text:
        return Unreadable("the reply is empty")
    if principle == "p5":
        if len(text.splitlines()) > 1:
            return Unreadable("the reply must be one line: the text of the new option")
        return before.offering((*before.choices, _bare(_OPTION_LABEL.sub("", text))))
    if principle == "p4":
        return before.asking(f"{one_line(text)} {before.stem}" if "\n" not in before.stem else f"{text}\n{before.stem}")
    if before.tail and (match := re.search(r"\n+[ \t]*Options:[ \t]*\n", text)):
        text = text[: match.start()]  # options of the text's own are put back by code
    if before.choices and any(_OPTION.match(line) for line in text.splitlines()[1:]):
        return Unreadable("write the question only, without the options")
    return before.asking(text)


def check(principle: str, before: Version, after: Version, max_growth: float) -> Fault | None:
    """The checks by code that belong to a principle."""
    if principle == "p1":
        exact = not before.choices and bool(before.tail)
        return checks.check_question(
            before.stem, after.stem, exact=exact, max_growth=max_growth, key=before.answer if before.choices else ""
        )
    if principle == "p4":
        context = after.stem.removesuffix(before.stem).strip()
        numeric = any(not quantity.weak for quantity in quantities(before.stem))
        return checks.check_context(before.stem, context, key=before.answer, numeric=numeric, max_growth=max_growth)
    if principle == "p2":
        return checks.check_choices(before.choices, after.choices, answer=before.key, max_growth=max_growth)
    return checks.check_new_choice(before.choices, after.choices[-1], max_growth=max_growth)


def _read_options(before: Version, text: str) -> Version | Unreadable:
    """One option per line, by letter, or unlettered where there are exactly as many lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lettered_lines = [match for line in lines if (match := _OPTION.match(line))]
    if lettered_lines:
        letters = [match[1] for match in lettered_lines]
        if letters != list(LETTERS[: len(letters)]):
            return Unreadable("the letters must be those of the list, each once, in order")
        choices = [_bare(match[2]) for match in lettered_lines]
    else:
        choices = [_bare(re.sub(r"\A(?:[-*•]|\d+[.)])\s+", "", line)) for line in lines]
    if len(choices) != len(before.choices):
        return Unreadable(f"there must be {len(before.choices)} options, one on each line; there are {len(choices)}")
    return before.offering(choices)


def _bare(text: str) -> str:
    """Without white space and a pair of quotation marks around it."""
    text = text.strip()
    for first, last in ('""', "“”", "''"):
        if len(text) > 1 and text.startswith(first) and text.endswith(last) and first not in text[1:-1]:
            return text[1:-1].strip()
    return text


def hashes() -> dict[str, str]:
    """SHA-256 of the agent's and the judge's prompts."""
    return {**{name: prompt_hash(name) for name in (SYSTEM, PROMPT)}, **judge.hashes()}
