"""Whether a draft can be used: four aspects for a general one, a chain of checks by two models for a mathematical one.

An unreadable verdict is a rejection.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from evaluation.asking.form import Answer, Fields
from evaluation.idgen.asking import Desk, prompt
from evaluation.idgen.growing import Draft, rewrite
from evaluation.idgen.options import IDGenOptions
from evaluation.templates import quote
from serving.records import Yielded

USABILITY = "idgen_usability.jinja"
MATH_CHECK = "idgen_math_check.jinja"
PROMPTS = (USABILITY, MATH_CHECK)
ASPECTS = ("safe", "neutral", "complete", "feasible")
CHECKS = ("concepts", "relations", "solvable", "sensible")
CHECKERS = ("checker_1", "checker_2")
UNREADABLE = "unreadable verdict"


def usability(draft: Draft, number: str, options: IDGenOptions, desk: Desk) -> Generator[Yielded, Any, None]:
    """Safety, neutrality, completeness, feasibility, 0 or 1 each; below 4 of 4 the draft is discarded."""
    fields = Fields({"comment": options.comment_length, **dict.fromkeys(ASPECTS, (0, 1))})
    asked = prompt(
        USABILITY, question=quote(draft.question, options.quote_limit), comment_length=options.comment_length
    )
    (answer,) = yield from desk.decide([("judge", asked)], f"usability/{number}", fields)
    draft.checks.append({"judge": answer})
    if answer is None:
        draft.reject("usability", UNREADABLE)
    elif missing := [name for name in ASPECTS if not answer[name]]:
        draft.reject("usability", f"not {missing[0]}" if len(missing) == 1 else f"{len(missing)} aspects missing")
    else:
        draft.passed.append("usability")


def math_checks(draft: Draft, number: str, options: IDGenOptions, desk: Desk) -> Generator[Yielded, Any, None]:
    """Both checkers must accept. A rejected draft is rewritten by the rejecting one's suggestion and checked again."""
    length = options.comment_length
    fields = Fields({"reasoning": length, **dict.fromkeys(CHECKS, (0, 1)), "repair": length})
    for iteration in range(options.iterations + 1):
        asked = prompt(MATH_CHECK, question=quote(draft.question, options.quote_limit), comment_length=length)
        step = f"check/{number}/{iteration}"
        answers = yield from desk.decide([(role, asked) for role in CHECKERS], step, fields)
        verdicts = dict(zip(CHECKERS, answers, strict=True))
        draft.checks.append(dict(verdicts))
        if all(map(accepts, answers)):
            draft.passed.append("checks")
            return
        reason = _reason(answers)
        if iteration == options.iterations:
            break
        suggestion = repair(verdicts, options.both_reject)
        if not suggestion:
            reason += ", no repair suggested"
            break
        if not (yield from rewrite(draft, suggestion, options, desk)):
            reason += ", repair failed"
            break
    draft.reject("checks", reason)


def accepts(answer: Answer | None) -> bool:
    return answer is not None and all(answer[name] for name in CHECKS)


def repair(verdicts: dict[str, Answer | None], named: str) -> str:
    """The suggestion to follow: the rejecting checker's; of two the named one's, or the other's if it has none."""
    rejecting = [role for role in CHECKERS if not accepts(verdicts[role])]
    rejecting.sort(key=lambda role: role != named)
    suggestions = [answer["repair"].strip() for role in rejecting if (answer := verdicts[role]) is not None]
    return next(filter(None, suggestions), "")


def _reason(answers: list[Answer | None]) -> str:
    rejecting = [answer for answer in answers if not accepts(answer)]
    if all(answer is None for answer in rejecting):
        return UNREADABLE
    failed = [name for name in CHECKS if any(answer is not None and not answer[name] for answer in rejecting)]
    return f"{'both' if len(rejecting) == 2 else 'one'} reject: {failed[0]}" + (" and more" if len(failed) > 1 else "")
