"""The static exam: a benchmark's questions, asked once.

Three ways to ask (option ``mode``):

- ``letter``: the log-probability of each option's letter after the question with its options;
- ``cloze``: the log-likelihood of each option's text after the question alone, and beside it what is right when it is
  divided by the option's characters (``acc_norm``) or UTF-8 bytes (``acc_bytes``), as lm-evaluation-harness names them;
- ``generate``: a greedy reply, from which the answer is extracted without guessing (``evaluation.extraction``).

Options that are equally probable share the item: 1/k where the key is among the k best, so that a model which tells no
option from another is at chance wherever the keys stand. (lm-evaluation-harness takes the first of them.)

A question that its model can't see whole is not examined: of a prompt longer than the context exemplars are dropped
first, and an item that is too long alone is left unscored (option ``overlong``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from evaluation import static_results as results
from evaluation.benchmarks.splits import copies_of, exemplars_for
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
from evaluation.show.table import Column
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
    overlong: an item that is longer than the candidate's context is left ``unscored``, or ``scored`` by what is left of
        it, the end (modes letter and cloze)
    """

    mode: Literal["letter", "cloze", "generate"] = "letter"
    shots: int = Field(default=0, ge=0, le=64)
    text_format: Literal["plain", "chat"] = "plain"
    max_tokens: int | None = Field(default=None, ge=1)
    chain_of_thought: bool = False
    overlong: Literal["unscored", "scored"] = "unscored"

    @model_validator(mode="after")
    def _reasoning_is_asked_for_in_a_chat(self) -> StaticOptions:
        if self.chain_of_thought and (self.mode != "generate" or self.text_format != "chat"):
            raise ValueError("chain_of_thought needs mode: generate and text_format: chat")
        return self


