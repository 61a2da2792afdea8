"""The builder ``probing``: a benchmark's items, rewritten by meta probing agents (MPA, arXiv 2402.14865, section 3).

A probing agent rewrites, code and a judge agent accept or turn down, several sets are made with different seeds. The
principles, their order and the named sets: ``evaluation.probing.principles``; the loop: ``evaluation.probing.agent``.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from evaluation.asking.until_read import together
from evaluation.items import Item
from evaluation.probing import agent
from evaluation.probing import published as papers
from evaluation.probing import shown as said
from evaluation.probing.agent import Loop, Stage
from evaluation.probing.compose import compose, set_name, variants
from evaluation.probing.judge import AcceptOptions
from evaluation.probing.summary import summary
from evaluation.probing.version import CHOICE_CHAIN, QUESTION_CHAIN, SETS, Version, stages
from evaluation.protocol import Built, ProtocolOptions, Record
from serving.records import Dialogue, Yielded


class ProbingOptions(ProtocolOptions):
    """probes: the named sets that are made, the first of them as the exam itself (``evaluation.probing.principles``)
    sets: how many of each, with different seeds
    attempts: at a rewrite, at most
    on_rejection: ``feedback`` tells the agent why its last attempt was turned down; ``resample`` only asks again
    max_growth: how many times longer than before a text may become
    prober_tokens: of one attempt
    verdict, comment_length, retries: of the judge, as in every judge's options (``evaluation.asking.verdict``)
    augment: also make the set ``variants``: every accepted version of each item, for the recipe ``augmented`` to train
        on beside the items themselves
    """

    probes: tuple[str, ...] = ("all",)
    sets: int = Field(default=3, ge=1, le=20)
    attempts: int = Field(default=5, ge=1, le=20)
    on_rejection: Literal["feedback", "resample"] = "feedback"
    max_growth: float = Field(default=3.0, ge=1.0, le=20.0)
    prober_tokens: int = Field(default=512, ge=16)
    verdict: Literal["structured", "free"] = "structured"
    comment_length: int = Field(default=160, ge=8, le=4000)
    retries: int = Field(default=2, ge=0, le=10)
    augment: bool = False

    @field_validator("probes", mode="before")
    @classmethod
    def _known_and_once(cls, value: Any) -> Any:
        names = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else value
        if isinstance(names, list):
            unknown = next((name for name in names if name not in SETS), None)
            if not names or unknown is not None or len(set(names)) < len(names):
                raise ValueError(f"name each set once, out of {', '.join(SETS)}")
            return tuple(names)
        return value


class Probing:
    """The builder ``probing``.

    A record is one item in one set: ``item_id``, ``subject``, ``set`` (from 1), ``question`` and ``choices``: by stage
    (``p1``, ``p1+p4``, ...) {status, reason, attempts [{text, result, reason}], and the stem or options that came of
    it}. Principle p3 needs no model; it is done in ``finish``.
    """

    name: ClassVar[str] = "probing"
    version: ClassVar[int] = 2
    seeds: ClassVar[bool] = True
    Options: ClassVar[type[ProtocolOptions]] = ProbingOptions
    rehearsal: ClassVar[Sequence[Mapping[str, str]]] = ()  # an item on which every attempt failed is kept as it was
    size_option: ClassVar[str] = ""
    shown = staticmethod(said.build)
    published = staticmethod(papers.published)

    def __init__(self, options: ProbingOptions, *, seed: int) -> None:
        self.options = options
        self.seed = seed
        self.loop = Loop(
            attempts=options.attempts,
            feedback=options.on_rejection == "feedback",
            max_growth=options.max_growth,
            tokens=options.prober_tokens,
            accept=AcceptOptions(
                verdict=options.verdict, comment_length=options.comment_length, retries=options.retries
            ),
        )

    @property
    def roles(self) -> tuple[str, ...]:
        return ("prober", "evaluator")

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        """One conversation per set and item, sets in order. ValueError for items that have no key or are dialogues."""
        for item in items:
            if not item.answer.strip() or item.followups:
                raise ValueError(
                    f"item {item.id} ({item.benchmark}) has no key or is a conversation; probing rewrites single "
                    "questions with a known answer"
                )
        first = self.options.probes[0]
        if items and not any(item.choices for item in items) and not set(SETS[first]) & set(QUESTION_CHAIN):
            raise ValueError(f"probing.probes: {first} changes options only, and these items have none")
        return (self._probe(item, number) for number in range(1, self.options.sets + 1) for item in items)

    def _probe(self, item: Item, number: int) -> Dialogue[Record]:
        """Both chains of one item side by side; within each, a stage starts from the one before it."""
        vanilla = Version.of(item)
        question, choices = yield from together(
            [
                self._chain(vanilla, stages(self.options.probes, order), item.id, number)
                for order in (QUESTION_CHAIN, CHOICE_CHAIN)
            ]
        )
        return {
            "item_id": item.id,
            "benchmark": item.benchmark,
            "subject": item.subject,
            "set": number,
            "question": {name: {**_row(stage), "stem": stage.version.stem} for name, stage in question.items()},
            "choices": {
                name: {**_row(stage), "options": list(stage.version.choices)} for name, stage in choices.items()
            },
        }

    def _chain(
        self, vanilla: Version, names: Sequence[str], item_id: str, number: int
    ) -> Generator[Yielded, Any, dict[str, Stage]]:
        """The stages of one chain, those of equal depth together."""
        done: dict[str, Stage] = {}
        for depth in range(1 + max((name.count("+") for name in names), default=-1)):
            now = [name for name in names if name.count("+") == depth]
            starts = [name.rpartition("+")[0] for name in now]
            results = yield from together(
                [
                    agent.rewrite(
                        name,
                        done[start].version if start else vanilla,
                        vanilla=vanilla,
                        loop=self.loop,
                        seed=self.seed,
                        item_id=item_id,
                        number=number,
                    )
                    for name, start in zip(now, starts, strict=True)
                ]
            )
            done.update(zip(now, results, strict=True))
        return done

    def finish(self, items: Sequence[Item], records: Sequence[Mapping[str, Any]]) -> Built:
        """``items``: the first named set with the first seed; ``sets``: ``NAME.set-2``, ... of it, and for every other
        named set ``NAME``, ``NAME.set-2``, ...; a set that no item can be put into (open questions have no options) is
        left out.

        An item that a set's principles can't be applied to at all is not part of that set. One on which every attempt
        failed is, as it was (a fallback); ``summary["fallbacks"]`` names it.
        """
        made = compose(items, records, self.options.probes, self.options.sets, seed=self.seed)
        first, *others = made
        sets = {set_name(*key): made[key].items for key in others}
        if self.options.augment:
            sets["variants"] = variants(items, made.values())
        return Built(
            items=made[first].items,
            summary=summary(records, made),
            sets={name: part for name, part in sets.items() if part},
        )

    def unfit(self, setting: str) -> str:
        """Why a recipe's setting (``rewrites``, ``variants``) can't name this build, a sentence's end; "": it can."""
        first = self.options.probes[0]
        if setting == "variants" and not self.options.augment:
            return " makes no variants; set its option augment: true"
        if setting == "rewrites" and "p1" not in SETS[first]:
            return (
                f": its exam is {first!r}, which leaves the question's words as they are; let probes begin with one "
                "that has p1, e.g. p1"
            )
        return ""

    def prompt_hashes(self) -> dict[str, str]:
        return agent.hashes()


def _row(stage: Stage) -> dict[str, Any]:
    return {"status": stage.status, "reason": stage.reason, "attempts": stage.attempts}
