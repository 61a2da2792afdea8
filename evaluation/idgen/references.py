"""Reference answers: several models answer; the best is found by scores (general) or by votes (mathematics).

A tie is drawn by the seed and flagged. Answers are anonymous: voters see letters, in an order drawn per item.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from typing import Any

from evaluation.asking.form import Fields
from evaluation.idgen.asking import Desk, prompt
from evaluation.idgen.growing import Draft
from evaluation.idgen.options import IDGenOptions
from evaluation.items import LETTERS
from evaluation.templates import quote
from serving.records import Message, Yielded, derive_seed

SCORE = "idgen_reference_score.jinja"
VOTE = "idgen_reference_vote.jinja"
PROMPTS = (SCORE, VOTE)
CRITERIA = {
    "safety": 30,
    "correctness": 10,
    "relevance": 10,
    "comprehensiveness": 10,
    "readability": 20,
    "richness": 10,
    "humanisation": 10,
}
"""The most that each criterion gives; 100 in all (IDGen, appendix)."""


def reference(
    draft: Draft, number: str, *, math: bool, options: IDGenOptions, desk: Desk
) -> Generator[Yielded, Any, None]:
    """Fills ``draft.reference``: {how, answers [{role, text, cut, ...}], chosen (index), tie}; or rejects the draft.

    Answers that are empty, or that had no room, stand for nothing. An only answer is scored or voted on, too: whether
    it is any good is known then.
    """
    roles = answerers(options.answerers)
    ask = (Message(role="user", content=draft.question),)
    completions = yield from desk.write([(role, ask) for role in roles], options.answer_tokens)
    answers = []
    for role, completion in zip(roles, completions, strict=True):
        if completion.finish_reason != "context" and completion.text.strip():
            answers.append({"role": role, "text": completion.text.strip(), "cut": completion.finish_reason == "length"})
    if not answers:
        draft.reject("reference", "no model answered")
        return
    settle = _by_votes if math else _by_scores
    points = yield from settle(draft, number, answers, options, desk)
    known = [value for value in points if value is not None]
    draft.reference = {"how": "votes" if math else "scores", "answers": answers, "chosen": None, "tie": False}
    if not known:
        draft.reject("reference", "no readable score or vote")
        return
    chosen, tie = best(points, derive_seed(desk.seed, desk.item_id, f"idgen/tie/{number}", 0))
    draft.reference.update(chosen=chosen, tie=tie)
    draft.passed.append("reference")


def answerers(count: int) -> tuple[str, ...]:
    return tuple(f"answerer_{index}" for index in range(1, count + 1))


def best(points: Sequence[float | None], seed: int) -> tuple[int, bool]:
    """(index of the highest, whether several are); of equals one is drawn by the seed. ValueError if none is known."""
    known = [value for value in points if value is not None]
    if not known:
        raise ValueError("there is nothing to choose from")
    first = [index for index, value in enumerate(points) if value == max(known)]
    return (first[0], False) if len(first) == 1 else (random.Random(seed).choice(first), True)  # noqa: S311


def _by_scores(
    draft: Draft, number: str, answers: list[dict[str, Any]], options: IDGenOptions, desk: Desk
) -> Generator[Yielded, Any, list[float | None]]:
    ranges = {name: tuple(range(most + 1)) for name, most in CRITERIA.items()}
    fields = Fields({"comment": options.comment_length, **ranges})
    asked = [
        (
            "judge",
            prompt(
                SCORE,
                question=quote(draft.question, options.quote_limit),
                answer=quote(answer["text"], options.quote_limit),
                comment_length=options.comment_length,
                criteria=list(CRITERIA),
            ),
        )
        for answer in answers
    ]
    marks = yield from desk.decide(asked, f"reference-score/{number}", fields)
    totals: list[float | None] = []
    for answer, mark in zip(answers, marks, strict=True):
        total = None if mark is None else sum(mark[name] for name in CRITERIA)
        answer.update(scores=mark, total=total)
        totals.append(total)
    return totals


def _by_votes(
    draft: Draft, number: str, answers: list[dict[str, Any]], options: IDGenOptions, desk: Desk
) -> Generator[Yielded, Any, list[float | None]]:
    """Every answerer votes, on its own answer among the others. An unreadable vote is no vote."""
    order = list(range(len(answers)))
    random.Random(derive_seed(desk.seed, desk.item_id, f"idgen/order/{number}", 0)).shuffle(order)  # noqa: S311
    letters = tuple(LETTERS[: len(answers)])
    shown = [
        {"letter": letter, "text": quote(answers[index]["text"], options.quote_limit)}
        for letter, index in zip(letters, order, strict=True)
    ]
    asked = prompt(
        VOTE,
        question=quote(draft.question, options.quote_limit),
        answers=shown,
        letters=letters,
        comment_length=options.comment_length,
    )
    fields = Fields({"comment": options.comment_length, "choice": letters})
    votes = yield from desk.decide(
        [(role, asked) for role in answerers(options.answerers)], f"reference-vote/{number}", fields
    )
    for answer in answers:
        answer["votes"] = 0
    for vote in votes:
        if vote is not None:
            answers[order[letters.index(vote["choice"])]]["votes"] += 1
    return [float(answer["votes"]) if any(votes) else None for answer in answers]
