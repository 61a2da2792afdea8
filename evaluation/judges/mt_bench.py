"""MT-Bench: a judge rates every turn of a conversation from 1 to 10 (Zheng et al. 2023, arXiv 2306.05685).

The candidate answers the user's first turn, then the later ones with its own answers in the conversation. The evaluator
rates each reply by itself ("single-answer grading"): turn 2's rating sees the whole conversation. For math, reasoning
and coding it is shown a reference answer where there is one, for judges are easily led astray there.

Any other item is a conversation of one turn, with its key for a reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from evaluation.asking.turns import CANDIDATE_PLAIN, Turn, converse, reply_counts
from evaluation.asking.verdict import RATING, Judgement, JudgeOptions, VerdictForm, judge
from evaluation.items import Item
from evaluation.judges import shown as said
from evaluation.protocol import Record
from evaluation.statistics import mean, mean_of
from evaluation.templates import prompt_hash, quote, render
from serving.records import Dialogue, Message, Prompt, derive_seed

EVALUATOR_SYSTEM = "mt_bench_evaluator_system.jinja"
EVALUATOR = "mt_bench_evaluator.jinja"


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
    version: ClassVar[int] = 2
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
        """The set's figures, each mean with an interval over items (``statistics.mean_of``).

        ``score`` is the mean of the items' scores, 1 to 10. What has no rating is counted and never scores 0.
        """

        def figure(values: Sequence[float | None], name: str) -> dict[str, Any]:
            known = [value for value in values if value is not None]
            found = mean_of(known, seed=derive_seed(self.seed, "mt_bench", name), scale=(1.0, 10.0))
            return {**found.to_json(), "n": found.n}

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
            **({"score_interval_note": overall["interval_note"]} if "interval_note" in overall else {}),
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
