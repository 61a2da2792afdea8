"""Models examine each other: each is examiner once (LMExamQA, arXiv 2306.04181, section 5).

Each writes hard questions about the same domains, marks the others' answers, and compares them. None marks or compares
its own answers, so that preference for one's own style falls away.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from evaluation.asking.until_read import Reading, together
from evaluation.items import Item, make_item
from evaluation.lm_examiner import plots as drawn
from evaluation.lm_examiner import prompts
from evaluation.lm_examiner import shown as said
from evaluation.lm_examiner import tables as tabled
from evaluation.lm_examiner.answering import GroupOptions, answer, check_names, check_plain, input_order
from evaluation.lm_examiner.comparing import compare
from evaluation.lm_examiner.marking import Marks, mark, marks_row
from evaluation.lm_examiner.peer_summary import summarise
from evaluation.lm_examiner.schedules import Ranked, run_schedule
from evaluation.lm_examiner.taxonomy import Domain, draw_domains, read_taxonomy
from evaluation.lm_examiner.writing import write_questions
from evaluation.protocol import ProtocolOptions, Record
from serving.records import Dialogue, Yielded, derive_seed


class PeerOptions(GroupOptions):
    """Those of every group (``evaluation.lm_examiner.answering``), and:

    domains, questions: per examiner ``domains`` x ``questions`` hard questions; all have the same domains
    taxonomy: as in the builder ``lm_examiner``
    writing_retries, temperature: of question writing
    answer_tokens: responses end after so many tokens (400 in the paper, for examiners with short contexts); the record
        says which were cut (``finish_reason: length``)
    schedule: of the comparisons on a question
    cross_judge: every examiner compares on every question, not only its author (never its own answers)
    max_inconsistency: an examiner that contradicts itself in more of its pairs is left out of the combined matrices
    own_answers: each also answers its own questions, and all mark that answer: for self-preference alone, it enters no
        table and no comparison
    """

    domains: int = Field(default=20, ge=1)
    questions: int = Field(default=5, ge=1, le=50)
    taxonomy: str = ""
    writing_retries: int = Field(default=3, ge=0, le=20)
    temperature: float = Field(default=0.7, ge=0.0, le=2.0)
    answer_tokens: int = Field(default=400, ge=1)
    schedule: Literal["merge_sort", "all_pairs"] = "all_pairs"
    cross_judge: bool = False
    max_inconsistency: float = Field(default=0.5, ge=0.0, le=1.0)
    own_answers: bool = False


class PeerExamination:
    """The protocol ``peer_examination`` for the models it is made with (at least three).

    A record per examiner and domain: ``item_id``, ``examiner``, ``domain``, ``attempts``, ``shortfall``, ``questions``
    [{question, answers {model: {text, finish_reason}}, marks {model: {examiner: row}}, comparisons {examiner: [...]},
    orders {examiner: [...]}}]. A mark's row is that of ``marking.marks_row``.
    """

    name: ClassVar[str] = "peer_examination"
    version: ClassVar[int] = 2
    rehearsed: ClassVar[bool] = False
    """What peers ask depends on the questions that they write."""
    Options: ClassVar[type[ProtocolOptions]] = PeerOptions
    shown = staticmethod(said.peer_examination)
    tables = staticmethod(tabled.peer_examinations)
    plots = staticmethod(drawn.peers)
    notices = staticmethod(tabled.peer_notices)

    def __init__(self, options: PeerOptions, *, candidates: Sequence[str], seed: int) -> None:
        check_names(candidates, least=3)
        check_plain(self.name, options, candidates)
        self.options = options
        self.models = tuple(candidates)
        self.seed = seed
        self.taxonomy = read_taxonomy(Path(options.taxonomy).expanduser() if options.taxonomy else None)
        self.domains = {domain.id: domain for domain in draw_domains(self.taxonomy, options.domains, seed)}

    @property
    def roles(self) -> tuple[str, ...]:
        return self.models

    def assignments(self) -> list[Item]:
        """Each examiner with each domain, as items (``subject``: the examiner, ``answer``: the domain's id)."""
        return [
            make_item(
                benchmark=self.name,
                split="test",
                subject=examiner,
                question=f"{examiner}: {domain.name}",
                choices=(),
                answer=domain.id,
            )
            for domain in self.domains.values()
            for examiner in self.models
        ]

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        return (self.examine(item.id, item.subject, self.domains[item.answer]) for item in items)

    def examine(self, item_id: str, examiner: str, domain: Domain) -> Dialogue[Record]:
        """One examiner's questions about one domain, all of them side by side."""
        options = self.options
        written = yield from write_questions(
            examiner,
            domain,
            options.questions,
            retries=options.writing_retries,
            temperature=options.temperature,
            # of its own, or models with equal weights would write equal questions
            seed=derive_seed(self.seed, "examiner", examiner),
            hard=True,
        )
        rows = yield from together(
            [self._question(f"{item_id}/{n}", examiner, text) for n, text in enumerate(written["questions"])]
        )
        return {
            "item_id": item_id,
            "examiner": examiner,
            "domain": domain.name,
            "attempts": written["attempts"],
            "shortfall": written["shortfall"],
            "questions": rows,
        }

    def _question(self, key: str, examiner: str, question: str) -> Generator[Yielded, Any, dict[str, Any]]:
        options = self.options
        others = [name for name in self.models if name != examiner]
        answering_models = [*others, *([examiner] if options.own_answers else [])]
        answers = yield from answer(answering_models, question, options)
        texts = answers.texts
        judges = self.models if options.cross_judge else (examiner,)
        marked = yield from together([self._marks(key, judge, question, texts, examiner) for judge in self.models])
        ranked = yield from together([self._compare(key, judge, question, texts, others) for judge in judges])
        return {
            "question": question,
            "answers": answers.rows,
            "marks": {name: _by_judge(name, dict(zip(self.models, marked, strict=True))) for name in answering_models},
            "comparisons": {
                judge: [comparison.to_json() for comparison in found.comparisons]
                for judge, found in zip(judges, ranked, strict=True)
            },
            "orders": {judge: list(found.order) for judge, found in zip(judges, ranked, strict=True)},
        }

    def _marks(
        self, key: str, judge: str, question: str, texts: Mapping[str, str], author: str
    ) -> Generator[Yielded, Any, dict[str, Reading[Marks]]]:
        """The author marks all answers it has not given; with ``own_answers`` everybody marks the author's own, too."""
        wanted = [name for name in texts if name != author] if judge == author else []
        if self.options.own_answers:
            wanted.append(author)
        readings = yield from mark(
            judge,
            [(question, texts[name], "") for name in wanted],
            [f"marks/{judge}/{name}" for name in wanted],
            self.options,
            seed=self.seed,
            item_id=key,
        )
        return dict(zip(wanted, readings, strict=True))

    def _compare(
        self, key: str, judge: str, question: str, texts: Mapping[str, str], others: Sequence[str]
    ) -> Generator[Yielded, Any, Ranked]:
        names = [name for name in others if name != judge]
        order = input_order(names, seed=self.seed, key=key)
        return (
            yield from run_schedule(
                self.options.schedule,
                order,
                lambda pair: compare(
                    judge, question, texts, pair, self.options, seed=self.seed, item_id=f"{key}/{judge}"
                ),
            )
        )

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The tables (``evaluation.lm_examiner.peer_summary``)."""
        return summarise(
            records,
            self.models,
            max_inconsistency=self.options.max_inconsistency,
            seed=self.seed,
            own_answers=self.options.own_answers,
            asked=self.options.questions,
        )

    def prompt_hashes(self) -> dict[str, str]:
        names = (prompts.QUESTIONS, prompts.MARKS_SYSTEM, prompts.MARKS, prompts.COMPARE_SYSTEM, prompts.COMPARE)
        return {**prompts.hashes(*names), "taxonomy": self.taxonomy.sha256}


def _by_judge(name: str, marked: Mapping[str, Mapping[str, Reading[Marks]]]) -> dict[str, Any]:
    return {judge: marks_row(found[name]) for judge, found in marked.items() if name in found}
