"""Style bias: does an examiner prefer an answer for its manner? (LMExamQA, arXiv 2306.04181, section 6.)

A candidate's answer is rewritten by another model in its own style, same content and length; each examiner compares the
original with the rewrite in both orders. In the paper people keep the equivalent pairs; a judge's filter is a stand-in
and named so, until a filled sheet takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from pydantic import Field

from evaluation.asking.form import one_word
from evaluation.asking.until_read import ask_until_read, together
from evaluation.items import Item
from evaluation.lm_examiner import answering, prompts
from evaluation.lm_examiner import shown as said
from evaluation.lm_examiner import tables as tabled
from evaluation.lm_examiner.answering import GroupOptions, answer, check_names, check_plain
from evaluation.lm_examiner.comparing import Pair, compare, consistency
from evaluation.protocol import ProtocolOptions, Record
from evaluation.statistics import mean_of
from evaluation.templates import well_formed
from serving.records import Ask, Completion, Dialogue, Sampling, derive_seed

ORIGINAL: Final = "original"
REWRITE: Final = "rewrite"
PARTS: Final = ("writer", "stylist", "filter")
EQUIVALENT_FORM: Final = one_word("verdict", ("same", "different"), max_tokens=28)


class StyleOptions(GroupOptions):
    """Those of every group (``evaluation.lm_examiner.answering``; the writer alone answers), and:

    length_tolerance: a rewrite may differ from its original by this share of the original's words
    """

    length_tolerance: float = Field(default=0.5, ge=0.0)


class StyleBias:
    """The protocol ``style_bias``; the candidates it is made with are the examiners.

    Roles: ``writer`` answers, ``stylist`` rewrites, ``filter`` says whether both say the same, then the examiners.
    A record: ``item_id``, ``question``, ``original``, ``rewrite``, ``equivalent`` (the filter's word, None: unread),
    ``length_ratio``, ``kept``, ``comparisons`` {examiner: comparison of (original, rewrite)}.
    All pairs are compared, kept or not, so that a human filter can take the judge's place afterwards.
    """

    name: ClassVar[str] = "style_bias"
    version: ClassVar[int] = 2
    examined: ClassVar[bool] = False
    """Its candidates are examiners: they answer none of the items."""
    Options: ClassVar[type[ProtocolOptions]] = StyleOptions
    shown = staticmethod(said.style_bias)
    tables = staticmethod(tabled.style_biases)

    def __init__(self, options: StyleOptions, *, candidates: Sequence[str], seed: int) -> None:
        check_names(candidates, least=1, taken=PARTS)
        check_plain(self.name, options, PARTS[:1])
        self.options = options
        self.examiners = tuple(candidates)
        self.seed = seed

    @property
    def roles(self) -> tuple[str, ...]:
        return (*PARTS, *self.examiners)

    def assignments(self) -> None:
        """It is held on the items it is given."""

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        return (self.compare(item) for item in items)

    def compare(self, item: Item) -> Dialogue[Record]:
        """One question: an answer, its rewrite, the filter's word, and every examiner's preference."""
        options = self.options
        question = answering.question_of(item)
        original = (yield from answer(("writer",), question, options)).texts["writer"]
        second: Completion = yield Ask(
            role="stylist",
            prompt=prompts.restyle(question, original, limit=options.quote_limit),
            sampling=Sampling(max_tokens=2 * options.answer_tokens),
        )
        texts = {ORIGINAL: original, REWRITE: well_formed(second.text).strip()}
        (same,) = yield from ask_until_read(
            "filter",
            [prompts.equivalent(question, *texts.values(), limit=options.quote_limit)],
            ["equivalent"],
            EQUIVALENT_FORM,
            retries=options.retries,
            seed=self.seed,
            item_id=item.id,
        )
        found = yield from together(
            [
                compare(
                    examiner,
                    question,
                    texts,
                    Pair(ORIGINAL, REWRITE),
                    options,
                    seed=self.seed,
                    item_id=f"{item.id}/{examiner}",
                )
                for examiner in self.examiners
            ]
        )
        words = {name: len(text.split()) for name, text in texts.items()}
        ratio = words[REWRITE] / words[ORIGINAL] if words[ORIGINAL] else None
        long_enough = ratio is not None and abs(ratio - 1) <= options.length_tolerance
        return {
            "item_id": item.id,
            "question": question,
            "original": texts[ORIGINAL],
            "rewrite": texts[REWRITE],
            "equivalent": same.value,
            "length_ratio": ratio,
            "kept": same.value == "same" and long_enough and texts[ORIGINAL] != texts[REWRITE],
            "comparisons": {
                examiner: comparison.to_json() for examiner, comparison in zip(self.examiners, found, strict=True)
            },
        }

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Figures of the pairs that the judge's filter kept (``preferences``), and of all pairs beside them."""
        return {
            "n": len(records),
            "filter": "a judge (stand-in for people)",
            **preferences(records, [record["item_id"] for record in records if record["kept"]], seed=self.seed),
            "all_pairs": preferences(records, [record["item_id"] for record in records], seed=self.seed),
            "different": sum(record["equivalent"] == "different" for record in records),
            "unread": sum(record["equivalent"] is None for record in records),
            "same_text": sum(record["original"] == record["rewrite"] for record in records),
            "unscored": 0,
        }

    def prompt_hashes(self) -> dict[str, str]:
        return prompts.hashes(prompts.RESTYLE, prompts.EQUIVALENT, prompts.COMPARE_SYSTEM, prompts.COMPARE)


def preferences(records: Sequence[Mapping[str, Any]], kept: Sequence[str], *, seed: int) -> dict[str, Any]:
    """Per examiner the preference for the rewrite (0.5: none) over the ``kept`` items, with its interval.

    A comparison whose orders contradict each other is 0.5; one that could not be read is left out and counted.
    """
    chosen = set(kept)
    rows = [record for record in records if record["item_id"] in chosen]
    found = {}
    for examiner in records[0]["comparisons"] if records else ():
        own = [record["comparisons"][examiner] for record in rows]
        values = [1 - row["points"] for row in own if row["points"] is not None]
        preference = mean_of(values, seed=derive_seed(seed, "style", examiner), scale=(0.0, 1.0))
        found[examiner] = {
            **preference.to_json("prefers_rewrite"),
            "n": len(values),
            **{key: value for key, value in consistency(own).items() if key in ("inconsistency", "unreadable")},
        }
    return {"kept": len(rows), "examiners": found}
