"""What a comparison of vanilla and probed exams reads: finished exams, and builds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.items import Item
from evaluation.probing.effects import Outcome
from evaluation.probing.report import CandidateOutcomes, Described


class Sat(NamedTuple):
    """A finished static exam: its records and the file they are in, its items by id and where they are from."""

    file: Path
    records: Sequence[Mapping[str, Any]]
    place: str
    items: Mapping[str, Item]


def set_number(name: str) -> tuple[str, int]:
    """``all.set-2`` as ``("all", 2)``; a name without a number is the first set."""
    probe, _, number = name.partition(".set-")
    return probe, int(number or 1)


def compared(
    sat: Mapping[tuple[str, str, int], Sat], built: Path | None, sizes: Mapping[str, float]
) -> tuple[dict[str, CandidateOutcomes], Described, dict[str, Any]]:
    """The candidates' results, what is known of the items, and what identifies both.

    sat: by candidate, set (``vanilla``, or one of ``version.SETS``) and its number; sizes: billions of parameters
    """
    found: dict[str, dict[tuple[str, int], dict[str, Any]]] = {}
    described: dict[str, Item] = {}
    digests: dict[str, Any] = {}
    for (name, probe, number), exam in sat.items():
        outcomes, items = _outcomes(exam, vanilla=probe == "vanilla")
        found.setdefault(name, {})[probe, number] = outcomes
        if probe == "vanilla":
            described |= items
        digests[f"{name}:{probe}.set-{number}"] = digest(sorted(outcomes.items()))
    sittings = {}
    for name, parts in found.items():
        if ("vanilla", 1) not in parts:
            raise ValueError(f"{name} has no vanilla exam: give {name}:vanilla=FOLDER")
        probed: dict[str, dict[int, Any]] = {}
        for (probe, number), outcomes in parts.items():
            if probe == "vanilla":
                continue
            if not set(outcomes) & set(parts["vanilla", 1]):
                raise ValueError(
                    f"{name}:{probe}: none of its items was made of an item of the vanilla exam (by source_id); "
                    "hold both on the same items ('evaluate --limit' takes the first, 'build --limit' draws)"
                )
            probed.setdefault(probe, {})[number] = outcomes
        if not probed:
            raise ValueError(f"{name} has no probed exam: give e.g. {name}:all=FOLDER")
        sittings[name] = CandidateOutcomes(vanilla=parts["vanilla", 1], probed=probed, size=sizes.get(name))
    strange = next((name for name in sizes if name not in sittings), None)
    if strange is not None:
        raise ValueError(f"--size {strange}: there is no such candidate; there are: {', '.join(sittings)}")
    fallbacks = None if built is None else _fallbacks(built)
    known = Described(
        benchmarks={key: item.benchmark for key, item in described.items()},
        subjects={key: item.subject for key, item in described.items()},
        fallbacks=fallbacks,
    )
    marks = None if fallbacks is None else {f"{p}.set-{k}": sorted(ids) for (p, k), ids in fallbacks.items()}
    return sittings, known, {"exams": digests, "fallbacks": marks}


def _outcomes(exam: Sat, *, vanilla: bool) -> tuple[dict[str, Any], dict[str, Item]]:
    """Results by id of the vanilla item, and the items by that id."""
    file, records, place, items = exam
    outcomes: dict[str, Any] = {}
    found: dict[str, Item] = {}
    for row in records:
        if not {"item_id", "correct", "options"} <= set(row):
            raise ValueError(f"{file}: the records are not of the protocol static (item_id, correct, options)")
        item = items.get(row["item_id"])
        if item is None:
            raise ValueError(f"{file}: item {row['item_id']} is not in {place}; are these another exam's records?")
        key = item.id if vanilla else item.source_id
        if not key:
            raise ValueError(f"{place}: item {item.id} has no source_id; a probed exam names the item it was made of")
        if key in outcomes:
            raise ValueError(f"{file}: two results belong to item {key}; give each set with its own records")
        if row["correct"] is None:  # no result (longer than the context, or its best options tied): it has no partner
            continue
        outcomes[key] = Outcome(bool(row["correct"]), int(row["options"]))
        found[key] = item
    return outcomes, found


def _fallbacks(built: Path) -> dict[tuple[str, int], set[str]]:
    table = read_metrics(built, "fallbacks", "proctor build probing")["fallbacks"]
    keys = {name: re.fullmatch(r"(\w+?)(?:\.set-(\d+))?", name) for name in table}
    return {(m[1], int(m[2] or 1)): set(table[name]) for name, m in keys.items() if m}


def read_metrics(folder: Path, key: str, what: str) -> dict[str, Any]:
    from serving.files import read_json, readable

    file = folder if folder.is_file() else folder / "metrics.json"
    if not file.is_file():
        raise ValueError(f"{folder} has no metrics.json; give a finished folder of {what}")
    metrics = readable(lambda: read_json(file), file)
    if not isinstance(metrics, dict) or key not in metrics:
        raise ValueError(f"{file} holds no {key!r}; give a finished folder of {what}")
    return metrics


def sets_of(build: Path) -> dict[str, Path]:
    """The files of a build by set; the exam itself goes by the name ``exam``."""
    if not (build / "items.jsonl").is_file():
        raise ValueError(f"{build} has no items.jsonl; give a finished folder of proctor build probing")
    others = sorted((build / "sets").glob("*/items.jsonl"))
    first = read_metrics(build, "sets", "proctor build probing")["sets"]
    return {next(iter(first)): build / "items.jsonl", **{file.parent.name: file for file in others}}


def pairs_of(file: Path, originals: Mapping[str, Item], vanilla: Path) -> list[tuple[Item, Item]]:
    from evaluation.exam_set import read_items

    probed = read_items(file)
    lost = next((item for item in probed if item.source_id not in originals), None)
    if lost is not None:
        raise ValueError(f"{file}: item {lost.id} was made of {lost.source_id!r}, which is not in {vanilla}")
    return [(originals[item.source_id], item) for item in probed]


def digest(value: Any) -> str:
    import hashlib
    import json

    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
