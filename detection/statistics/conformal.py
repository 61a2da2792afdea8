"""Texts without a label against known non-members: how unusual is a text's score for one the model has not seen?

The conformal p-value of a text is the chance that a non-member scores as high (``metrics.conformal_p_values``; Vovk et
al. 2005; Bates et al. 2023, arXiv:2104.08279). It is valid if the text, were it a non-member, could be exchanged with
the known ones: same source, same format, same time. Over many texts Benjamini-Hochberg keeps the share of false alarms
among the flagged ones at the level (Bates et al., theorem 2). With r known non-members no p-value is below 1/(r + 1):
fewer than 19 can't reach 0.05 at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from detection.statistics.metrics import benjamini_hochberg, conformal_p_values

LEVEL = 0.05


def conformal(
    records: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]] = ()
) -> dict[str, list[float | None]]:
    """Per score name the p-value of each record: None for a text with a label, an unscorable one, or for all where no
    non-member has that score.

    records: see ``audit.Record``; those labelled 0 are known non-members too
    known: records of further known non-members, scored by the same detectors
    """
    names = dict.fromkeys(name for record in records for name in record["scores"])
    return {name: p_values(records, references(records, known, name), name) for name in names}


def references(records: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """The scores of all known non-members."""
    non_members = [*known, *(record for record in records if record["label"] == 0)]
    return [score for record in non_members if (score := record["scores"].get(name)) is not None]


def p_values(records: Sequence[Mapping[str, Any]], reference: Sequence[float], name: str) -> list[float | None]:
    scores = [record["scores"].get(name) if record["label"] is None else None for record in records]
    return conformal_p_values([float("nan") if score is None else score for score in scores], reference)


def summary(values: Sequence[float | None], n_reference: int) -> dict[str, Any]:
    """Of one score name: ``n_reference`` known non-members, ``n`` texts with a p-value, ``least`` (the smallest p-value
    that many can give), ``n_at_5`` (p <= 0.05) and ``n_flagged`` (after Benjamini-Hochberg over the texts)."""
    known = [value for value in values if value is not None]
    adjusted = [value for value in benjamini_hochberg(known) if value is not None]
    return {
        "n_reference": n_reference,
        "n": len(known),
        "least": 1 / (n_reference + 1) if n_reference else None,
        "n_at_5": sum(value <= LEVEL for value in known),
        "n_flagged": sum(value <= LEVEL for value in adjusted),
    }
