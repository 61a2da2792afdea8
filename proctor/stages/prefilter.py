"""Stage ``prefilter.<exam>``: which items the evaluator itself answers right, once for all candidates."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation import registry as protocols
from evaluation.items import Item
from evaluation.kieval.prefilter import Choice, Prefilter, choose
from evaluation.run_exam import Report
from proctor.experiment.experiment import Experiment
from proctor.run_folder.run import RunFolder
from proctor.stages.base import Stage, gpus_of
from serving.files import read_json, write_json, write_jsonl
from serving.ledger import Ledger
from serving.model.fingerprint import model_identity
from serving.role_engines import Cast
from serving.scheduler import run_dialogues

WAVES_PER_STEP = 4
"""Items asked at a time, in waves: a long exam is read only as far as the wanted number needs."""


def name_for(exam: str) -> str:
    return f"prefilter.{exam}"


def filter_for(experiment: Experiment, exam: str) -> Prefilter:
    """The filter that belongs to an exam. ValueError if its protocol has none."""
    config = experiment.exams[exam]
    protocol: Any = protocols.build(config.protocol, config.options, seed=experiment.seed)
    if not hasattr(protocol, "prefilter"):
        able = ", ".join(name for name in protocols.protocols() if hasattr(protocols.protocol(name), "prefilter"))
        raise ValueError(
            f"exams.{exam}.prefilter: protocol {config.protocol!r} has no validity filter; only {able} has one"
        )
    return protocol.prefilter()  # type: ignore[no-any-return]


def stage(experiment: Experiment, exam: str) -> Stage:
    config = experiment.exams[exam]
    protocol = filter_for(experiment, exam)
    evaluator = experiment.role_specs(protocol.roles)["evaluator"]
    return Stage(
        name=name_for(exam),
        needs=(experiment.items_stage(exam),),
        version=protocol.version,
        config={
            "options": protocol.options.model_dump(mode="json"),
            "items": config.items,
            "limit": config.limit,
            "mode": experiment.mode,
            "evaluator": model_identity(evaluator),
            "prompts": protocol.prompt_hashes(),
        },
        body=lambda run, folder, report: _filter(run, folder, report, exam),
        gpus=gpus_of((evaluator,)),
    )


def read_ids(run: RunFolder, exam: str) -> frozenset[str]:
    """The ids of the frozen list."""
    return frozenset(read_json(run.stage(name_for(exam)).path / "chosen.json")["items"])


def _filter(run: RunFolder, folder: Path, report: Report, exam: str) -> list[str]:
    experiment = run.experiment
    config = experiment.exams[exam]
    protocol = filter_for(experiment, exam)
    frozen = run.items(exam)
    parts: dict[str, list[Item]] = {}
    for item in frozen.part(config.items):
        parts.setdefault(frozen.half(item.id), []).append(item)
    evaluator = experiment.role_specs(protocol.roles)["evaluator"]
    ledger = Ledger(run.ledger(name_for(exam)))
    records: list[dict[str, Any]] = []
    chosen: dict[str, Choice] = {}
    total = sum(min(config.limit or len(items), len(items)) for items in parts.values())
    done = 0
    with Cast({"evaluator": evaluator}, ledger=ledger, mode=experiment.schedule) as cast:
        for half, items in parts.items():
            rows: list[dict[str, Any]] = []
            wanted = config.limit or len(items)
            size = evaluator.max_num_seqs * WAVES_PER_STEP
            for start in range(0, len(items), size):
                rows += run_dialogues(protocol.dialogues(items[start : start + size]), cast, wave=size)
                kept = sum(row["correct"] is True for row in rows)
                asked = len(records) + len(rows)
                report(min(done + kept, total), total, f"items the evaluator knows, of {asked} asked")
                if kept >= wanted:
                    break
            chosen[half] = choose(rows, items, config.limit)
            done += len(chosen[half].items)
            records += [{**row, "half": half} for row in rows]
        usage = {role: asdict(value) for role, value in cast.usage.items()}
        fingerprint = cast.fingerprint("evaluator", "generate")
    ledger.close()
    for half, choice in chosen.items():
        print(f"{half}: {choice.note()}")
    metrics = {
        **protocol.summarise(records),
        "kept": {half: len(choice.items) for half, choice in chosen.items()},
        "shortfall": {half: choice.shortfall for half, choice in chosen.items()},
    }
    ids = [item.id for choice in chosen.values() for item in choice.items]
    write_jsonl(folder / "records.jsonl", records)
    write_json(folder / "metrics.json", metrics)
    write_json(folder / "usage.json", {"roles": usage, "ledger_bad_lines": ledger.bad_lines})
    if not ids:  # what was written is for whoever looks into it
        raise RuntimeError(
            f"the evaluator answered none of {len(records)} items right, so no item passes the prefilter of exam "
            f"{exam}; take a stronger evaluator, or leave prefilter out"
        )
    write_json(folder / "chosen.json", {"evaluator": fingerprint, "items": ids})
    return ["records.jsonl", "metrics.json", "chosen.json"]
