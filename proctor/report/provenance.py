"""How a run was made: what each stage cost, what failed, the prompts, the limits of its examiner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation import registry as protocols
from evaluation.templates import template_source
from proctor.experiment.made import protocol_for
from proctor.report.run_data import RunData
from serving.files import read_json, read_jsonl

FAILURES = {
    "unscored": "items without a result",
    "overlong": "items longer than the model's context, not scored",
    "cut_and_scored": "items longer than the model's context, scored by their end",
    "tied": "items whose best options are equally probable (1/k each)",
    "fewer_exemplars": "items with fewer exemplars, to fit the context",
    "exemplar_copies": "items with copies among the exemplars, left out",
    "unparsable": "answers that could not be read",
    "missing_verdicts": "verdicts missing after all attempts",
    "empty_questions": "empty questions of the interactor",
    "empty_replies": "empty replies of the candidate",
    "unanswered": "turns without a reply",
    "inconsistent": "judgements that turned with the order",
    "shortfall": "items fewer than wanted",
    "n_unscorable": "texts that have no score",
    "dropped": "training samples left out",
    "truncated": "training samples cut",
}


def usage(data: RunData) -> list[dict[str, Any]]:
    """Calls, tokens and seconds per stage and role, as measured; a row without a role where no model was asked."""
    found = []
    for folder in data.stages():
        seconds = _figure(data.side(folder / "time.json").get("seconds"))
        roles: Any = data.side(folder / "usage.json").get("roles", {})
        if not isinstance(roles, dict) or not all(isinstance(used, dict) for used in roles.values()):
            data.notes[f"usage.json of stage {folder.name} is damaged and left out."] = None
            roles = {}
        for role, used in roles.items() or [("", {})]:
            row = {**used, "model_seconds": _figure(used.get("seconds"))}
            found.append({**row, "stage": folder.name, "role": role, "seconds": seconds})
    return found


def _figure(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def failures(data: RunData) -> list[dict[str, Any]]:
    """What went wrong and was counted: stage, what, count. Empty: nothing did."""
    found = []
    for folder in data.stages():
        found += [{"stage": folder.name, "what": what, "count": count} for what, count in _counted(data, folder)]
    return found


def _counted(data: RunData, folder: Path) -> Iterator[tuple[str, int]]:
    metrics = read_json(folder / "metrics.json")
    candidate = read_json(folder / "candidate.json")
    if folder.name.startswith("detect."):
        worst = max((int(f.get("n_unscorable") or 0) for f in metrics.values() if isinstance(f, dict)), default=0)
        metrics = {"n_unscorable": worst}
    for source in (metrics, *candidate.get("phases", [])):
        for key, said in FAILURES.items():
            count = source.get(key)
            if isinstance(count, Mapping):
                count = sum(v for v in count.values() if isinstance(v, int))
            if isinstance(count, int) and count:
                yield f"{said}{' (' + source['name'] + ')' if 'steps' in source else ''}", count
    if folder.name.startswith("build."):
        for step, made in (metrics.get("stages") or {}).items():
            if isinstance(made, Mapping) and made.get("fallback"):
                yield f"rewrites by {step} that nobody accepted (the items stay as they were)", made["fallback"]
    first = metrics.get("first_answer") or {}
    if first.get("unparsable"):
        yield "first answers that could not be read (of the candidate; they end nothing)", first["unparsable"]
    overflow = metrics.get("overflow") or {}
    if overflow.get("dialogues_with_dropped_rounds"):
        yield "dialogues whose oldest rounds did not fit", overflow["dialogues_with_dropped_rounds"]
    sat = ((f"{exam}.{name}", one) for exam, by in data.sittings.items() for name, one in by.items())
    retries = sum(one.retries for stage, one in sat if stage == folder.name)
    if retries:
        yield "verdicts asked for again", retries
    used = data.side(folder / "usage.json")
    if used.get("ledger_bad_lines"):
        yield "damaged lines of the ledger, skipped", used["ledger_bad_lines"]
    long_texts = used.get("long_texts")
    if isinstance(long_texts, Mapping) and long_texts.get("texts"):
        yield f"texts longer than the context ({long_texts['policy']})", long_texts["texts"]


def prompts(data: RunData) -> list[dict[str, str]]:
    """Exam, file, SHA-256 and text of every prompt. The text is shown where it is still the installed one."""
    found = []
    experiment = data.experiment
    for exam in (*experiment.exams, *experiment.groups):
        config = experiment.sitting(exam)
        try:
            hashes = (
                protocol_for(experiment, exam)
                if exam in experiment.groups
                else protocols.build(config.protocol, config.options, seed=experiment.seed)
            ).prompt_hashes()
        except (ValueError, OSError):  # a file that an option names is not on this machine
            found.append({"exam": exam, "file": "a file named in the options is not here", "hash": "-", "text": ""})
            continue
        for name, digest in hashes.items():
            found.append({"exam": exam, "file": name, "hash": digest, "text": _prompt(name)})
    return found


def _prompt(name: str) -> str:
    try:
        return template_source(name)
    except FileNotFoundError:
        return ""


def limits(data: RunData) -> list[str]:
    """What the examiners' own answers say about them, in sentences. Empty: there is nothing to say."""
    found = [line for notices, held in data.hooked("notices") for line in notices(held)]
    for exam in data.sittings:
        file = data.run.stage(f"prefilter.{exam}").path / "records.jsonl"
        own = read_jsonl(file) if file.is_file() else []
        if own:
            right = sum(row.get("correct") is True for row in own)
            found.append(f"{exam}: the evaluator itself answered {right} of {len(own)} items right.")
    return found
