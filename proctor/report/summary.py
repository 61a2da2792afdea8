"""``summary.json``: the figures of a run, per candidate. Documented in docs/results.md; others script against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from detection.audit import exam_texts, verdict
from detection.blind import blind_baseline
from detection.run_detectors import SET_TESTS
from detection.statistics.gain import paired_difference
from detection.statistics.loss_gap import item_losses, loss_gap
from detection.statistics.metrics import benjamini_hochberg
from detection.verdict import FALSE_DISCOVERY_RATE, HEADLINE
from evaluation import registry as protocols
from evaluation.exam_set import FrozenExam, read_exam
from evaluation.statistics import mcnemar, paired_mean
from proctor.experiment.experiment import Experiment
from proctor.experiment.made import CONTROL
from proctor.experiment.sections import ExamConfig
from proctor.report.item_score import earned_by_both
from proctor.report.paired import auc_difference, gap_difference, paired
from proctor.run_folder.run import RunFolder
from serving.files import read_json, read_jsonl

SCHEMA = 1
Rows = list[dict[str, Any]]


def summarise_run(run: RunFolder) -> dict[str, Any]:
    """Everything the report says in numbers. Missing parts are null, never 0."""
    experiment = run.experiment
    exam = read_exam(run.stage("exam").path)
    blind = _blind(experiment, exam)
    names = list(experiment.candidates)
    if CONTROL not in names and experiment.detection is not None:
        names.append(CONTROL)
    candidates = {name: _candidate(run, exam, name, blind) for name in names}
    reference = _reference(experiment)
    if reference is not None:
        for name in experiment.candidates:
            if name != reference:
                candidates[name]["against_" + reference] = _against(run, name, reference)
                candidates[name]["differences"] = differences(run, name, run, reference)
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


def expected(run: RunFolder) -> list[str]:
    """The stages of the experiment before the report, by name, in the plan's order."""
    experiment = run.experiment
    own = [f"exam.{name}" for name, exam in experiment.exams.items() if exam.benchmark is not None]
    own += [f"exam.{name}" for name, group in experiment.groups.items() if group.benchmark is not None]
    own += [f"build.{name}" for name in experiment.builds]
    trained = [f"train.{name}" for name, candidate in experiment.candidates.items() if candidate.recipe is not None]
    filters = [f"prefilter.{name}" for name, exam in experiment.exams.items() if exam.prefilter]
    sat = [f"{exam}.{name}" for exam in experiment.exams for name in experiment.candidates]
    audited = [f"detect.{name}" for name in dict.fromkeys([CONTROL, *experiment.candidates])]
    together = [f"group.{name}" for name in experiment.groups]
    present = [name for name in [*sat, *together, *audited] if contains(experiment, name)]
    return ["exam", *own, *trained, *filters, *present, *(f"analysis.{name}" for name in experiment.analyses)]


def analysed(run: RunFolder) -> dict[str, Any]:
    """The figures of every finished analysis, by name. Those of a former one of another kind are left out."""
    from proctor.analyses import kind_of

    done = [name for name in run.experiment.analyses if finished(run, f"analysis.{name}")]
    found = {name: read_json(run.stage(f"analysis.{name}").path / "metrics.json") for name in done}
    kinds = {name: config.kind for name, config in run.experiment.analyses.items()}
    return {name: figures for name, figures in found.items() if kind_of(kinds[name]).figure in figures}


def grouped(run: RunFolder) -> dict[str, dict[str, Any]]:
    """Per finished group its protocol and the figures that it wrote."""
    return {
        name: {**read_json(run.stage(f"group.{name}").path / "metrics.json"), "protocol": group.protocol}
        for name, group in run.experiment.groups.items()
        if finished(run, f"group.{name}")
    }


