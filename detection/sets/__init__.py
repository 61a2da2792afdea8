"""The registry of set-level tests: what can be said of a whole set of texts, and of no single one.

Adding one: a file here whose class derives from ``base.SetTest``, a line below, a test, a row of
docs/set_tests.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from detection.method import Context
from detection.sets.base import SetTest
from serving.named import lookup

REGISTRY: dict[str, str] = {
    "loss_gap": "detection.sets.loss_gap:LossGapTest",
    "exchangeability": "detection.sets.exchangeability:Exchangeability",
    "codec": "detection.sets.codec:CoDeC",
    "constat": "detection.sets.constat:ConStat",
    "overlap": "detection.sets.overlap:Overlap",
    "guided_set": "detection.sets.guided:GuidedSet",
}


def names() -> tuple[str, ...]:
    """The names of all set-level tests."""
    return tuple(REGISTRY)


def test_class(name: str) -> type[SetTest]:
    """The class behind a name. ValueError for an unknown name, with the nearest right one."""
    return cast("type[SetTest]", lookup(REGISTRY, name, "set-level test"))


def build(chosen: Sequence[str], context: Context) -> list[SetTest]:
    """The chosen tests, each once, in the order given. ValueError as from ``detection.detectors.build``."""
    return [test_class(name)(context) for name in dict.fromkeys(chosen)]
