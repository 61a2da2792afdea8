"""``summary.json``: the figures of a run, per candidate. Documented in docs/results.md; others script against it."""

from __future__ import annotations

from typing import Any

from detection.audit import exam_texts, verdict
from detection.blind import blind_baseline
from detection.run_detectors import SET_TESTS
from detection.statistics.gain import paired_difference
from detection.statistics.loss_gap import item_losses, loss_gap
from detection.statistics.metrics import benjamini_hochberg
from detection.verdict import FALSE_DISCOVERY_RATE, HEADLINE
from evaluation import registry
from evaluation.exam_set import FrozenExam, read_exam
from evaluation.statistics import mcnemar, paired_mean
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import CONTROL
from proctor.report.item_score import Scored, earned_by_both
from proctor.report.paired import auc_difference, gap_difference, paired
from proctor.report.present import Rows, expected, finished, has_halves
from proctor.report.run_data import RunData
from proctor.run_folder.run import RunFolder
from serving.files import read_json

SCHEMA = 1


def summarise_run(data: RunData) -> dict[str, Any]:
    """Everything the report says in numbers. Missing parts are null, never 0."""
    run, experiment = data.run, data.experiment
    exam = read_exam(run.stage("exam").path)
    blind = _blind(experiment, exam)
    candidates = {name: _candidate(data, name, blind) for name in data.names}
    reference = _reference(experiment)
    if reference is not None:
        for name in experiment.candidates:
            if name != reference:
                candidates[name]["against_" + reference] = _against(data, name, reference)
                candidates[name]["differences"] = differences(data, name, data, reference)
        adjust([row for c in candidates.values() for row in c.get("differences", {}).values()])
    return {
        "schema": SCHEMA,
        "name": experiment.name,
        "seed": experiment.seed,
        "mode": experiment.mode,
        "items": len(exam.items),
        "leaked": len(exam.leaked),
        "reference": reference,
        "chance": _chance(exam),
        "damaged": [f"{stage}: {', '.join(files)}" for stage, files in run.damaged.items()],
        "missing": [name for name in expected(run) if not finished(run, name)],
        "blind_baseline": None if blind is None else _blind_json(blind),
        "groups": grouped(run),
        "analyses": analysed(run),
        "candidates": candidates,
    }


def _chance(exam: FrozenExam) -> float | None:
    """Share right by guessing among each item's options; None for open questions."""
    shares = [1 / len(item.choices) for item in exam.items if item.choices]
    return sum(shares) / len(shares) if shares and len(shares) == len(exam.items) else None


def analysed(run: RunFolder) -> dict[str, Any]:
    """The figures of every finished analysis, by name. Those of a former one of another kind are left out."""
    done = [name for name in run.experiment.analyses if finished(run, f"analysis.{name}")]
    found = {name: read_json(run.stage(f"analysis.{name}").path / "metrics.json") for name in done}
    kinds = {name: config.kind for name, config in run.experiment.analyses.items()}
    return {name: figures for name, figures in found.items() if registry.analysis(kinds[name]).figure in figures}


def grouped(run: RunFolder) -> dict[str, dict[str, Any]]:
    """Per finished group its protocol and the figures that it wrote."""
    return {
        name: {**read_json(run.stage(f"group.{name}").path / "metrics.json"), "protocol": group.protocol}
        for name, group in run.experiment.groups.items()
        if finished(run, f"group.{name}")
    }


def differences(a: RunData, one: str, b: RunData, other: str) -> dict[str, dict[str, Any]]:
    """Paired differences of two candidates, of one run or two, by ``exam/half`` and of the detectors.

    Keys: ``static/leaked``, ``kieval/untouched``, ...; ``loss_gap``; ``auc`` (of the headline detector). Only items
    that both have enter; a key is missing where there are none.
    """
    found: dict[str, dict[str, Any] | None] = {}
    for exam in a.experiment.exams:
        mine, theirs = a.scored(exam, one), b.scored(exam, other)
        if mine is None or theirs is None:
            continue
        for half in dict.fromkeys(row.half for row in mine):
            rows = [[row for row in one_side if row.half == half] for one_side in (mine, theirs)]
            found[f"{exam}/{half}"] = paired(rows[0], rows[1], seed=a.experiment.seed)
    scores, others = a.detected.get(one), b.detected.get(other)
    if scores is not None and others is not None:
        found["loss_gap"] = gap_difference(scores, others)
        found["auc"] = auc_difference(scores, others, HEADLINE[0])
    return {key: row for key, row in found.items() if row is not None}


def adjust(rows: list[dict[str, Any]]) -> None:
    """Adds ``p_adjusted`` (Benjamini-Hochberg over all rows of a report) and ``significant``.

    Significant at 5%: by the adjusted p-value; never without one.
    """
    for row, p in zip(rows, benjamini_hochberg([row["p_value"] for row in rows]), strict=True):
        row["p_adjusted"] = p
        row["significant"] = p is not None and p <= FALSE_DISCOVERY_RATE


def exam_of(experiment: Experiment, protocol: str) -> str | None:
    """The first exam of leaked and untouched items that uses a protocol: the contamination table has its figures."""
    found = (n for n, exam in experiment.exams.items() if exam.protocol == protocol and has_halves(exam))
    return next(found, None)


