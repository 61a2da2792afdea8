"""A model examines: it marks open answers, and asks on where an answer was perfect (LMExamQA, arXiv 2306.04181).

The candidate answers each question (0-shot, or with the shipped exemplars), the examiner gives five marks. Of the
answers with full marks some are followed up: the examiner writes a new question on what the answer uses, the candidate
sees that question only, and is marked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from evaluation.items import Item
from evaluation.lm_examiner import answering, levels, prompts
from evaluation.lm_examiner import plots as drawn
from evaluation.lm_examiner import shown as said
from evaluation.lm_examiner import tables as tabled
from evaluation.lm_examiner.marking import FULL, ExaminerOptions, mark, marks_row
from evaluation.lm_examiner.marks import by, by_level, figures
from evaluation.lm_examiner.questions import find_questions, question_word
from evaluation.protocol import ProtocolOptions, Record
from evaluation.statistics import wilson
from evaluation.templates import one_line, unquoted, well_formed
from serving.records import Ask, Completion, Dialogue, Sampling, derive_seed

FOLLOWUP_TOKENS = 120


class LMExaminerProtocolOptions(ExaminerOptions):
    """Those of every examiner (``evaluation.lm_examiner.marking``), and:

    candidate_format: ``chat``, or ``plain`` for a candidate without a chat template, cut at the line break
    reference: whether the examiner is shown the key (``always``) or marks from its own knowledge (``never``)
    rounds: 1: no follow-up; k: at most k - 1 follow-up questions
    followups: items, drawn with the seed, whose answers are followed up if they get full marks. The draw knows no
        answer, so these are a random sample of the answers with full marks
    levels: a file of levels by the protocol ``question_levels``, for items that don't carry their own
    """

    candidate_format: answering.AnswerFormat = "chat"
    reference: Literal["never", "always"] = "never"
    rounds: int = Field(default=2, ge=1, le=10)
    followups: int = Field(default=1000, ge=0)
    levels: str = ""


class LMExaminer:
    """The protocol ``lm_examiner``.

    A record: ``item_id``, ``subject``, ``level``, ``word``, ``rounds`` [{question, reply, finish_reason, marks,
    overall, comment, attempts, status}], and the first round's ``marks`` and ``overall``. A round's ``status`` is
    ``given``, ``unreadable`` (no attempt gave marks), ``context`` (the examiner's prompt did not fit), ``unanswered``
    (the candidate's did not) or ``no_question`` (the examiner wrote none).
    """

    name: ClassVar[str] = "lm_examiner"
    version: ClassVar[int] = 2
    roles: ClassVar[tuple[str, ...]] = ("candidate", "examiner")
    Options: ClassVar[type[ProtocolOptions]] = LMExaminerProtocolOptions
    score_said: ClassVar[str] = "1 full marks, 0 not"
    shown = staticmethod(said.exam)
    tables = staticmethod(tabled.exams)
    plots = staticmethod(drawn.exams)

    def __init__(self, options: LMExaminerProtocolOptions, *, seed: int, exemplars: Sequence[Item] = ()) -> None:
        self.options = options
        self.seed = seed
        self.levels = levels.read_levels(Path(options.levels).expanduser()) if options.levels else {}

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        drawn = sorted(items, key=lambda item: derive_seed(self.seed, item.id, "followup"))[: self.options.followups]
        followed = {item.id for item in drawn}
        return (self.examine(item, followed=item.id in followed) for item in items)

    def examine(self, item: Item, *, followed: bool) -> Dialogue[Record]:
        """One item: an answer and its marks, and further rounds as long as the marks are full."""
        options = self.options
        question = answering.question_of(item)
        rounds: list[dict[str, Any]] = []
        while True:
            number = len(rounds) + 1
            completion: Completion = yield answering.ask(
                "candidate",
                question,
                how=options.candidate_format,
                shots=options.few_shot,
                max_tokens=options.answer_tokens,
            )
            reply = well_formed(completion.text).strip()
            row: dict[str, Any] = {"question": question, "reply": reply, "finish_reason": completion.finish_reason}
            if completion.finish_reason == "context":
                rounds.append({**row, **_NOT_MARKED, "status": "unanswered"})
                break
            key = item.answer_text if options.reference == "always" and number == 1 else ""
            (reading,) = yield from mark(
                "examiner", [(question, reply, key)], [f"marks/{number}"], options, seed=self.seed, item_id=item.id
            )
            rounds.append({**row, **marks_row(reading)})
            if not followed or number >= options.rounds or rounds[-1]["overall"] != FULL:
                break
            written: Completion = yield Ask(
                role="examiner",
                prompt=prompts.followup(question, reply, limit=options.quote_limit),
                sampling=Sampling(max_tokens=FOLLOWUP_TOKENS),
            )
            question = _one_question(written)
            if not question:
                rounds.append(
                    {"question": "", "reply": "", "finish_reason": "unasked", **_NOT_MARKED, "status": "no_question"}
                )
                break
        return {
            "item_id": item.id,
            "subject": item.subject,
            "level": levels.level_of(item, self.levels),
            "word": question_word(item.question),
            "marks": rounds[0]["marks"],
            "overall": rounds[0]["overall"],
            "rounds": rounds,
        }

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``full_marks_share`` and ``dimensions``, overall, per level and per domain; later ``rounds``; ``unscored``.

        A round's share of full marks is over the rounds that were marked. Nothing without marks counts as 0.
        """
        whole = figures(records, seed=self.seed)
        firsts = [record["rounds"][0] for record in records]
        longest = max((len(record["rounds"]) for record in records), default=1)
        return {
            **whole,
            "unscored": whole["unmarked"],
            "unreadable": sum(row["status"] == "unreadable" for row in firsts),
            "examiner_context": sum(row["status"] == "context" for row in firsts),
            "unanswered": sum(row["status"] == "unanswered" for row in firsts),
            "empty_replies": sum(not row["reply"] and row["status"] != "unanswered" for row in firsts),
            "cut_replies": sum(row["finish_reason"] == "length" for row in firsts),
            "second_round_share": _round(records, 1)["full_marks_share"],
            "rounds": {str(index + 1): _round(records, index) for index in range(longest)},
            "levels": by_level(records, seed=self.seed),
            "domains": by(records, "subject", seed=self.seed),
        }

    @staticmethod
    def score(record: Mapping[str, Any]) -> float | None:
        """Full marks (1) or not (0), as the exam's headline figure counts them; None without marks."""
        return None if record["overall"] is None else float(record["overall"] == FULL)

    def prompt_hashes(self) -> dict[str, str]:
        """Those of the prompts, and of the file of levels: other levels make other figures."""
        named = prompts.hashes(prompts.MARKS_SYSTEM, prompts.MARKS, prompts.FOLLOWUP)
        if not self.options.levels:
            return named
        import hashlib

        return {**named, "levels": hashlib.sha256(repr(sorted(self.levels.items())).encode()).hexdigest()}


_NOT_MARKED: dict[str, Any] = {"marks": None, "overall": None, "comment": "", "attempts": 0}


def _one_question(written: Completion) -> str:
    """The first question of a follow-up, or the whole text where it is one line that is none; "" for nothing."""
    if written.finish_reason == "context":
        return ""
    found = find_questions(written.text, cut=written.finish_reason == "length")
    return found[0].text if found else one_line(well_formed(unquoted(written.text)))


def _round(records: Sequence[Mapping[str, Any]], index: int) -> dict[str, Any]:
    rows = [record["rounds"][index] for record in records if index < len(record["rounds"])]
    marked = [row for row in rows if row["marks"] is not None]
    full = sum(row["overall"] == FULL for row in marked)
    interval = wilson(full, len(marked))
    return {
        "asked": len(rows),
        "n": len(marked),
        "full_marks": full,
        "full_marks_share": full / len(marked) if marked else None,
        "interval": list(interval) if interval else None,
    }
