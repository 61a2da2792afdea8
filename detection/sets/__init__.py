"""The registry of set-level tests: what can be said of a whole set of texts, and of no single one.

Adding one: a file here whose class derives from ``base.SetTest``, a line below, a test.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Sequence
from typing import cast

from detection.method import Context
from detection.sets.base import SetTest

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
    if name not in REGISTRY:
        near = difflib.get_close_matches(name.lower().replace("-", "_"), REGISTRY, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown set-level test {name!r}; {hint}there are: {', '.join(REGISTRY)}")
    module, _, attribute = REGISTRY[name].partition(":")
    return cast("type[SetTest]", getattr(importlib.import_module(module), attribute))


def build(chosen: Sequence[str], context: Context) -> list[SetTest]:
    """The chosen tests, each once, in the order given. ValueError as from ``detection.detectors.build``."""
    return [test_class(name)(context) for name in dict.fromkeys(chosen)]
