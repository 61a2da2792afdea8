"""An exam that an examiner writes from nothing (LMExamQA: Bai et al. 2023, arXiv 2306.04181, section 3.2).

Domains are drawn from a taxonomy with the seed; about each the examiner writes questions, answers them itself (its
reference answers), and classifies them. Another seed draws other domains and samples other questions: a new exam for
each period. The exam is frozen to a file and is a benchmark like any other.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from evaluation.items import Item, make_item
from evaluation.lm_examiner import levels, prompts
from evaluation.lm_examiner import plots as drawn
from evaluation.lm_examiner import shown as said
from evaluation.lm_examiner import tables as tabled
from evaluation.lm_examiner.questions import QUESTION_WORDS, question_word
from evaluation.lm_examiner.taxonomy import Domain, draw_domains, read_taxonomy
from evaluation.lm_examiner.writing import answer_own, check_answers, classify, write_questions
from evaluation.protocol import Built, ProtocolOptions, Record
from evaluation.statistics import wilson
from serving.records import Dialogue, derive_seed


class LMExaminerOptions(ProtocolOptions):
    """domains: leaves that are drawn; questions: per domain
    taxonomy: a JSON tree of id, name, children ("": our own)
    hard: all questions hard and compound (as in peer examination)
    retries: further attempts at what is missing, each with a seed of its own
    temperature: of question writing (0: another seed changes the domains only)
    answer_tokens: max_tokens of a reference answer
    check: whether a second model, role ``checker``, says of each reference answer whether it is right
    quote_limit: characters of an answer that the checker sees
    """

    domains: int = Field(default=20, ge=1)
    questions: int = Field(default=10, ge=1, le=50)
    taxonomy: str = ""
    hard: bool = False
    retries: int = Field(default=3, ge=0, le=20)
    temperature: float = Field(default=0.7, ge=0.0, le=2.0)
    answer_tokens: int = Field(default=300, ge=1)
    check: bool = False
    quote_limit: int = Field(default=8000, ge=100)


class LMExaminerBuilder:
    """The builder ``lm_examiner``. A record per domain: ``item_id`` (the domain's id), ``domain``, ``path``,
    ``questions`` [{number, question, answer, level, level_attempts, word, check}], ``attempts``, ``shortfall``.
    """

    name: ClassVar[str] = "lm_examiner"
    version: ClassVar[int] = 1
    seeds: ClassVar[bool] = False
    Options: ClassVar[type[ProtocolOptions]] = LMExaminerOptions
    rehearsal: ClassVar[Sequence[Mapping[str, str]]] = (
        {
            "match": r"Number them from 1 to (?P<n>\d+), one question per line",
            "lines": "n",
            "reply": "{number}. What is {word} {word} {word}?",
        },
    )
    size_option: ClassVar[str] = "domains"
    shown = staticmethod(said.written)
    tables = staticmethod(tabled.written)
    plots = staticmethod(drawn.written)

    def __init__(self, options: LMExaminerOptions, *, seed: int) -> None:
        self.options = options
        self.seed = seed
        self.taxonomy = read_taxonomy(Path(options.taxonomy).expanduser() if options.taxonomy else None)
        self.domains = draw_domains(self.taxonomy, options.domains, seed)

    @property
    def roles(self) -> tuple[str, ...]:
        return ("examiner", "checker") if self.options.check else ("examiner",)

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        return (self.write(domain) for domain in self.domains)

    def write(self, domain: Domain) -> Dialogue[Record]:
        """One domain's questions, each with the examiner's own answer and its level."""
        options = self.options
        written = yield from write_questions(
            "examiner",
            domain,
            options.questions,
            retries=options.retries,
            temperature=options.temperature,
            seed=self.seed,
            hard=options.hard,
        )
        questions: list[str] = written["questions"]
        simple = 0 if options.hard else min(prompts.SIMPLE, options.questions // 3)
        answers = yield from answer_own("examiner", questions, simple=simple, max_tokens=options.answer_tokens)
        named = yield from classify(
            "examiner", questions, retries=options.retries, seed=self.seed, item_id=f"level/{domain.id}"
        )
        checked = []
        if options.check:
            checked = yield from check_answers(
                "checker",
                list(zip(questions, answers, strict=True)),
                retries=options.retries,
                seed=self.seed,
                item_id=f"check/{domain.id}",
                limit=options.quote_limit,
            )
        rows = [
            {
                "number": number,
                "question": question,
                "answer": answer,
                "level": reading.value,
                "level_attempts": reading.attempts,
                "word": question_word(question),
                "check": checked[number - 1].value if checked else None,
            }
            for number, (question, answer, reading) in enumerate(zip(questions, answers, named, strict=True), start=1)
        ]
        return {
            "item_id": domain.id,
            "domain": domain.name,
            "path": list(domain.path),
            "questions": rows,
            "attempts": written["attempts"],
            "shortfall": written["shortfall"],
        }

    def finish(self, items: Sequence[Item], records: Sequence[Mapping[str, Any]]) -> Built:
        """Items with unique questions and a reference answer; what is left out is counted.

        The summary: ``asked``, ``written`` and ``shortfall`` (of valid questions), ``refused`` by reason,
        ``unanswered`` and ``repeated`` (in two domains; the first stays), ``levels``, ``question_words``, ``domains``,
        ``exam_sha256`` (of the items as JSON lines), the taxonomy's hash.
        """
        made: list[Item] = []
        kept: list[Mapping[str, Any]] = []
        seen: set[str] = set()
        unanswered = repeated = 0
        for record in records:
            for row in record["questions"]:
                key = " ".join(row["question"].casefold().split())
                if not row["answer"].strip():
                    unanswered += 1
                elif key in seen:
                    repeated += 1
                else:
                    seen.add(key)
                    kept.append(row)
                    made.append(_item(record, row))
        attempts = [attempt for record in records for attempt in record["attempts"]]
        refused: Counter[str] = Counter()
        for attempt in attempts:
            refused.update(attempt["refused"])
        words = Counter(row["word"] for row in kept)
        summary = {
            "domains_drawn": len(records),
            "asked": len(records) * self.options.questions,
            "written": sum(len(record["questions"]) for record in records),
            "shortfall": sum(record["shortfall"] for record in records),
            "short_domains": sum(record["shortfall"] > 0 for record in records),
            "attempts": len(attempts),
            "unnumbered_attempts": sum(not attempt["numbered"] for attempt in attempts),
            "cut_attempts": sum(attempt["cut"] for attempt in attempts),
            "unanswered": unanswered,
            "repeated": repeated,
            "refused": dict(sorted(refused.items())),
            "levels": levels.shares(row["level"] for row in kept),
            "question_words": {word: words[word] for word in (*QUESTION_WORDS, "other")},
            "domains": {record["domain"]: len(record["questions"]) for record in records},
            "exam_sha256": exam_hash(made),
            "taxonomy": {
                "leaves": len(self.taxonomy.leaves),
                "nodes": self.taxonomy.nodes,
                "ids": self.taxonomy.ids,
                "sha256": self.taxonomy.sha256,
            },
            **({"check": _checked(kept)} if self.options.check else {}),
        }
        return Built(items=made, summary=summary, sets={})

    def prompt_hashes(self) -> dict[str, str]:
        names = (prompts.QUESTIONS, prompts.REFERENCE, prompts.LEVEL, *((prompts.CHECK,) if self.options.check else ()))
        return {**prompts.hashes(*names), "taxonomy": self.taxonomy.sha256}


def exam_hash(items: Sequence[Item]) -> str:
    """SHA-256 of the items as JSON lines, keys sorted."""
    lines = "".join(json.dumps(item.to_json(), ensure_ascii=False, sort_keys=True) + "\n" for item in items)
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()


def sample_rows(records: Sequence[Mapping[str, Any]], n: int, seed: int) -> list[dict[str, Any]]:
    """At most ``n`` questions with the examiner's answers, drawn with the seed: a sheet on which people check them."""
    rows = [
        {"domain": record["domain"], "question": row["question"], "answer": row["answer"], "right": ""}
        for record in records
        for row in record["questions"]
    ]
    return sorted(rows, key=lambda row: derive_seed(seed, "sheet", row["domain"], row["question"]))[:n]


def _item(record: Mapping[str, Any], row: Mapping[str, Any]) -> Item:
    return make_item(
        benchmark="lm_examiner",
        split="test",
        subject=record["domain"],
        question=row["question"],
        choices=(),
        answer=row["answer"],
        source_id=levels.source_id(record["item_id"], row["number"], row["level"]),
    )


def _checked(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the second model says of the reference answers: a self-check, not the truth."""
    verdicts = [row["check"] for row in rows if row["check"] is not None]
    right = verdicts.count("right")
    interval = wilson(right, len(verdicts))
    return {
        "n": len(verdicts),
        "right": right,
        "share_right": right / len(verdicts) if verdicts else None,
        "interval": list(interval) if interval else None,
        "unread": len(rows) - len(verdicts),
    }
