"""The static exam: a benchmark's questions, asked once.

Three ways to ask (option ``mode``):

- ``letter``: the log-probability of each option's letter after the question with its options;
- ``cloze``: the log-likelihood of each option's text after the question alone, and beside it what is right when it is
  divided by the option's characters (``acc_norm``) or UTF-8 bytes (``acc_bytes``), as lm-evaluation-harness names them;
- ``generate``: a greedy reply, from which the answer is extracted without guessing (``evaluation.extraction``).

Of equally probable options the first is the prediction, as numpy's argmax has it in lm-evaluation-harness.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from evaluation.benchmarks.splits import exemplars_for
from evaluation.extraction import answer_of, is_right
from evaluation.formats import (
    chat_answer,
    chat_question,
    cloze_prompt,
    letter_continuation,
    plain_answer,
    plain_prompt,
    question_block,
    step_by_step,
)
from evaluation.items import LETTERS, Item
from evaluation.protocol import ProtocolOptions, Record
from evaluation.show.blocks import Block, say
from evaluation.show.table import Column
from evaluation.statistics import Interval, wilson
from serving.records import Ask, Completion, Dialogue, Message, Prompt, Sampling, Score, TokenScores

# A base model goes on with the next question; anything earlier might be the answer itself.
PLAIN_STOPS = ("\nQuestion:",)
ANSWER_TOKENS = 64
WORKED_SOLUTION_TOKENS = 400


class StaticOptions(ProtocolOptions):
    """mode: ``letter``, ``cloze`` or ``generate``
    shots: exemplars before the question, the same for all items of a subject
    text_format: ``plain`` (``Question: ...\\nA. ...\\nAnswer:``) or ``chat`` (through the model's chat template)
    max_tokens: of a reply in mode ``generate`` (None: 64, or 400 where a number is to be worked out)
    chain_of_thought: mode ``generate`` in ``chat`` format: the candidate is told to reason step by step before it
        answers; give it room (max_tokens)
    """

    mode: Literal["letter", "cloze", "generate"] = "letter"
    shots: int = Field(default=0, ge=0, le=64)
    text_format: Literal["plain", "chat"] = "plain"
    max_tokens: int | None = Field(default=None, ge=1)
    chain_of_thought: bool = False

    @model_validator(mode="after")
    def _reasoning_is_asked_for_in_a_chat(self) -> StaticOptions:
        if self.chain_of_thought and (self.mode != "generate" or self.text_format != "chat"):
            raise ValueError("chain_of_thought needs mode: generate and text_format: chat")
        return self


class Static:
    """The protocol ``static``.

    A record: ``item_id``, ``subject``, ``mode``, ``status`` (right, wrong, unparsable), ``correct``, ``prediction`` (a
    letter, or None), ``answer``, ``options`` (their number, 0 for an open question), then ``log_likelihoods`` (per
    option, None where it is not a finite number; the item is unparsable then), in mode cloze ``prediction_norm``,
    ``correct_norm``, ``prediction_bytes`` and ``correct_bytes``, in mode generate ``reply`` and ``finish_reason``.
    """

    name: ClassVar[str] = "static"
    version: ClassVar[int] = 3
    roles: ClassVar[tuple[str, ...]] = ("candidate",)
    Options: ClassVar[type[ProtocolOptions]] = StaticOptions
    called: ClassVar[str] = "static accuracy"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("accuracy_leaked", "acc. leaked %", 100, 1, 1, "leaked"),
        Column("accuracy_untouched", "acc. untouched %", 100, 1, 1, "untouched"),
    )
    score_said: ClassVar[str] = "1 right, 0 wrong"
    right_or_wrong: ClassVar[bool] = True

    def __init__(self, options: StaticOptions, *, seed: int, exemplars: Sequence[Item] = ()) -> None:
        self.options = options
        self.seed = seed
        self.exemplars = tuple(exemplars)

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        for item in items:
            if not item.answer.strip():
                raise ValueError(f"item {item.id} ({item.benchmark}) has no key; it is for a judge (mt_bench)")
            if self.options.mode != "generate" and not item.choices:
                raise ValueError(
                    f"item {item.id} ({item.benchmark}) has no choices, so mode {self.options.mode!r} can't ask it; "
                    "use mode: generate"
                )
        shots = [exemplars_for(item, self.exemplars, self.options.shots, self.seed) for item in items]
        ask = self._generate if self.options.mode == "generate" else self._choose
        return (ask(item, examples) for item, examples in zip(items, shots, strict=True))

    def _choose(self, item: Item, shots: Sequence[Item]) -> Dialogue[Record]:
        """Modes letter and cloze: every option is a continuation of one prompt."""
        prompt = self._prompt(item, shots)
        scores: list[TokenScores] = yield [
            Score(role="candidate", prompt=prompt, continuation=continuation, answer_only=True)
            for continuation in self._continuations(item)
        ]
        values = [_log_likelihood(table) for table in scores]
        record = self._record(item, _argmax(values))
        record["log_likelihoods"] = values
        if self.options.mode == "cloze":
            lengths = {
                "norm": [len(choice) for choice in item.choices],
                "bytes": [len(choice.encode("utf-8", "surrogatepass")) for choice in item.choices],
            }
            for name, sizes in lengths.items():
                best = _argmax([None if v is None else v / max(1, n) for v, n in zip(values, sizes, strict=True)])
                record[f"prediction_{name}"] = best
                record[f"correct_{name}"] = best == item.answer
        return record

    def _generate(self, item: Item, shots: Sequence[Item]) -> Dialogue[Record]:
        """Mode generate: one greedy reply, from which the answer is extracted."""
        worked = self.options.chain_of_thought or (item.form == "number" and not item.choices)
        room = WORKED_SOLUTION_TOKENS if worked else ANSWER_TOKENS
        stop = PLAIN_STOPS if self.options.text_format == "plain" else ()
        completion: Completion = yield Ask(
            role="candidate",
            prompt=self._prompt(item, shots),
            sampling=Sampling(max_tokens=self.options.max_tokens or room, stop=stop),
        )
        reply = completion.text.strip()
        said = answer_of(completion, item)
        record = self._record(item, said, correct=is_right(said, item))
        return {**record, "reply": reply, "finish_reason": completion.finish_reason}

    def _prompt(self, item: Item, shots: Sequence[Item]) -> Prompt:
        cloze = self.options.mode == "cloze"
        if self.options.text_format == "chat":
            messages: list[Message] = []
            for shot in shots:
                answer = shot.answer_text if cloze else chat_answer(shot)
                messages += [Message(role="user", content=self._chat(shot)), Message(role="assistant", content=answer)]
            return (*messages, Message(role="user", content=self._chat(item)))
        ask = cloze_prompt if cloze else plain_prompt
        examples = [f"{ask(shot)} {shot.answer_text if cloze else plain_answer(shot)}" for shot in shots]
        return "\n\n".join([*examples, ask(item)])

    def _chat(self, item: Item) -> str:
        if self.options.chain_of_thought:
            return step_by_step(item)
        return question_block(item) if self.options.mode == "cloze" else chat_question(item)

    def _continuations(self, item: Item) -> list[str]:
        """A space belongs between ``Answer:`` and the option, none after a template's generation prompt."""
        letters = LETTERS[: len(item.choices)]
        texts = list(item.choices) if self.options.mode == "cloze" else list(letters)
        if self.options.text_format == "chat":
            return texts
        return [f" {text}" for text in texts] if self.options.mode == "cloze" else [*map(letter_continuation, letters)]

    def _record(self, item: Item, prediction: str | None, correct: bool | None = None) -> Record:
        correct = prediction == item.answer if correct is None else correct
        return {
            "item_id": item.id,
            "subject": item.subject,
            "mode": self.options.mode,
            "status": "unparsable" if prediction is None else "right" if correct else "wrong",
            "correct": correct,
            "prediction": prediction,
            "answer": item.answer,
            "options": len(item.choices),
        }

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``accuracy`` is right / n: an unparsable reply is not right, and ``unparsable_rate`` says how many there are.

        ``chance`` is the mean of 1 / options (0 for an open question). ``acc_norm`` and ``acc_bytes`` in mode cloze
        only. Per subject the same figures.
        """
        subjects: dict[str, list[Mapping[str, Any]]] = {}
        for record in records:
            subjects.setdefault(record["subject"], []).append(record)
        return {**_figures(records), "subjects": {name: _figures(subjects[name]) for name in sorted(subjects)}}

    @staticmethod
    def row(halves: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The accuracy on each half, with its interval."""
        found: dict[str, Any] = {"accuracy_leaked": None, "accuracy_untouched": None}
        for half, figures in halves.items():
            found[f"accuracy_{half}"], found[f"accuracy_{half}_ci"] = figures["accuracy"], figures["accuracy_interval"]
        return found

    @staticmethod
    def shown(record: Mapping[str, Any]) -> list[Block]:
        """The reply, or the options' log-likelihoods; what was read, and the key."""
        found = []
        if record.get("reply") is not None:
            found.append(say("candidate", record["reply"], f"ended by {record.get('finish_reason', '-')}"))
        rows = []
        for letter, value in zip(LETTERS, record.get("log_likelihoods") or (), strict=False):
            marks = ["chosen"] if letter == record["prediction"] else []
            marks += ["key"] if letter == record["answer"] else []
            rows.append([letter, value, ", ".join(marks)])
        if rows:
            found.append({"t": "bars", "who": "log-likelihood of each option, nats", "rows": rows})
        read = record["prediction"] if record["prediction"] is not None else "nothing"
        return [*found, say("result", f"{record['status']}: read {read}, key {record['answer']}")]

    def prompt_hashes(self) -> dict[str, str]:
        """None: the plain formats are code (``evaluation.formats``), under ``version``."""
        return {}


def _figures(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    n = len(records)
    counts = {
        status: sum(record["status"] == status for record in records) for status in ("right", "wrong", "unparsable")
    }
    figures: dict[str, Any] = {
        "n": n,
        "accuracy": counts["right"] / n if n else None,
        "accuracy_interval": _pair(wilson(counts["right"], n)),
        **counts,
        "unparsable_rate": counts["unparsable"] / n if n else None,
        # a model that gives no likelihood has not answered wrongly: it has not been examined
        "unscored": sum(record["status"] == "unparsable" and record["mode"] != "generate" for record in records),
        "chance": math.fsum(1 / record["options"] for record in records if record["options"]) / n if n else None,
    }
    for name in ("norm", "bytes"):
        if any(f"correct_{name}" in record for record in records):
            right = sum(record[f"correct_{name}"] for record in records)
            figures[f"acc_{name}"] = right / n
            figures[f"acc_{name}_interval"] = _pair(wilson(right, n))
    return figures


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)


def _log_likelihood(table: TokenScores) -> float | None:
    """None where no token of the option was scored, or a value is NaN or infinite (a broken or overflowing model)."""
    value = table.answer_logprob()
    return value if "answer" in table.segments and math.isfinite(value) else None


def _argmax(values: Sequence[float | None]) -> str | None:
    """The letter of the greatest value, the first of equals; None if one is missing, for then nothing is comparable."""
    known = [value for value in values if value is not None]
    return LETTERS[known.index(max(known))] if known and len(known) == len(values) else None
