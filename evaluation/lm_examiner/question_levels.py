"""What the questions of a benchmark demand: memorization, comprehension or analysis (LMExamQA, Table 1), and how often
the examiner calls a wrong answer right, or a right one wrong (the paper's pilot: 18 of 100).

Both are put to one model, which would be an examiner: here it is the candidate, for it is what is examined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from evaluation.items import Item
from evaluation.lm_examiner import answering, levels, prompts
from evaluation.lm_examiner import shown as said
from evaluation.lm_examiner import tables as tabled
from evaluation.lm_examiner.questions import QUESTION_WORDS, question_word
from evaluation.lm_examiner.writing import check_answers, classify
from evaluation.protocol import ProtocolOptions, Record
from evaluation.statistics import wilson
from serving.records import Dialogue, derive_seed


class LevelOptions(ProtocolOptions):
    """retries: further attempts at a reply that can't be read
    pilot: whether the examiner also judges, per item, the key and a wrong answer: another option, or (for an open
        question) another item's key
    quote_limit: characters of an answer that it sees
    """

    retries: int = Field(default=2, ge=0, le=10)
    pilot: bool = False
    quote_limit: int = Field(default=8000, ge=100)


class QuestionLevels:
    """A record: ``item_id``, ``subject``, ``level`` (None: unread), ``attempts``, ``word``; with ``pilot`` ``pilot``
    {right, wrong}: what the examiner says of the key and of the wrong answer ``wrong_answer``.
    """

    name: ClassVar[str] = "question_levels"
    version: ClassVar[int] = 1
    roles: ClassVar[tuple[str, ...]] = ("candidate",)
    Options: ClassVar[type[ProtocolOptions]] = LevelOptions
    shown = staticmethod(said.question_levels)
    tables = staticmethod(tabled.question_levels)

    def __init__(self, options: LevelOptions, *, seed: int, exemplars: Sequence[Item] = ()) -> None:
        self.options = options
        self.seed = seed

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        if self.options.pilot:
            for item in items:
                if not item.answer.strip():
                    raise ValueError(f"item {item.id} ({item.benchmark}) has no key, which the pilot needs")
        wrong = [self._wrong_answer(item, items) for item in items] if self.options.pilot else [""] * len(items)
        return (self.classify(item, text) for item, text in zip(items, wrong, strict=True))

    def classify(self, item: Item, wrong: str) -> Dialogue[Record]:
        question = answering.question_of(item)
        options = self.options
        (found,) = yield from classify(
            "candidate", [question], retries=options.retries, seed=self.seed, item_id=f"level/{item.id}"
        )
        record: Record = {
            "item_id": item.id,
            "subject": item.subject,
            "level": found.value,
            "attempts": found.attempts,
            "word": question_word(item.question),
        }
        if not options.pilot:
            return record
        answers = {"right": item.answer_text, **({"wrong": wrong} if wrong else {})}
        said = yield from check_answers(
            "candidate",
            [(question, answer) for answer in answers.values()],
            retries=options.retries,
            seed=self.seed,
            item_id=f"pilot/{item.id}",
            limit=options.quote_limit,
        )
        verdicts = {name: reading.value for name, reading in zip(answers, said, strict=True)}
        return {**record, "pilot": verdicts, "wrong_answer": wrong}

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``levels`` (counts and shares), ``question_words``, ``subjects``; ``pilot``: the share of wrong verdicts."""
        words = Counter(record["word"] for record in records)
        shares = levels.shares(record["level"] for record in records)
        return {
            "n": len(records),
            "levels": shares,
            "question_words": {word: words[word] for word in (*QUESTION_WORDS, "other")},
            "subjects": dict(sorted(Counter(record["subject"] for record in records).items())),
            "unscored": shares[levels.UNCLASSIFIED],
            **({"pilot": _pilot(records)} if any("pilot" in record for record in records) else {}),
        }

    def _wrong_answer(self, item: Item, items: Sequence[Item]) -> str:
        """Another option, or the key of another item, drawn with the seed; "" where there is none that differs."""
        others = list(item.choices) or [other.answer for other in items if other.id != item.id]
        wrong = sorted({text for text in others if text.strip() != item.answer_text.strip()})
        return wrong[derive_seed(self.seed, item.id, "wrong") % len(wrong)] if wrong else ""

    def prompt_hashes(self) -> dict[str, str]:
        return prompts.hashes(prompts.LEVEL, *((prompts.CHECK,) if self.options.pilot else ()))


def _pilot(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    pairs = [(truth, verdict) for record in records for truth, verdict in record["pilot"].items()]
    read = [(truth, verdict) for truth, verdict in pairs if verdict is not None]
    mistakes = sum(truth != verdict for truth, verdict in read)
    interval = wilson(mistakes, len(read))
    figures: dict[str, Any] = {
        "n": len(read),
        "mistaken": mistakes,
        "mistaken_share": mistakes / len(read) if read else None,
        "interval": list(interval) if interval else None,
        "unread": len(pairs) - len(read),
    }
    for truth in ("right", "wrong"):
        own = [verdict for said, verdict in read if said == truth]
        figures[f"{truth}_called_right"] = own.count("right") / len(own) if own else None
    return figures
