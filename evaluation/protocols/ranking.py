"""Candidates are ranked by an examiner that compares their answers, pair by pair (LMExamQA, arXiv 2306.04181).

A protocol of a group: every candidate is a role, all of them answer a question, and one dialogue compares the answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from evaluation.items import Item
from evaluation.lm_examiner import answering, levels, prompts
from evaluation.lm_examiner.comparing import compare, consistency
from evaluation.lm_examiner.marking import ExaminerOptions
from evaluation.lm_examiner.ranking import bradley_terry, win_rates
from evaluation.lm_examiner.schedules import most_comparisons, run_schedule
from evaluation.protocols.base import ProtocolOptions, Record
from evaluation.templates import well_formed
from serving.records import Completion, Dialogue, derive_seed

EXAMINER = "examiner"


class RankingOptions(ExaminerOptions):
    """Those of every examiner (``evaluation.lm_examiner.marking``), and:

    schedule: ``merge_sort`` or ``all_pairs``, per question
    plain: candidates without a chat template, asked in plain text
    """

    schedule: Literal["merge_sort", "all_pairs"] = "merge_sort"
    plain: tuple[str, ...] = ()


class Ranking:
    """The protocol ``ranking`` for the candidates it is made with.

    A record: ``item_id``, ``subject``, ``level``, ``answers`` {candidate: {text, finish_reason}}, ``input_order``
    (drawn with the seed), ``comparisons`` [{pair, choices, points, consistent, attempts}], ``order`` (best first).
    """

    name: ClassVar[str] = "ranking"
    version: ClassVar[int] = 1
    Options: ClassVar[type[ProtocolOptions]] = RankingOptions

    def __init__(self, options: RankingOptions, *, candidates: Sequence[str], seed: int) -> None:
        check_names(candidates, least=2, taken=(EXAMINER,))
        unknown = [name for name in options.plain if name not in candidates]
        if unknown:
            raise ValueError(f"ranking.plain: {unknown[0]!r} is no candidate; there are: {', '.join(candidates)}")
        self.options = options
        self.candidates = tuple(candidates)
        self.seed = seed

    @property
    def roles(self) -> tuple[str, ...]:
        return (*self.candidates, EXAMINER)

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        return (self.rank(item) for item in items)

    def rank(self, item: Item) -> Dialogue[Record]:
        """One question: everybody's answer, then comparisons by the schedule."""
        options = self.options
        question = answering.question_of(item)
        completions: list[Completion] = yield [
            answering.ask(
                name,
                question,
                how="plain" if name in options.plain else "chat",
                shots=options.few_shot,
                max_tokens=options.answer_tokens,
            )
            for name in self.candidates
        ]
        texts = {n: well_formed(c.text).strip() for n, c in zip(self.candidates, completions, strict=True)}
        order = sorted(self.candidates, key=lambda name: derive_seed(self.seed, item.id, "order", name))
        ranked = yield from run_schedule(
            options.schedule,
            order,
            lambda pair: compare(EXAMINER, question, texts, pair, options, seed=self.seed, item_id=item.id),
        )
        return {
            "item_id": item.id,
            "subject": item.subject,
            "level": levels.level_of(item),
            "answers": {
                name: {"text": texts[name], "finish_reason": completion.finish_reason}
                for name, completion in zip(self.candidates, completions, strict=True)
            },
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


def check_names(names: Sequence[str], *, least: int, taken: Sequence[str] = ()) -> None:
    """ValueError for too few models, a repeated name, or one that is a role of the protocol."""
    if len(names) < least:
        raise ValueError(f"there are {len(names)} models ({', '.join(names) or 'none'}); it takes at least {least}")
    for place, name in enumerate(names):
        if name in names[:place] or name in taken or not name.strip():
            raise ValueError(f"the model name {name!r} is {'repeated' if name in names[:place] else 'taken or blank'}")
