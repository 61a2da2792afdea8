"""The verdict on one candidate: contaminated, not detected, or inconclusive, with the reason.

The rule is fixed beforehand. It reads the headline detectors only (never the best k of many), asks that the same
detector tells less on a model that is known not to have seen the items, and that no model at all cannot do it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from detection.blind import BlindBaseline
from detection.statistics.gain import Difference, paired_difference
from detection.statistics.measurement import measurement
from detection.statistics.metrics import benjamini_hochberg

HEADLINE = ("min_k@20", "min_k_plus_plus@20", "loss")
FALSE_DISCOVERY_RATE = 0.05
WANTED_AUC = 0.65
"""``not detected`` is said only where this AUC would have been found with 80% power."""

Outcome = Literal["contaminated", "not detected", "inconclusive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One headline detector on one candidate.

    low, high: 95% interval of the AUC
    p_value: one-sided, uncorrected; p_value_adjusted: after Benjamini-Hochberg
    minimum_auc: detectable with 80% power; None: none is
    gain: AUC on the candidate minus AUC on the untouched base, paired; None without a base
    """

    name: str
    auc: float
    low: float
    high: float
    p_value: float
    minimum_auc: float | None
    gain: Difference | None = None
    p_value_adjusted: float | None = None

    def __str__(self) -> str:
        gain = ""
        if self.gain is not None and not self.gain.reason:
            gain = f", gain over the base {self.gain.value:+.3f} [{self.gain.low:+.3f}, {self.gain.high:+.3f}]"
        p = self.p_value if self.p_value_adjusted is None else self.p_value_adjusted
        return f"{self.name} AUC {self.auc:.3f} [{self.low:.3f}, {self.high:.3f}]{gain}, p {p:.2g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditVerdict:
    """outcome and reason; the numbers behind it; ``not_tested``: headline detectors that gave no AUC."""

    outcome: Outcome
    reason: str
    findings: tuple[Finding, ...]
    not_tested: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """JSON-ready; a gain that is undefined becomes None."""
        row = asdict(self)
        for finding in row["findings"]:
            if finding["gain"] and finding["gain"]["reason"]:
                finding["gain"] = None
        return {**row, "findings": list(row["findings"]), "not_tested": list(self.not_tested)}


def verdict(
    candidate: Sequence[Mapping[str, Any]],
    base: Sequence[Mapping[str, Any]] | None,
    blind: BlindBaseline | None,
    *,
    seed: int,
    set_level: Mapping[str, float | None] | None = None,
) -> AuditVerdict:
    """Weighs an audit's records (see ``audit.audit_dialogue``).

    base: records of the untouched base model for the same texts in the same order (ValueError otherwise), or None
    set_level: p-values of set-level tests by name; they enter the same Benjamini-Hochberg correction
    """
    if base is not None and [record["id"] for record in base] != [record["id"] for record in candidate]:
        raise ValueError("candidate and base were not examined on the same texts in the same order")
    labels = [record["label"] for record in candidate]
    findings, missing = [], []
    for name in HEADLINE:
        scores = [record["scores"].get(name) for record in candidate]
        found = measurement(labels, scores)
        if found["auc"] is None:
            missing.append(name)
            continue
        gain = None
        if base is not None:
            untouched = [record["scores"].get(name) for record in base]
            gain = paired_difference(labels, scores, untouched)
        low, high = found["auc_ci"]
        findings.append(
            Finding(
                name=name,
                auc=found["auc"],
                low=low,
                high=high,
                p_value=found["p_value"],
                minimum_auc=found["minimum_auc"],
                gain=gain,
            )
        )
    fair, doubt = (None, "") if blind is None else (blind.fair, blind.doubt)
    return decide(findings, fair, set_level or {}, tuple(missing), doubt)


def decide(
    findings: Sequence[Finding],
    fair: bool | None,
    set_level: Mapping[str, float | None],
    not_tested: tuple[str, ...] = (),
    doubt: str = "",
) -> AuditVerdict:
    """The rule itself. ``doubt``: why ``fair`` is None (``BlindBaseline.doubt``).

    *contaminated*: for some headline detector the adjusted p-value is at most 0.05, the AUC's lower bound above 0.5,
        the lower bound of the gain over the base above 0; and the test is ``fair`` (``detection.blind``).
    *not detected*: for every headline detector that ran the interval holds 0.5 and an AUC of 0.65 would have been found
        with 80% power (not by a detector whose scores are all alike); and no set-level test rejects.
    *inconclusive*: anything else. A set-level test alone convicts nobody, for it has neither of the two controls.
    """
    adjusted = benjamini_hochberg([*(f.p_value for f in findings), *set_level.values()])
    weighed = tuple(replace(f, p_value_adjusted=p) for f, p in zip(findings, adjusted, strict=False))
    rejecting = [
        f"{name} (p {p:.2g})"
        for name, p in zip(set_level, adjusted[len(findings) :], strict=True)
        if p is not None and p <= FALSE_DISCOVERY_RATE
    ]

    def say(outcome: Outcome, reason: str) -> AuditVerdict:
        return AuditVerdict(outcome=outcome, reason=reason, findings=weighed, not_tested=not_tested)

    if not weighed:
        return say("inconclusive", "no headline detector gave an AUC: labelled members and non-members are needed")
    significant = [
        f
        for f in weighed
        if f.p_value_adjusted is not None and f.p_value_adjusted <= FALSE_DISCOVERY_RATE and f.low > 0.5
    ]
    if significant:
        gaining = [f for f in significant if f.gain is not None and not f.gain.reason and f.gain.low > 0]
        evidence = "; ".join(map(str, gaining or significant))
        if fair is None:
            why = doubt or "no blind baseline"
            return say("inconclusive", f"{evidence}; but it cannot be told whether the test is fair: {why}")
        if not fair:
            return say("inconclusive", f"not a fair test: the blind baseline succeeds without a model; {evidence}")
        if gaining:
            return say("contaminated", evidence + "".join(f"; {name}" for name in rejecting))
        if all(f.gain is None or f.gain.reason for f in significant):
            return say("inconclusive", f"{evidence}; but there is no untouched base model to compare with")
        return say("inconclusive", f"{evidence}; but the untouched base model scores as well")
    if rejecting:
        return say("inconclusive", f"set-level tests reject, no headline detector does: {'; '.join(rejecting)}")
    above = [f for f in weighed if f.low > 0.5]
    if above:
        which = "; ".join(map(str, above))
        return say("inconclusive", f"above chance, but not after the correction for several tests: {which}")
    below = [f for f in weighed if f.high < 0.5]
    if below:
        which = "; ".join(map(str, below))
        return say("inconclusive", f"below chance: the two halves differ, and not by what was learned: {which}")
    blank = [f.name for f in weighed if f.auc == 0.5 and f.p_value == 1]  # every way to deal the labels gives 0.5: ties
    if blank:
        return say("inconclusive", f"all texts have the same score, so nothing could show: {', '.join(blank)}")
    weak = [f for f in weighed if f.minimum_auc is None or f.minimum_auc > WANTED_AUC]
    if weak:
        least = "nothing" if weak[0].minimum_auc is None else f"an AUC of {weak[0].minimum_auc:.2f}"
        return say("inconclusive", f"too few texts: they would show {least} with 80% power, {WANTED_AUC} is wanted")
    return say("not detected", "; ".join(map(str, weighed)))