def answered_exams(experiment: Experiment) -> list[str]:
    """The exams of leaked and untouched items whose answers are right or wrong."""
    return [
        name
        for name, exam in experiment.exams.items()
        if has_halves(exam) and getattr(registry.protocol(exam.protocol), "right_or_wrong", False)
    ]


def same_order(a: Rows, b: Rows) -> bool:
    """Whether two audits are of the same texts. They are not where only one of the stages was done again."""
    return [row["id"] for row in a] == [row["id"] for row in b]


def same_items(a: list[Scored] | None, b: list[Scored] | None) -> bool:
    """Whether both sat the same items."""
    return a is not None and b is not None and [row.item for row in a] == [row.item for row in b]


def _candidate(data: RunData, name: str, blind: Any) -> dict[str, Any]:
    run, experiment = data.run, data.experiment
    row: dict[str, Any] = {"recipe": experiment.candidates[name].recipe if name in experiment.candidates else None}
    headlined = {protocol: registry.protocol(protocol) for protocol in registry.HEADLINED}
    for kind in headlined.values():
        row.update(kind.row({}))  # type: ignore[attr-defined]
    row |= {"loss_gap": None, "detection": {}, "set_tests": {}, "exams": {}}
    for exam, sat in data.sittings.items():
        if name in sat:
            row["exams"][exam] = sat[name].halves
            protocol = experiment.exams[exam].protocol
            if protocol in headlined and exam == exam_of(experiment, protocol):
                row.update(headlined[protocol].row(sat[name].halves))  # type: ignore[attr-defined]
    scores = data.detected.get(name)
    if scores is not None:
        row["detection"] = read_json(run.stage(f"detect.{name}").path / "metrics.json")
        row["set_tests"] = _set_tests(run, name)
        losses = item_losses(scores)
        gap = loss_gap(losses.get(0, []), losses.get(1, []))
        row["loss_gap"], row["loss_gap_ci"] = gap.per_example, gap.per_example_ci
        row["loss_gap_per_token"], row["loss_gap_per_token_ci"] = gap.per_token, gap.per_token_ci
        row["loss_gap_p_value"] = gap.p_value
        base = data.detected.get(CONTROL)
        if name != CONTROL and scores and base is not None and same_order(scores, base):
            p_values = {test: figures["p_value"] for test, figures in row["set_tests"].items()}
            found = verdict(scores, base, blind, seed=experiment.seed, set_level=p_values)
            row["verdict"] = found.to_json()
            row["gain_over_base"] = _gains(scores, base)
    return row


def _set_tests(run: RunFolder, name: str) -> dict[str, Any]:
    """The figures of the set-level tests in the headline format, without their lists (per text, per shard)."""
    config = run.experiment.detection
    file = run.stage(f"detect.{name}").path / SET_TESTS
    if config is None or not config.set_tests or not file.is_file():
        return {}
    return {
        test: {key: value for key, value in figures.items() if key not in ("texts", "differences")}
        for test, figures in read_json(file).items()
    }


def _gains(scores: Rows, base: Rows) -> dict[str, Any]:
    """Paired AUC differences, candidate minus untouched base, per score name of the whole text."""
    labels = [r["label"] for r in scores]
    gains = {}
    for name in scores[0]["scores"]:
        if "/" in name:
            continue
        difference = paired_difference(
            labels, [r["scores"][name] for r in scores], [r["scores"].get(name) for r in base]
        )
        gains[name] = (
            None
            if difference.reason
            else {
                "difference": difference.value,
                "ci": [difference.low, difference.high],
            }
        )
    return gains


def _reference(experiment: Experiment) -> str | None:
    """The clean candidate the others are compared with: the first with the recipe ``normal``."""
    return next((name for name, c in experiment.candidates.items() if c.recipe == "normal"), None)


def _against(data: RunData, name: str, reference: str) -> dict[str, Any]:
    """Paired comparison with the clean candidate on the leaked and untouched items of the exam of right and wrong."""
    exam = next(iter(answered_exams(data.experiment)), None)
    mine, theirs = data.scored(exam, name), data.scored(exam, reference)
    result: dict[str, Any] = {}
    if mine is None or theirs is None or not same_items(mine, theirs):
        return result
    for half in ("leaked", "untouched"):
        pairs = earned_by_both(mine, theirs, half)
        if not pairs:
            continue
        plain = [(a == 1, b == 1) for a, b in pairs if {a, b} <= {0.0, 1.0}]  # a tie is neither right nor wrong
        test = mcnemar([a for a, _ in plain], [b for _, b in plain])
        difference = paired_mean([a for a, _ in pairs], [b for _, b in pairs], seed=data.experiment.seed)
        result[half] = {"mcnemar": test._asdict(), "accuracy_difference": difference.to_json()}
    return result


def _blind(experiment: Experiment, exam: FrozenExam) -> Any:
    if experiment.detection is None:
        return None
    texts = exam_texts(exam.items, exam.leaked, experiment.detection.formats[0], experiment.leak_format)
    return blind_baseline(texts, seed=experiment.seed, by_design=experiment.leaked_items == "half")


def _blind_json(blind: Any) -> dict[str, Any]:
    kept = ("auc", "auc_ci", "fair", "by_design", "n", "reason", "doubt")
    return {key: getattr(blind, key) for key in kept}
