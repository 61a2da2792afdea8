"""Self-Instruct's seed tasks (Wang et al. 2023, arXiv 2212.10560), format ``self_instruct``: instructions by people.

``seed_tasks.jsonl``: ``id``, ``name``, ``instruction``, ``instances`` (a list of ``input`` and ``output``) and
``is_classification``. A task is one item: the instruction, and under it the input of the first instance, whose output
is the answer; further instances are the same task again. The subject is ``classification`` or ``generation``; there
are no splits. Tasks generated from them (``instruction``, ``input``, ``output`` in one row) are read, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evaluation.benchmarks.reading import Located, Row, files_of, json_rows, open_item, shown


def rows(path: Path, split: str | None) -> Iterator[Located]:
    """Every task, in the file's order."""
    if split:
        raise ValueError(f"Self-Instruct has no splits, so no split {split!r}; leave it out")
    for file in files_of(path, (".jsonl", ".json")):
        for row in json_rows(file):
            yield _item(row)


def _item(row: Row) -> Located:
    instance = _instance(row)
    given, answer = _text(row, instance, "input"), _text(row, instance, "output")
    instruction = row.text("instruction")
    is_classification = row.fields.get("is_classification", False)
    if not isinstance(is_classification, bool):
        raise row.place.error(f"field 'is_classification' is {shown(is_classification)}; it must be true or false")
    return open_item(
        row.place,
        benchmark="self_instruct",
        split="",
        subject="classification" if is_classification else "generation",
        question=f"{instruction}\n\n{given}" if given.strip() and instruction.strip() else instruction,
        answer=answer if answer.strip() else None,
        source_id=row.own_id("id"),
        columns=("instruction", "output"),
    )


def _instance(row: Row) -> Mapping[str, Any]:
    """The first instance; the row itself where it has none of its own."""
    if "instances" not in row.fields:
        return row.fields
    instances = row.fields["instances"]
    if not isinstance(instances, list) or not instances or not isinstance(instances[0], dict):
        raise row.place.error(f"field 'instances' is {shown(instances)}; it must be a list of objects, at least one")
    return instances[0]


def _text(row: Row, instance: Mapping[str, Any], name: str) -> str:
    value = instance.get(name, "")
    if not isinstance(value, str):
        raise row.place.error(f"{name!r} of the first instance is {shown(value)}; it must be text")
    return value
