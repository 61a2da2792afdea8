"""Candidates are ranked by an examiner that compares their answers, pair by pair (LMExamQA, arXiv 2306.04181).

A protocol of a group: every candidate is a role, all of them answer a question, and one dialogue compares the answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from evaluation.items import Item
from evaluation.lm_examiner import answering, levels, prompts
from evaluation.lm_examiner import plots as drawn
from evaluation.lm_examiner import shown as said
from evaluation.lm_examiner import tables as tabled
from evaluation.lm_examiner.answering import GroupOptions, answer, check_names, check_plain, input_order
from evaluation.lm_examiner.comparing import compare, consistency
from evaluation.lm_examiner.ranking import bradley_terry, win_rates
from evaluation.lm_examiner.schedules import most_comparisons, run_schedule
from evaluation.protocol import ProtocolOptions, Record
from serving.records import Dialogue, derive_seed

EXAMINER = "examiner"


class RankingOptions(GroupOptions):
    """Those of every group (``evaluation.lm_examiner.answering``), and:

    schedule: ``merge_sort`` or ``all_pairs``, per question
    """

    schedule: Literal["merge_sort", "all_pairs"] = "merge_sort"


class Ranking:
    """The protocol ``ranking`` for the candidates it is made with.

    A record: ``item_id``, ``subject``, ``level``, ``answers`` {candidate: {text, finish_reason}}, ``input_order``
    (drawn with the seed), ``comparisons`` [{pair, choices, points, consistent, attempts}], ``order`` (best first).
    """

    name: ClassVar[str] = "ranking"
    version: ClassVar[int] = 2
    Options: ClassVar[type[ProtocolOptions]] = RankingOptions
    shown = staticmethod(said.ranking)
    tables = staticmethod(tabled.rankings)
    plots = staticmethod(drawn.rankings)
    notices = staticmethod(tabled.ranking_notices)

    def __init__(self, options: RankingOptions, *, candidates: Sequence[str], seed: int) -> None:
        check_names(candidates, least=2, taken=(EXAMINER,))
        check_plain(self.name, options, candidates)
        self.options = options
        self.candidates = tuple(candidates)
        self.seed = seed

    @property
    def roles(self) -> tuple[str, ...]:
        return (*self.candidates, EXAMINER)

    def assignments(self) -> None:
        """It is held on the items it is given."""

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        return (self.rank(item) for item in items)

    def rank(self, item: Item) -> Dialogue[Record]:
        """One question: everybody's answer, then comparisons by the schedule."""
        options = self.options
        question = answering.question_of(item)
        answers = yield from answer(self.candidates, question, options)
        order = input_order(self.candidates, seed=self.seed, key=item.id)
        ranked = yield from run_schedule(
            options.schedule,
            order,
            lambda pair: compare(EXAMINER, question, answers.texts, pair, options, seed=self.seed, item_id=item.id),
        )
        return {
            "item_id": item.id,
            "subject": item.subject,
            "level": levels.level_of(item),
            "answers": answers.rows,
            "input_order": order,
            "comparisons": [comparison.to_json() for comparison in ranked.comparisons],
            "order": list(ranked.order),
        }

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``win_rates`` (``evaluation.lm_examiner.ranking``), ``bradley_terry``, the examiner's ``consistency``, and
        ``calls``: comparisons per question, made and at most for both schedules, and verdicts asked in all.
        """
        rows = [row for record in records for row in record["comparisons"]]
        n = len(self.candidates)
        per_question = [len(record["comparisons"]) for record in records]
        consistent = consistency(rows)
        return {
            "n": len(records),
            "schedule_of_pairs": self.options.schedule,
            "inconsistency": consistent["inconsistency"],
            "consistency": consistent,
            "calls": {
                "comparisons": len(rows),
                "verdicts": sum(row["attempts"] for row in rows),
                "least_verdicts": 2 * len(rows),
                "most_per_question": max(per_question, default=0),
                "mean_per_question": sum(per_question) / len(records) if records else None,
                "at_most": {name: most_comparisons(name, n) for name in ("merge_sort", "all_pairs")},
            },
            "win_rates": win_rates(records, self.candidates),
            "bradley_terry": bradley_terry(records, self.candidates, seed=derive_seed(self.seed, "bradley_terry")),
            # a question of which nothing could be read
            "unscored": sum(
                bool(record["comparisons"]) and all(row["points"] is None for row in record["comparisons"])
                for record in records
            ),
        }

    def prompt_hashes(self) -> dict[str, str]:
        return prompts.hashes(prompts.COMPARE_SYSTEM, prompts.COMPARE)
