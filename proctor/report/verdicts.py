"""The first thing a reader finds: per candidate one line, the numbers behind it, and what was not tested."""

from __future__ import annotations

from typing import Any

from detection.verdict import HEADLINE
from evaluation import registry
from evaluation.show.table import figure
from proctor.experiment.made import CONTROL


def verdict_lines(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Per candidate name, outcome, reason, numbers (three sentences) and untested (what is missing for a verdict)."""
    return [_line(summary, name, c) for name, c in summary["candidates"].items()]


def _line(summary: dict[str, Any], name: str, c: dict[str, Any]) -> dict[str, Any]:
    found = c.get("verdict") or {}
    control = name == CONTROL and bool(c["detection"])
    audited = bool(c["detection"])
    unjudged = "No verdict: the untouched base model was not examined on the same texts." if audited else ""
    return {
        "name": name,
        "recipe": c["recipe"],
        "outcome": found.get("outcome") or ("control" if control else "not tested"),
        "reason": found.get("reason")
        or (
            "The untouched base model: what the detectors say of it is what they say of anybody."
            if control
            else unjudged
        ),
        "numbers": [*filter(None, (_accuracy(summary, c), _gap(c), _area(c)))],
        "untested": _untested(summary, name, c, bool(c["detection"])),
    }


def _accuracy(summary: dict[str, Any], c: dict[str, Any]) -> str:
    if c["accuracy_leaked"] is None or c["accuracy_untouched"] is None:
        return ""
    leaked = figure(c["accuracy_leaked"], c.get("accuracy_leaked_ci"), 100, 1).text
    untouched = figure(c["accuracy_untouched"], c.get("accuracy_untouched_ci"), 100, 1).text
    chance = "" if summary["chance"] is None else f", chance {100 * summary['chance']:.0f}"
    return f"accuracy {leaked} % on leaked, {untouched} % on untouched items{chance}"


def _gap(c: dict[str, Any]) -> str:
    if c["loss_gap"] is None:
        return ""
    return f"loss gap {figure(c['loss_gap'], c.get('loss_gap_ci'), 1, 2).text} nats per token (0: none)"


def _area(c: dict[str, Any]) -> str:
    auc = c["detection"].get(HEADLINE[0]) or {}
    if auc.get("auc") is None:
        return ""
    return f"{HEADLINE[0]} AUC {figure(auc['auc'], auc.get('auc_ci'), 1, 2).text} (0.5: chance)"


def _untested(summary: dict[str, Any], name: str, c: dict[str, Any], audited: bool) -> list[str]:
    kinds: list[Any] = [registry.protocol(name) for name in registry.HEADLINED]
    found = [kind.called for kind in kinds if c[kind.columns[0].key] is None]
    if not audited:
        found.append("detection")
    elif name != CONTROL and not c.get("verdict"):
        found.append(f"detection against the control ({CONTROL})")
    found += [f"detector {detector}" for detector in (c.get("verdict") or {}).get("not_tested", [])]
    if audited and not c["set_tests"]:
        found.append("set-level tests")
    if summary["reference"] is None and name != summary["reference"]:
        found.append("comparison with a clean candidate (no recipe 'normal')")
    return found
