"""IDGen: a generator grows new items from seeds, so that they separate strong from weak models (arXiv 2409.18892).

One dialogue per seed: category, then drafts by the instruction gradient (critic, response gradient), usability or
mathematical checks, reference answers. Near-duplicates are dropped at the end, over all seeds: a dialogue sees its own
only. So a reference answer is written for a few drafts that are dropped after it; the items are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from evaluation.extraction.numbers import extract_number
from evaluation.idgen import checking, growing, references
from evaluation.idgen import shown as said
from evaluation.idgen.asking import Desk
from evaluation.idgen.checking import math_checks, usability
from evaluation.idgen.duplicates import Duplicate, near_duplicates
from evaluation.idgen.funnel import cost, funnel
from evaluation.idgen.growing import Draft
from evaluation.idgen.options import IDGenOptions
from evaluation.idgen.references import reference
from evaluation.idgen.strategies import draw
from evaluation.items import Item, make_item
from evaluation.protocol import Built, ProtocolOptions, Record
from evaluation.templates import prompt_hash
from serving.records import Dialogue

REHEARSAL = (
    {
        "match": r"Write (a new (question|problem) on the basis of this one|one new exam question)|You improve exam "
        "questions",
        "reply": "What is {word} {word} {word} {word}?",
    },
    {
        "match": "You review exam questions before they are used",  # a critic always has something to say
        "reply": '{"suggestions": "Ask why.", "difficulty": 2, "discrimination": 2}',
    },
    {
        "match": "You decide whether a question can be used in an exam",
        "reply": '{"comment": "", "safe": 1, "neutral": 1, "complete": 1, "feasible": 1}',
    },
    {
        "match": "You check a problem before it is used in a mathematics exam",
        "reply": '{"reasoning": "", "concepts": 1, "relations": 1, "solvable": 1, "sensible": 1, "repair": ""}',
    },
)


class IDGen:
    """The builder ``idgen``.

    A record: ``item_id`` (the seed's), ``subject``, ``class`` (math or general), ``category``, ``drafts`` (see
    ``growing.Draft``), ``cost`` {role: {calls, prompt, output}}.

    Roles: generator; critic (option ``critic``); judge (usability and scores of references); checker_1 and checker_2
    (mathematics), which must be models with different weights; answerer_1 to answerer_n (they vote, too).
    """

    name: ClassVar[str] = "idgen"
    version: ClassVar[int] = 2
    seeds: ClassVar[bool] = True
    Options: ClassVar[type[ProtocolOptions]] = IDGenOptions
    rehearsal: ClassVar[Sequence[Mapping[str, str]]] = REHEARSAL
    size_option: ClassVar[str] = ""
    shown = staticmethod(said.build)

    def __init__(self, options: IDGenOptions, *, seed: int) -> None:
        self.options = options
        self.seed = seed

    @property
    def roles(self) -> tuple[str, ...]:
        options = self.options
        checkers = () if options.classes == "general" else checking.CHECKERS
        judge = () if options.classes == "math" else ("judge",)
        answerers = references.answerers(options.answerers) if options.references else ()
        return ("generator", *(["critic"] if options.critic else []), *judge, *checkers, *answerers)

    @property
    def different_weights(self) -> tuple[tuple[str, str], ...]:
        """Pairs of roles that may not be played by one model."""
        needed = self.options.classes != "general" and not self.options.same_checkers
        return ((checking.CHECKERS[0], checking.CHECKERS[1]),) if needed else ()

    @property
    def allow_generator(self) -> bool:
        """Whether the model that wrote the exam may sit it."""
        return self.options.allow_generator

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        if not items:
            raise ValueError("idgen grows items from seeds, and there are none; name a benchmark")
        return (self.grow(item) for item in items)

    def grow(self, item: Item) -> Dialogue[Record]:
        """One seed: all its drafts, one after the other."""
        options = self.options
        desk = Desk(seed=self.seed, item_id=item.id, retries=options.retries)
        math, field = yield from growing.category(item, options, desk)
        names = options.math_strategies if math else options.general_strategies
        drafts: list[Draft] = []
        for number, drawn in enumerate(draw(names, options.per_seed, math=math, seed=self.seed, item_id=item.id)):
            draft = yield from growing.instruction(item, drawn, number, math=math, options=options, desk=desk)
            if draft.alive and options.critic:
                yield from growing.critic(draft, number, options, desk)
            if math or not options.response_gradient or not draft.alive:
                drafts.append(draft)
                continue
            if options.keep == "both":
                drafts.append(draft)
            drafts.append((yield from growing.response(draft, field, number, options, desk)))
        for number, draft in enumerate(drafts):
            if draft.alive:
                yield from (math_checks if math else usability)(draft, str(number), options, desk)
            if draft.alive and options.references:
                yield from reference(draft, str(number), math=math, options=options, desk=desk)
        return {
            "item_id": item.id,
            "subject": item.subject,
            "class": "math" if math else "general",
            "category": field,
            "drafts": [draft.to_json() for draft in drafts],
            "cost": desk.cost,
        }

    def finish(self, items: Sequence[Item], records: Sequence[Mapping[str, Any]]) -> Built:
        """The items: the drafts that passed all steps, without near-duplicates, in the order of their seeds."""
        places, drafts = [], []
        for record in records:
            for number, draft in enumerate(record["drafts"]):
                if not draft["step"]:
                    places.append((record, number))
                    drafts.append(draft)
        twins = near_duplicates([draft["question"] for draft in drafts], self.options.duplicates)
        out = {twin.index for twin in twins}
        dropped: dict[tuple[str, int], Duplicate] = {
            (places[twin.index][0]["item_id"], places[twin.index][1]): twin for twin in twins
        }
        kept = [
            _item(record, draft)
            for index, ((record, _), draft) in enumerate(zip(places, drafts, strict=True))
            if index not in out
        ]
        final = [draft for index, draft in enumerate(drafts) if index not in out]
        ties = sum(bool(draft["reference"] and draft["reference"]["tie"]) for draft in final)
        summary = {
            "seeds": len(records),
            "drafts": sum(len(record["drafts"]) for record in records),
            "kept": len(kept),
            "funnel": funnel(records, dropped),
            "strategies": dict(sorted(Counter(draft["strategy"] for draft in final).items())),
            "reference_ties": ties,
            "same_checkers": self.options.same_checkers,
            "cost": cost(records, len(kept)),
        }
        return Built(items=kept, summary=summary, sets={})

    def prompt_hashes(self) -> dict[str, str]:
        names = (*growing.PROMPTS, *checking.PROMPTS, *references.PROMPTS)
        return {name: prompt_hash(name) for name in names}


def _item(record: Mapping[str, Any], draft: Mapping[str, Any]) -> Item:
    """A kept draft. The number a mathematical reference arrives at is the item's key, where it states one."""
    chosen = draft["reference"]
    answer: Mapping[str, Any] = {"text": "", "cut": False} if chosen is None else chosen["answers"][chosen["chosen"]]
    text = answer["text"]
    number = extract_number(text, cut_off=answer["cut"]) if text and record["class"] == "math" else None
    return make_item(
        benchmark="idgen",
        split="",
        subject=record["category"],
        question=draft["question"],
        choices=(),
        answer=number or "",
        form="text" if number is None else "number",
        references=(text,) if text else (),
        source_id=record["item_id"],
    )
