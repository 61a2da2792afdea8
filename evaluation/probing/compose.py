"""From the records of the stages to items: every named set of every seed, with the options permuted by code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.items import LETTERS, Item, make_item
from evaluation.probing.permutation import permute
from evaluation.probing.version import CHOICE_CHAIN, QUESTION_CHAIN, SETS, Version, applicable, chain
from serving.records import derive_seed

Records = Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class Part:
    """One named set with one seed.

    items: in the order of the seeds; ``source_id`` is the seed's id
    fallbacks: by source id, the principles on which every attempt failed
    untouched: by source id, the principles that had nothing to do there (options that can't be moved or reworded)
    left_out: ids of the items that none of the set's principles could be applied to, or that another was made into
    """

    items: list[Item] = field(default_factory=list)
    fallbacks: dict[str, list[str]] = field(default_factory=dict)
    untouched: dict[str, list[str]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def compose(
    items: Sequence[Item], records: Records, probes: Sequence[str], sets: int, *, seed: int
) -> dict[tuple[str, int], Part]:
    """The sets by name and number. ValueError for an item without its record."""
    by_item = {(record["item_id"], record["set"]): record for record in records}
    made: dict[tuple[str, int], Part] = {}
    for probe in probes:
        for number in range(1, sets + 1):
            part = made[probe, number] = Part()
            for item in items:
                if (item.id, number) not in by_item:
                    raise ValueError(f"item {item.id} has no record in set {number}; are these another exam's records?")
                _add(part, item, by_item[item.id, number], probe, seed)
    return made


def set_name(probe: str, number: int) -> str:
    """``LU`` for the first seed, ``LU.set-2`` for the second."""
    return probe if number == 1 else f"{probe}.set-{number}"


def variants(items: Sequence[Item], parts: Iterable[Part]) -> list[Item]:
    """Training data for the recipe ``augmented``: every version that passed (no fallbacks), each text once, and none
    that is an item as it was. ``source_id`` names the item it was made of."""
    known = {item.id for item in items}
    found: dict[str, Item] = {}
    for part in parts:
        for item in part.items:
            if item.source_id not in part.fallbacks and item.id not in known:
                found.setdefault(item.id, item)
    return list(found.values())


def _add(part: Part, item: Item, record: Mapping[str, Any], probe: str, seed: int) -> None:
    principles = applicable(SETS[probe], choice=bool(item.choices))
    version = Version.of(item)
    failed: list[str] = []
    idle: list[str] = []
    for stage in chain(principles, QUESTION_CHAIN):
        row = record["question"][stage]
        version = version.asking(row["stem"])
        _note(stage, row["status"], failed, idle)
    for stage in chain(principles, CHOICE_CHAIN):
        row = record["choices"][stage]
        version = version.offering(row["options"])
        _note(stage, row["status"], failed, idle)
    choices, key = version.choices, version.key
    if "p3" in principles:
        moved = permute(choices, key, derive_seed(seed, item.id, "probing/p3", record["set"]))
        if isinstance(moved, str):
            idle.append("p3")
        else:
            choices, key = moved.choices, moved.answer
    if len(idle) == len(principles):
        part.left_out.append(item.id)
        return
    made = _made(item, version.question, choices, key)
    taken = {other.id for other in part.items}
    if made.id in taken:  # an agent that says the same of two items: the second stays as it was
        made = _made(item, item.question, item.choices, Version.of(item).key)
        failed, idle = list(principles), []
    if made.id in taken:  # and what another was made into is this very item
        part.left_out.append(item.id)
        return
    if failed:
        part.fallbacks[item.id] = failed
    if idle:
        part.untouched[item.id] = idle
    part.items.append(made)


def _made(item: Item, question: str, choices: Sequence[str], key: int) -> Item:
    return make_item(
        benchmark=item.benchmark,
        split=item.split,
        subject=item.subject,
        question=question,
        choices=choices,
        answer=LETTERS[key] if choices else item.answer,
        context=item.context,
        reason=item.reason,
        form=item.form,
        source_id=item.id,
    )


def _note(stage: str, status: str, failed: list[str], idle: list[str]) -> None:
    principle = stage.rpartition("+")[2]
    if status == "fallback":
        failed.append(principle)
    elif status in ("not_applicable", "unchanged"):
        idle.append(principle)
