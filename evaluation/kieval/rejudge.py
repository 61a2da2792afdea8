"""Another evaluator judges stored interviews (KIEval, section 3.3): how far does a score depend on its judge?

The records of ``kieval`` are read; the candidate and the interactor are asked nothing. The evaluator judges every
round, shown the stored conversation and its own earlier verdicts. The same model can judge again by votes: each is
sampled with a seed of its own, and a round's verdict is their majority (``kieval_judge.majority``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from evaluation.items import Item
from evaluation.kieval import prompts as prompts
from evaluation.kieval.conversation import Conversation
from evaluation.kieval.judge import Judgement, judge, majority
from evaluation.kieval.options import JudgeOptions
from evaluation.kieval.rejudge_agreement import agreement
from evaluation.kieval.scores import VARIANTS, figure, paper, released, token_means
from evaluation.protocol import ProtocolOptions, Record
from serving.records import Dialogue

Records = Sequence[Mapping[str, Any]]


class Rejudge:
    """The protocol ``rejudge``.

    A record: ``item_id``, ``subject``; ``rounds`` [{overall, verdict, votes [{overall, stop, attempts}], attempts,
    dropped_rounds}]; ``would_stop_at``: index of the first round at which this evaluator would have stopped, or None;
    ``scores`` {paper, released}: as the protocol scores the interview that ends there (paper: the rounds after it are
    0); ``scores_all_rounds`` {paper, released}: of every stored round; ``missing_verdicts``, ``tokens``.

    The stored interview's length stands. Where its own evaluator ended it and this one wouldn't have, the rounds that
    didn't take place are left out of both scores: nobody knows what they would have been worth.
    """

    name: ClassVar[str] = "rejudge"
    version: ClassVar[int] = 2
    roles: ClassVar[tuple[str, ...]] = ("evaluator",)
    Options: ClassVar[type[ProtocolOptions]] = JudgeOptions

    def __init__(
        self, options: JudgeOptions, *, seed: int, exemplars: Sequence[Item] = (), originals: Records = ()
    ) -> None:
        """originals: the stored records of ``kieval``, one for each item that will be asked for, in any order."""
        self.options = options
        self.seed = seed
        self.originals = originals

    def dialogues(self, items: Sequence[Item], originals: Records | None = None) -> Iterator[Dialogue[Record]]:
        """One generator per item, in their order. ValueError (at once) for an item without a stored interview."""
        stored = _matched([item.id for item in items], self.originals if originals is None else originals)
        return (self._judge_again(item, original) for item, original in zip(items, stored, strict=True))

    def _judge_again(self, item: Item, original: Mapping[str, Any]) -> Dialogue[Record]:
        conversation = Conversation.about(item, self.roles)
        conversation.first_answer = original["first_answer"]["text"]
        judgements: list[Judgement] = []
        for number, stored in enumerate(original["rounds"], start=1):
            turn = prompts.Turn(question=stored["question"], reply=stored["reply"])
            conversation.turns.append(turn)
            judgement = yield from judge(
                conversation,
                self.options,
                seed=self.seed,
                step=f"rejudge/verdict/{number}",
            )
            turn.verdict = majority([vote.verdict for vote in judgement.votes if vote.verdict])
            turn.dropped = dict(conversation.dropped)
            judgements.append(judgement)
        return self._record(conversation, judgements, original["rounds_allowed"])

    def _record(self, conversation: Conversation, judgements: Sequence[Judgement], allowed: int) -> Record:
        turns = conversation.turns
        overall = [turn.verdict.overall if turn.verdict else None for turn in turns]
        stop = next((i for i, turn in enumerate(turns) if turn.verdict is not None and turn.verdict.stop), None)
        heard = overall if stop is None else overall[: stop + 1]
        return {
            "item_id": conversation.item.id,
            "subject": conversation.item.subject,
            "rounds": [
                {
                    "overall": score,
                    "verdict": turn.verdict.to_json() if turn.verdict else None,
                    "votes": judgement.to_json(),
                    "attempts": judgement.attempts,
                    "dropped_rounds": turn.dropped["evaluator"],
                }
                for turn, score, judgement in zip(turns, overall, judgements, strict=True)
            ],
            "would_stop_at": stop,
            "scores": {
                "paper": paper(heard, rounds=allowed, stopped_early=stop is not None),
                "released": released(heard),
            },
            "scores_all_rounds": {
                "paper": paper(overall, rounds=allowed, stopped_early=False),
                "released": released(overall),
            },
            "missing_verdicts": overall.count(None),
            "tokens": conversation.tokens,
        }

    def summarise(self, records: Records, originals: Records | None = None) -> dict[str, Any]:
        """The new evaluator's figures, as ``kieval`` gives them, and ``agreement`` with the stored one's.

        ``would_stop_earlier``: interviews that it would have ended before their stored end. ``missing_votes``: of all
        votes, those that couldn't be read.
        """
        stored = _matched([r["item_id"] for r in records], self.originals if originals is None else originals)
        variants = {
            name: figure([r["scores"][name] for r in records], f"rejudge/{name}", self.seed) for name in VARIANTS
        }
        rounds = [turn for record in records for turn in record["rounds"]]
        return {
            "n": len(records),
            "score": variants["released"]["mean"],
            "score_interval": variants["released"]["interval"],
            **variants,
            "all_rounds": {
                name: figure([r["scores_all_rounds"][name] for r in records], f"rejudge/all/{name}", self.seed)
                for name in VARIANTS
            },
            "rounds_judged": len(rounds),
            "missing_verdicts": sum(r["missing_verdicts"] for r in records),
            "missing_votes": sum(vote["overall"] is None for turn in rounds for vote in turn["votes"]),
            "unscored": sum(r["scores"]["released"] is None for r in records),
            "would_stop_earlier": sum(
                r["would_stop_at"] is not None and r["would_stop_at"] < len(r["rounds"]) - 1 for r in records
            ),
            "tokens": token_means(records, self.roles),
            "agreement": agreement(records, stored, seed=self.seed),
        }

    def prompt_hashes(self) -> dict[str, str]:
        return prompts.hashes((prompts.EVALUATOR_SYSTEM, prompts.EVALUATOR))


def _matched(item_ids: Sequence[str], originals: Records) -> list[Mapping[str, Any]]:
    """The stored record of each item; of an item that was examined twice, its records in their order."""
    waiting: dict[str, list[Mapping[str, Any]]] = {}
    for record in originals:
        waiting.setdefault(record["item_id"], []).append(record)
    matched = []
    for item_id in item_ids:
        if not waiting.get(item_id):
            raise ValueError(
                f"item {item_id} has no stored interview; give the records of kieval that belong to the items"
            )
        record = waiting[item_id].pop(0)
        if "rounds_allowed" not in record or not isinstance(record.get("rounds"), list):
            raise ValueError(
                f"the record of item {item_id} is none of kieval, version 2 or later (no rounds or rounds_allowed); "
                "run that exam again"
            )
        matched.append(record)
    return matched