def differences(a: RunFolder, one: str, b: RunFolder, other: str) -> dict[str, dict[str, Any]]:
    """Paired differences of two candidates, of one run or two, by ``exam/half`` and of the detectors.

    Keys: ``static/leaked``, ``kieval/untouched``, ...; ``loss_gap``; ``auc`` (of the headline detector). Only items
    that both have enter; a key is missing where there are none.
    """
    found: dict[str, dict[str, Any] | None] = {}
    for exam in a.experiment.exams:
        mine, theirs = records(a, f"{exam}.{one}"), records(b, f"{exam}.{other}")
        if mine is None or theirs is None or exam not in b.experiment.exams:
            continue
        for half in dict.fromkeys(str(row["half"]) for row in mine):
            rows = [[r for r in one_side if r["half"] == half] for one_side in (mine, theirs)]
            found[f"{exam}/{half}"] = paired(rows[0], rows[1], seed=a.experiment.seed)
    mine, theirs = records(a, f"detect.{one}"), records(b, f"detect.{other}")
    if mine is not None and theirs is not None:
        found["loss_gap"] = gap_difference(mine, theirs)
        found["auc"] = auc_difference(mine, theirs, HEADLINE[0])
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


def has_halves(exam: ExamConfig) -> bool:
    """Whether an exam is held on the experiment's own items: those of another benchmark or a build leaked to nobody."""
    return exam.benchmark is None and exam.build is None


def records(run: RunFolder, stage: str, part: str = "records.jsonl") -> Rows | None:
    """The records of a finished stage that the experiment contains; what former experiments left is not read."""
    file = run.stage(stage).path / part
    return read_jsonl(file) if file.is_file() and contains(run.experiment, stage) and finished(run, stage) else None


def same_order(a: Rows, b: Rows, key: str = "item_id") -> bool:
    """Whether two sets of records are of the same items. They are not where only one of the stages was done again."""
    return [row[key] for row in a] == [row[key] for row in b]


def finished(run: RunFolder, stage: str) -> bool:
    """Whether a stage's marker is there, and its files are as it says. Of an unfinished stage nothing counts; nor of an
    exam or group that has another protocol now and has not been held again."""
    folder = run.stage(stage)
    if folder.done() is None:
        return False
    exam, (kind, _, name) = exam_at(run.experiment, stage), stage.partition(".")
    config = run.experiment.exams.get(exam or "") or (run.experiment.groups.get(name) if kind == "group" else None)
    held = read_json(folder.path / "metrics.json").get("protocol") if config else None
    return config is None or held in (None, config.protocol)


def contains(experiment: Experiment, stage: str) -> bool:
    """Whether a stage is part of the experiment as it is now."""
    kind, _, candidate = stage.partition(".")
    if kind == "detect":
        config = experiment.detection
        chosen = None if config is None else config.candidates
        return config is not None and (candidate == CONTROL or chosen is None or candidate in chosen)
    tables: dict[str, Mapping[str, Any]] = {
        "build": experiment.builds,
        "analysis": experiment.analyses,
        "group": experiment.groups,
    }
    if kind in tables:
        return candidate in tables[kind]
    if kind == "exam" and candidate in experiment.groups:
        return experiment.groups[candidate].benchmark is not None
    if kind in ("exam", "prefilter") and candidate:
        own = experiment.exams.get(candidate)
        return own is not None and (own.prefilter if kind == "prefilter" else own.benchmark is not None)
    exam = exam_at(experiment, stage)
    if exam is None:
        return stage == "exam"
    sitting = experiment.exams[exam].candidates
    return sitting is None or stage.removeprefix(f"{exam}.") in sitting


def exam_at(experiment: Experiment, stage: str) -> str | None:
    """The exam that a stage is of (``EXAM.CANDIDATE``); None for any other stage."""
    for name in experiment.exams:
        # else it may be one of an exam "name.more"
        if stage.startswith(f"{name}.") and stage.removeprefix(f"{name}.") in experiment.candidates:
            return name
    return None


