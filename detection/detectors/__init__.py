"""The registry of detectors: a name, and where its class lives. A detector's module is imported when it is chosen.

Adding one (docs/detectors.md): a file here whose class derives from ``detection.method.TableDetector`` (arithmetic on
the token table) or ``detection.method.Detector`` (anything that asks more), a line below, a test, a row of that page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from detection.method import Context, Detector
from serving.named import lookup

REGISTRY: dict[str, str] = {
    "loss": "detection.detectors.loss:Loss",
    "zlib": "detection.detectors.zlib_ratio:ZlibRatio",
    "min_k": "detection.detectors.min_k:MinK",
    "min_k_plus_plus": "detection.detectors.min_k_plus_plus:MinKPlusPlus",
    "lowercase": "detection.detectors.lowercase:Lowercase",
    "reference": "detection.detectors.reference:Reference",
    "neighbour": "detection.detectors.neighbour:Neighbour",
    "recall": "detection.detectors.recall:ReCaLL",
    "con_recall": "detection.detectors.con_recall:ConReCall",
    "dc_pdd": "detection.detectors.dc_pdd:DCPDD",
    "pac": "detection.detectors.pac:PAC",
    "cdd": "detection.detectors.cdd:CDD",
    "guided": "detection.detectors.guided:Guided",
    "quiz": "detection.detectors.quiz:Quiz",
    "ngram_accuracy": "detection.detectors.ngram_accuracy:NgramAccuracy",
    "ts_guessing": "detection.detectors.ts_guessing:TSGuessing",
}


def names() -> tuple[str, ...]:
    """The names that ``build`` and ``--methods`` accept."""
    return tuple(REGISTRY)


def detector_class(name: str) -> type[Detector]:
    """The class behind a name. ValueError for an unknown name, with the nearest right one."""
    return cast("type[Detector]", lookup(REGISTRY, name, "detection method"))


def build(methods: Sequence[str], context: Context | None = None) -> list[Detector]:
    """The chosen detectors, each once, in the order given, sharing one Context.

    If any of them needs the full vocabulary, all ask for the table with moments, so that a text is scored once.
    ValueError for an unknown method, for something a method needs and the context lacks, and for wrong options.
    """
    given = context or Context()
    for name in given.options:
        detector_class(name)
    classes = [detector_class(name) for name in dict.fromkeys(methods)]
    if not classes:
        raise ValueError(f"no detection method chosen; there are: {', '.join(REGISTRY)}")
    shared = replace(given, full_vocabulary=any("full_vocabulary" in cls.needs for cls in classes))
    return [cls(shared) for cls in classes]