class Static:
    """The protocol ``static``.

    A record: ``item_id``, ``subject``, ``mode``, ``status`` (right, wrong, unparsable, tied, unscored), ``correct``
    (None of a tied or unscored item), ``prediction`` (a letter, or None), ``answer``, ``options`` (their number, 0 for
    an open question), then ``log_likelihoods`` (per option, None where it is not a finite number; the item is
    unparsable then), in mode cloze ``prediction_norm``, ``correct_norm``, ``prediction_bytes`` and ``correct_bytes``,
    in mode generate ``reply`` and ``finish_reason``. Only where it happened:

    - ``tied``: the letters of the equally probable options, and ``credit``, 1 / their number, if the key is among them;
      in mode cloze ``tied_norm``, ``credit_norm``, ``tied_bytes`` and ``credit_bytes`` alike
    - ``exemplar_copies``: items of the pool that ask the same and were kept out of the prompt
    - ``exemplars_dropped``: how many of the first exemplars did not fit into the context
    - ``cut``: tokens by which the item alone is longer than the context; not scored, unless ``overlong`` says so
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
        return (self._noted(item, ask(item, examples)) for item, examples in zip(items, shots, strict=True))

    def _noted(self, item: Item, asked: Dialogue[Record]) -> Dialogue[Record]:
        record = yield from asked
        copies = copies_of(item, self.exemplars) if self.options.shots else []
        return {**record, "exemplar_copies": len(copies)} if copies else record

    def _choose(self, item: Item, shots: Sequence[Item]) -> Dialogue[Record]:
        """Modes letter and cloze: every option is a continuation of one prompt, with as many exemplars as fit."""
        for dropped in range(len(shots) + 1):
            prompt = self._prompt(item, shots[dropped:])
            scores: list[TokenScores] = yield [
                Score(role="candidate", prompt=prompt, continuation=continuation, answer_only=True)
                for continuation in self._continuations(item)
            ]
            cut = max(table.dropped for table in scores)
            if not cut:
                break
        length = {**({"exemplars_dropped": dropped} if dropped else {}), **({"cut": cut} if cut else {})}
        if cut and self.options.overlong == "unscored":
            return {**self._unscored(item), **length}
        values = [results.log_likelihood(table) for table in scores]
        record = {**self._head(item), **results.chosen(values, item.answer), "log_likelihoods": values}
        record["status"] = results.status(record)
        if self.options.mode == "cloze":
            lengths = {
                "norm": [len(choice) for choice in item.choices],
                "bytes": [len(choice.encode("utf-8", "surrogatepass")) for choice in item.choices],
            }
            for name, sizes in lengths.items():
                divided = [None if v is None else v / max(1, n) for v, n in zip(values, sizes, strict=True)]
                record |= {f"{key}_{name}": value for key, value in results.chosen(divided, item.answer).items()}
        return {**record, **length}

    def _generate(self, item: Item, shots: Sequence[Item]) -> Dialogue[Record]:
        """Mode generate: one greedy reply, from which the answer is extracted; as many exemplars as leave it room."""
        worked = self.options.chain_of_thought or (item.form == "number" and not item.choices)
        room = self.options.max_tokens or (WORKED_SOLUTION_TOKENS if worked else ANSWER_TOKENS)
        stop = PLAIN_STOPS if self.options.text_format == "plain" else ()
        for dropped in range(len(shots) + 1):
            completion: Completion = yield Ask(
                role="candidate",
                prompt=self._prompt(item, shots[dropped:]),
                sampling=Sampling(max_tokens=room, stop=stop),
            )
            squeezed = completion.finish_reason == "length" and completion.output_tokens < room
            if completion.finish_reason != "context" and not squeezed:
                break
        reply = completion.text.strip()
        ended = {"reply": reply, "finish_reason": completion.finish_reason}
        length = {"exemplars_dropped": dropped} if dropped else {}
        if completion.finish_reason == "context":
            return {**self._unscored(item), **ended, **length}
        said = answer_of(completion, item)
        record = {**self._head(item), "prediction": said, "correct": is_right(said, item)}
        return {**record, "status": results.status(record), **ended, **length}

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

    def _head(self, item: Item) -> Record:
        """What every record begins with; the result takes the places that are kept for it."""
        return {
            "item_id": item.id,
            "subject": item.subject,
            "mode": self.options.mode,
            "status": "",
            "correct": None,
            "prediction": None,
            "answer": item.answer,
            "options": len(item.choices),
        }

    def _unscored(self, item: Item) -> Record:
        return {**self._head(item), "status": "unscored"}

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``accuracy`` is right / (n - overlong), a tied item counting 1/k: an unparsable reply is not right, and
        ``unparsable_rate`` says how many there are; an item that its model could not see whole has no result.

        ``tied``: items whose best options are equally probable. ``overlong``: items longer than the context, unless
        they are scored (``cut_and_scored``). ``unscored``: overlong ones and those without finite likelihoods.
        ``fewer_exemplars``: scored items whose first exemplars did not fit; ``exemplar_copies``: those with copies of
        themselves in the pool, left out. ``chance`` is the mean of 1 / options over the same items as the accuracy
        (0 for an open question). ``acc_norm`` and ``acc_bytes`` in mode cloze only. Per subject the same figures.
        Wilson's interval takes the credit of tied items as successes.
        """
        subjects: dict[str, list[Mapping[str, Any]]] = {}
        for record in records:
            subjects.setdefault(record["subject"], []).append(record)
        return {
            **results.figures(records),
            "subjects": {name: results.figures(subjects[name]) for name in sorted(subjects)},
        }

    @staticmethod
    def row(halves: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The accuracy on each half, with its interval."""
        found: dict[str, Any] = {"accuracy_leaked": None, "accuracy_untouched": None}
        for half, figures in halves.items():
            found[f"accuracy_{half}"], found[f"accuracy_{half}_ci"] = figures["accuracy"], figures["accuracy_interval"]
        return found

    shown = staticmethod(results.shown)
    score = staticmethod(results.score)

    def prompt_hashes(self) -> dict[str, str]:
        """None: the plain formats are code (``evaluation.formats``), under ``version``."""
        return {}