def _candidate(run: RunFolder, exam: FrozenExam, name: str, blind: Any) -> dict[str, Any]:
    experiment = run.experiment
    row: dict[str, Any] = {
        "recipe": experiment.candidates[name].recipe if name in experiment.candidates else None,
        **dict.fromkeys(("accuracy_leaked", "accuracy_untouched", "kieval", "kieval_untouched")),
        **dict.fromkeys(("kieval_released", "kieval_paper", "rounds", "loss_gap")),
        "detection": {},
        "set_tests": {},
        "exams": {},
    }
    for exam_name, config in experiment.exams.items():
        rows = records(run, f"{exam_name}.{name}")
        if rows is None:
            continue
        protocol = protocols.build(config.protocol, config.options, seed=experiment.seed)
        names = ("leaked", "untouched") if has_halves(config) else tuple(dict.fromkeys(r["half"] for r in rows))
        halves = {half: protocol.summarise([r for r in rows if r["half"] == half]) for half in names}
        row["exams"][exam_name] = halves
        if exam_name == exam_of(experiment, "static"):
            for half, figures in halves.items():
                row[f"accuracy_{half}"], row[f"accuracy_{half}_ci"] = figures["accuracy"], figures["accuracy_interval"]
        if exam_name == exam_of(experiment, "kieval"):
            _kieval(row, halves)
    scores = records(run, f"detect.{name}")
    if scores is not None:
        metrics = read_json(run.stage(f"detect.{name}").path / "metrics.json")
        row["detection"] = metrics
        row["set_tests"] = _set_tests(run, name)
        losses = item_losses(scores)
        gap = loss_gap(losses.get(0, []), losses.get(1, []))
        row["loss_gap"], row["loss_gap_ci"] = gap.per_example, gap.per_example_ci
        row["loss_gap_per_token"], row["loss_gap_per_token_ci"] = gap.per_token, gap.per_token_ci
        row["loss_gap_p_value"] = gap.p_value
        base = records(run, f"detect.{CONTROL}")
        if name != CONTROL and scores and base is not None and same_order(scores, base, "id"):
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


def _kieval(row: dict[str, Any], halves: Mapping[str, dict[str, Any]]) -> None:
    """kieval is the variant ``released`` on the leaked items; its scale is that of the published figures / 100."""
    for half, suffix in (("leaked", ""), ("untouched", "_untouched")):
        for variant in ("released", "paper"):
            _mean(row, f"kieval_{variant}{suffix}", halves[half][variant])
        _mean(row, f"kieval{suffix}", halves[half]["released"])
    _mean(row, "rounds", halves["leaked"]["rounds"])


def _mean(row: dict[str, Any], key: str, figure: Mapping[str, Any]) -> None:
    """Mean, interval, and in its place the note of one whose values are all equal."""
    row[key], row[f"{key}_ci"] = figure["mean"], figure["interval"]
    if "interval_note" in figure:
        row[f"{key}_ci_note"] = figure["interval_note"]


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


def _against(run: RunFolder, name: str, reference: str) -> dict[str, Any]:
    """Paired comparison with the clean candidate on the static exam's leaked and untouched items."""
    exam_name = exam_of(run.experiment, "static")
    mine, theirs = (
        (records(run, f"{exam_name}.{name}"), records(run, f"{exam_name}.{reference}")) if exam_name else (None, None)
    )
    result: dict[str, Any] = {}
    if mine is None or theirs is None or not same_order(mine, theirs):
        return result
    for half in ("leaked", "untouched"):
        pairs = earned_by_both(mine, theirs, half)
        if not pairs:
            continue
        plain = [(bool(a), bool(b)) for a, b in pairs if {a, b} <= {0.0, 1.0}]  # a tie is neither right nor wrong
        test = mcnemar([a for a, _ in plain], [b for _, b in plain])
        difference = paired_mean([a for a, _ in pairs], [b for _, b in pairs], seed=run.experiment.seed)
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
