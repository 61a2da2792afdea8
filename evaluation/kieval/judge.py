"""The evaluator's verdict on the last round of a conversation: asked for, asked again, voted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any

from evaluation.asking.form import SAMPLED_TEMPERATURE
from evaluation.kieval import prompts as prompts
from evaluation.kieval.conversation import Conversation
from evaluation.kieval.free_text import parse_free
from evaluation.kieval.options import JudgeOptions
from evaluation.kieval.verdict import ASPECTS, STOP_REASONS, Verdict, parse_structured, verdict_schema
from serving.records import Ask, Completion, Sampling, Yielded, derive_seed


@dataclass(slots=True)
class Vote:
    """One verdict (None: missing) and the attempts it took."""

    verdict: Verdict | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Judgement:
    """The votes on a round, and whether the prompt found room (if not, all of them are missing)."""

    votes: tuple[Vote, ...]
    fits: bool

    @property
    def attempts(self) -> int:
        return sum(vote.attempts for vote in self.votes)

    def to_json(self) -> list[dict[str, Any]]:
        """``[{"overall", "stop", "attempts"}]``, None where a vote is missing."""
        return [
            {
                "overall": vote.verdict.overall if vote.verdict else None,
                "stop": vote.verdict.stop if vote.verdict else None,
                "attempts": vote.attempts,
            }
            for vote in self.votes
        ]


def judge(
    conversation: Conversation, options: JudgeOptions, *, seed: int, step: str
) -> Generator[Yielded, Any, Judgement]:
    """Verdicts on the last turn. A vote that doesn't parse is asked again, each time with a seed of its own.

    step: the protocol's step, part of every derived seed
    """
    votes = options.votes
    structured = options.verdict == "structured"
    comment_length = options.comment_length if structured else None
    schema = verdict_schema(options.comment_length) if structured else None
    turns = conversation.turns
    droppable = len(turns) - 1 if options.overflow == "drop_oldest" else 0

    def ask(vote: int, attempt: int, dropped: int) -> Ask:
        prompt = prompts.evaluator(
            conversation.item,
            conversation.first_answer,
            turns,
            options.quote_limit,
            comment_length=comment_length,
            dropped=dropped,
        )
        sampled = votes > 1 or attempt > 0
        place = step if votes == 1 else f"{step}/vote{vote}"
        # A seed means nothing at temperature 0; the same value everywhere lets equal requests share an answer.
        own = derive_seed(seed, conversation.item.id, place, attempt) if sampled else 0
        sampling = Sampling(
            max_tokens=options.verdict_tokens(), temperature=SAMPLED_TEMPERATURE if sampled else 0.0, seed=own
        )
        return Ask(role="evaluator", prompt=prompt, sampling=sampling, schema=schema)

    cast = tuple(Vote() for _ in range(votes))
    for attempt in range(options.retries + 1):
        pending = [index for index, vote in enumerate(cast) if vote.verdict is None]
        if not pending:
            break
        completions: list[Completion] = yield from conversation.ask(
            "evaluator",
            lambda dropped, pending=pending, attempt=attempt: [ask(vote, attempt, dropped) for vote in pending],  # type: ignore[misc]
            droppable=droppable,
        )
        for index, completion in zip(pending, completions, strict=True):
            cast[index].attempts += 1
            if completion.finish_reason != "context":
                text, cut = completion.text, completion.finish_reason == "length"
                cast[index].verdict = parse_structured(text) if structured else parse_free(text, cut=cut)
        if any(completion.finish_reason == "context" for completion in completions):
            return Judgement(cast, fits=False)
    return Judgement(cast, fits=True)


def majority(verdicts: Sequence[Verdict]) -> Verdict | None:
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
    return Verdict(
        overall=overall,
        comment=spokesman.comment,
        scores={name: median_low(scores) if scores else None for name, scores in given.items()},  # type: ignore[type-var]
        comments=spokesman.comments,
        stop=stop,
        reason=max(STOP_REASONS, key=lambda reason: reasons[reason]) if stop else "none",
    )
