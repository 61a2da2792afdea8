"""The protocol ``probing.calibrate``: the examined model is the judge of meta probing (arXiv 2402.14865, section 3.1).

It judges rewrites whose worth is known (``evaluation.probing.calibration``) exactly as it would in the builder
``probing``: same prompts, same form of verdict, the original as the version before the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from evaluation.items import Item
from evaluation.probing import judge
from evaluation.probing.calibration import Pair, figures, pairs
from evaluation.probing.judge import AcceptOptions
from evaluation.probing.together import together
from evaluation.probing.version import Version
from evaluation.protocols.base import ProtocolOptions, Record
from serving.records import Dialogue


class ProbingCalibrate:
    """The protocol ``probing.calibrate``, on the embedded exam. Options: the judge's (``evaluation.probing.judge``).

    A record: ``item_id``, ``subject``, ``pairs`` [{pair, principle, kind, verdict (yes, no, None), comment, attempts}];
    empty for an item of which there are no pairs.
    """

    name: ClassVar[str] = "probing.calibrate"
    version: ClassVar[int] = 1
    roles: ClassVar[tuple[str, ...]] = ("candidate",)
    Options: ClassVar[type[ProtocolOptions]] = AcceptOptions

    def __init__(self, options: AcceptOptions, *, seed: int, exemplars: Sequence[Item] = ()) -> None:
        self.options = options
        self.seed = seed

    def dialogues(self, items: Sequence[Item]) -> Iterator[Dialogue[Record]]:
        """ValueError where none of the items has a pair: the pairs belong to the embedded exam."""
        by_item: dict[str, list[Pair]] = {}
        for pair in pairs():
            by_item.setdefault(pair.item_id, []).append(pair)
        if items and not any(item.id in by_item for item in items):
            raise ValueError(
                "none of these items has calibration pairs: they belong to the embedded exam (in an experiment: "
                "benchmark: {format: embedded}; with 'proctor evaluate': --format embedded, without --benchmark)"
            )
        return (self._judge(item, by_item.get(item.id, [])) for item in items)

    def _judge(self, item: Item, known: Sequence[Pair]) -> Dialogue[Record]:
        vanilla = Version.of(item)
        judgements = yield from together(
            [
                judge.accept(
                    pair.principle,
                    vanilla=vanilla,
                    before=vanilla,
                    after=pair.version(item),
                    options=self.options,
                    seed=self.seed,
                    step=f"probing.calibrate/{pair.id}",
                    item_id=item.id,
                    role="candidate",
                )
                for pair in known
            ]
        )
        return {
            "item_id": item.id,
            "subject": item.subject,
            "pairs": [
                {
                    "pair": pair.id,
                    "principle": pair.principle,
                    "kind": pair.kind,
                    "verdict": judgement.value,
                    "comment": judgement.comment,
                    "attempts": judgement.attempts,
                }
                for pair, judgement in zip(known, judgements, strict=True)
            ],
        }

    def summarise(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``n`` items with pairs, and the figures of ``evaluation.probing.calibration``."""
        judged = [record for record in records if record["pairs"]]
        return {"n": len(judged), **figures([row for record in judged for row in record["pairs"]])}

    def prompt_hashes(self) -> dict[str, str]:
        return judge.hashes()
