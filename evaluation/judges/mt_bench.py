"""MT-Bench: a judge rates every turn of a conversation from 1 to 10 (Zheng et al. 2023, arXiv 2306.05685).

The candidate answers the user's first turn, then the later ones with its own answers in the conversation. The evaluator
rates each reply by itself ("single-answer grading"): turn 2's rating sees the whole conversation. For math, reasoning
and coding it is shown a reference answer where there is one, for judges are easily led astray there.

Any other item is a conversation of one turn, with its key for a reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from evaluation.asking.verdict import RATING, Judgement, JudgeOptions, VerdictForm, judge
from evaluation.formats import chat_answer, chat_question
from evaluation.items import Item
from evaluation.judges import shown as said
from evaluation.protocol import Record
from evaluation.statistics import bootstrap_mean, mean
from evaluation.templates import prompt_hash, quote, render, well_formed, without_labels
from serving.records import Ask, Completion, Dialogue, Message, Prompt, Sampling, Yielded, derive_seed

CANDIDATE_PLAIN = "mt_bench_candidate_plain.jinja"
EVALUATOR_SYSTEM = "mt_bench_evaluator_system.jinja"
EVALUATOR = "mt_bench_evaluator.jinja"
PLAIN_LABELS = ("User", "Assistant")
PLAIN_STOPS = tuple(f"\n{label}:" for label in PLAIN_LABELS)

GUIDED = ("math", "reasoning", "coding")
"""The categories whose judge sees a reference answer (option ``reference: auto``)."""

TEMPERATURES = {
    "writing": 0.7,
    "roleplay": 0.7,
    "extraction": 0.0,
    "math": 0.0,
    "coding": 0.0,
    "reasoning": 0.0,
    "stem": 0.1,
    "humanities": 0.1,
}
"""The candidate's temperature by category, as FastChat samples MT-Bench; ``OTHER_TEMPERATURE`` for any other."""
OTHER_TEMPERATURE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn: what the user said, and the candidate's reply.

    finish_reason: of the reply; ``context``: the conversation no longer fitted, ``unasked``: an earlier turn did not
    reference: a reference answer, "" if there is none or it is not to be shown
    """

    question: str
    reply: str = ""
    finish_reason: Literal["stop", "length", "context", "unasked"] = "unasked"
    reference: str = ""

    @property
    def answered(self) -> bool:
        return self.finish_reason in ("stop", "length")


class MTBenchOptions(JudgeOptions):
    """Those of every judge without dialogue."""

    form: ClassVar[VerdictForm] = RATING


class MTBench:
    """The protocol ``mt_bench``.

    A record: ``item_id``, ``subject`` (the category), ``source_id``, ``turns`` [{question, reply, finish_reason,
    rating, comment, attempts, status, reference_used}], ``score`` (mean of the known ratings, or None). A turn's
    ``status`` is ``rated``, ``missing_verdict`` (no attempt could be read), ``evaluator_context`` (the evaluator's
    prompt did not fit) or ``unanswered`` (the candidate's did not; ``finish_reason`` says which turn).
    """

    name: ClassVar[str] = "mt_bench"
    version: ClassVar[int] = 1
    roles: ClassVar[tuple[str, ...]] = ("candidate", "evaluator")
    Options: ClassVar[type[MTBenchOptions]] = MTBenchOptions
    score_said: ClassVar[str] = "rating, 1 to 10"
    shown = staticmethod(said.mt_bench)

    def __init__(self, options: MTBenchOptions, *, seed: int, exemplars: Sequence[Item] = ()) -> None:
        self.options = options
        self.seed = seed

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        return (self.rate(item) for item in items)

    def rate(self, item: Item) -> Dialogue[Record]:
        """One item: its conversation, then the ratings of all its turns together."""
        turns = yield from converse(item, self.options, self.seed)
        answered = [turn for turn in turns if turn.answered]
        prompts = [evaluator(answered[: last + 1], self.options) for last in range(len(answered))]
        steps = [f"mt_bench/rating/{number}" for number in range(1, len(answered) + 1)]
        judgements = yield from judge(prompts, steps, self.options, seed=self.seed, item_id=item.id)

        rows = [
            _row(turn, judgements[i] if i < len(judgements) else None, turns[: i + 1]) for i, turn in enumerate(turns)
        ]
        return {
            "item_id": item.id,
            "subject": item.subject,
            "source_id": item.source_id,
            "turns": rows,
            "score": mean([row["rating"] for row in rows if row["rating"] is not None]),
        }

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The set's figures, each mean with a percentile bootstrap interval over items.

        ``score`` is the mean of the items' scores, 1 to 10. What has no rating is counted and never scores 0.
        """

        def figure(values: Sequence[float | None], name: str) -> dict[str, Any]:
            known = [value for value in values if value is not None]
            interval = bootstrap_mean(known, seed=derive_seed(self.seed, "mt_bench", name))
            return {"mean": mean(known), "interval": list(interval) if interval else None, "n": len(known)}

        def by_turn(rows: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
            longest = max((len(record["turns"]) for record in rows), default=0)
            return {
                str(i + 1): figure(
                    [record["turns"][i]["rating"] for record in rows if i < len(record["turns"])],
                    f"{name}/turn/{i + 1}",
                )
                for i in range(longest)
            }

        def categories() -> Iterator[tuple[str, dict[str, Any]]]:
            for name in sorted({record["subject"] for record in records}):
                rows = [record for record in records if record["subject"] == name]
                yield name, {**figure([record["score"] for record in rows], name), "turns": by_turn(rows, name)}

        overall = figure([record["score"] for record in records], "score")
        turns = [turn for record in records for turn in record["turns"]]
        states = Counter(turn["status"] for turn in turns)
        ratings = Counter(turn["rating"] for turn in turns if turn["rating"] is not None)
        return {
            "n": len(records),
            "score": overall["mean"],
            "score_interval": overall["interval"],
            "verdicts": states["rated"],
            "missing_verdicts": states["missing_verdict"],
            "evaluator_context": states["evaluator_context"],
            "unanswered": states["unanswered"],
            "unscored": sum(record["score"] is None for record in records),
            **reply_counts(turns),
            "reference_guided": sum(turn["reference_used"] for turn in turns),
            "turns": by_turn(records, "all"),
            "categories": dict(categories()),
            "ratings": {str(value): ratings[value] for value in RATING.values},
        }

    def prompt_hashes(self) -> dict[str, str]:
        return {name: prompt_hash(name) for name in (CANDIDATE_PLAIN, EVALUATOR_SYSTEM, EVALUATOR)}


def converse(item: Item, options: JudgeOptions, seed: int) -> Generator[Yielded, Any, list[Turn]]:
    """The candidate's conversation: one Turn per turn of the user. It ends where the context is full."""
    questions = (chat_question(item), *item.followups)
    references = shown_references(item, options.reference)
    temperature = TEMPERATURES.get(item.subject, OTHER_TEMPERATURE) if options.temperatures == "category" else 0.0
    turns: list[Turn] = []
    for number, (question, reference) in enumerate(zip(questions, references, strict=True), start=1):
        if turns and not turns[-1].answered:
            turns.append(Turn(question=question, reference=reference))
            continue
        prompt = _conversation(turns, question, options.candidate_format)
        completion: Completion = yield Ask(
            role="candidate",
            prompt=prompt,
            sampling=Sampling(
                max_tokens=options.candidate_tokens,
                temperature=temperature,
                # the same in every protocol, so that one candidate has one conversation
                seed=derive_seed(seed, item.id, f"conversation/{number}", 0) if temperature else 0,
                stop=PLAIN_STOPS if isinstance(prompt, str) else (),
            ),
        )
        turns.append(
            Turn(
                question=question,
                reply=completion.text.strip() if completion.finish_reason != "context" else "",
                finish_reason=completion.finish_reason,
                reference=reference,
            )
        )
    return turns


def shown_references(item: Item, how: Literal["auto", "never", "always"]) -> list[str]:
    """The reference answer of each turn that the evaluator is shown; "" for none.

    An item without ``references`` has its key for the first turn's. ``auto`` shows a published reference in the
    categories of ``GUIDED`` only, a key always: an exam question has one right answer, whatever it is about.
    """
    published = any(text.strip() for text in item.references)
    key = chat_answer(item) if item.choices else item.answer
    texts = item.references if published else (key,)
    number = 1 + len(item.followups)
    if how == "never" or (how == "auto" and published and item.subject not in GUIDED):
        return [""] * number
    return [text if text.strip() else "" for text in [*texts, *[""] * number][:number]]


def evaluator(turns: Sequence[Turn], options: JudgeOptions) -> Prompt:
    """The demand for a rating of the last of these turns."""
    structured = options.verdict == "structured"
    shown = [
        {
            "question": quote(turn.question),
            "reply": quote(turn.reply, options.quote_limit),
            "reference": quote(turn.reference, options.quote_limit) if turn.reference else "",
        }
        for turn in turns
    ]
    system = render(
        EVALUATOR_SYSTEM,
        reference=any(turn.reference for turn in turns),
        free=not structured,
        comment_length=options.comment_length,
    )
    return (Message(role="system", content=system), Message(role="user", content=render(EVALUATOR, turns=shown)))


def reply_counts(turns: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Of the replies in records: how many are empty, and how many were cut by max_tokens."""
    answered = [turn for turn in turns if turn["finish_reason"] in ("stop", "length")]
    return {
        "empty_replies": sum(not turn["reply"] for turn in answered),
        "cut_replies": sum(turn["finish_reason"] == "length" for turn in answered),
    }


def _conversation(turns: Sequence[Turn], question: str, how: Literal["chat", "plain"]) -> Prompt:
    if how == "plain":
        # No line but ours begins with a speaker's label: a transcript has no other structure.
        texts = [(turn.question, turn.reply) for turn in (*turns, Turn(question=question))]
        shown = [
            {"question": without_labels(asked, PLAIN_LABELS), "reply": without_labels(said, PLAIN_LABELS)}
            for asked, said in texts
        ]
        return well_formed(render(CANDIDATE_PLAIN, turns=shown))
    messages: list[Message] = []
    for turn in turns:
        messages += [Message(role="user", content=turn.question), Message(role="assistant", content=turn.reply)]
    return (*messages, Message(role="user", content=question))


def _row(turn: Turn, judgement: Judgement | None, shown: Sequence[Turn]) -> dict[str, Any]:
    states = {"given": "rated", "unreadable": "missing_verdict", "context": "evaluator_context"}
    return {
        "question": turn.question,
        "reply": turn.reply,
        "finish_reason": turn.finish_reason,
        "rating": judgement.value if judgement else None,
        "comment": judgement.comment if judgement else "",
        "attempts": judgement.attempts if judgement else 0,
        "status": states[judgement.status] if judgement else "unanswered",
        "reference_used": judgement is not None and any(earlier.reference for earlier in shown),
    }
