"""The evaluator's verdict on the last round of a conversation: asked for, asked again, voted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from statistics import median_low
from typing import Any

from evaluation.asking.form import Form
from evaluation.asking.until_read import ask_until_read
from evaluation.kieval import prompts as prompts
from evaluation.kieval.conversation import Conversation
from evaluation.kieval.free_text import parse_free
from evaluation.kieval.options import RoundJudgeOptions
from evaluation.kieval.verdict import ASPECTS, STOP_REASONS, RoundVerdict, parse_structured, verdict_schema
from serving.records import Prompt, Yielded


def judge(
    conversation: Conversation, options: RoundJudgeOptions, *, seed: int, step: str
) -> Generator[Yielded, Any, bool]:
    """Fills the last turn's verdict (the majority of the votes) and what it took; whether the prompt found room.

    A vote that doesn't parse is asked again, each time with a seed of its own.

    step: the protocol's step, part of every derived seed
    """
    votes = options.votes
    structured = options.verdict == "structured"
    form: Form[RoundVerdict] = Form(
        read=lambda completion: (
            parse_structured(completion.text)
            if structured
            else parse_free(completion.text, cut=completion.finish_reason == "length")
        ),
        max_tokens=options.verdict_tokens(),
        schema=verdict_schema(options.comment_length) if structured else None,
    )
    droppable = len(conversation.turns) - 1 if options.overflow == "drop_oldest" else 0

    def prompt() -> Prompt:
        return prompts.evaluator(
            conversation.item,
            conversation.first_answer,
            conversation.turns,
            options.quote_limit,
            comment_length=options.comment_length if structured else None,
            dropped=conversation.dropped["evaluator"],
        )

    readings = yield from ask_until_read(
        "evaluator",
        [prompt] * votes,
        [step] if votes == 1 else [f"{step}/vote{vote}" for vote in range(votes)],
        form,
        retries=options.retries,
        seed=seed,
        item_id=conversation.item.id,
        greedy=votes == 1,
        send=lambda make: conversation.ask("evaluator", lambda dropped: make(), droppable=droppable),
    )
    turn = conversation.turns[-1]
    turn.verdict = majority([reading.value for reading in readings if reading.value])
    turn.attempts = sum(reading.attempts for reading in readings)
    turn.votes = [
        {
            "overall": reading.value.overall if reading.value else None,
            "stop": reading.value.stop if reading.value else None,
            "attempts": reading.attempts,
        }
        for reading in readings
    ]
    turn.dropped = dict(conversation.dropped)
    return all(reading.status != "context" for reading in readings)


def majority(verdicts: Sequence[RoundVerdict]) -> RoundVerdict | None:
    """One verdict out of several, None out of none.

    Every score is the median of those given; of an even number the lower of the middle two, so that doubt lowers a
    score and never raises it. The interview stops where more than half want it to; half is not enough. The reason is
    the one that most of those name, the first in ``STOP_REASONS`` of equals. The comments are those of the first
    verdict whose overall score is the median.
    """
    if not verdicts:
        return None
    overall = median_low(verdict.overall for verdict in verdicts)
    spokesman = next(verdict for verdict in verdicts if verdict.overall == overall)
    given = {name: [v.scores[name] for v in verdicts if v.scores[name] is not None] for name in ASPECTS}
    stopping = [verdict for verdict in verdicts if verdict.stop]
    stop = 2 * len(stopping) > len(verdicts)
    reasons = Counter(verdict.reason for verdict in stopping if verdict.reason != "none")
    return RoundVerdict(
        overall=overall,
        comment=spokesman.comment,
        scores={name: median_low(scores) if scores else None for name, scores in given.items()},  # type: ignore[type-var]
        comments=spokesman.comments,
        stop=stop,
        reason=max(STOP_REASONS, key=lambda reason: reasons[reason]) if stop else "none",
    )
