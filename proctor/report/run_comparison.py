"""Two runs side by side: candidates and items aligned, differences paired."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evaluation.show.table import Cell, Table
from proctor.report.present import contains, finished
from proctor.report.run_data import RunData
from proctor.report.summary import adjust, differences
from proctor.report.write import difference_cells
from proctor.run_folder.run import RunFolder
from serving.files import read_json, read_jsonl

SCHEMA = 1


def compare_runs(a: RunFolder, b: RunFolder) -> dict[str, Any]:
    """Differences a - b of the candidates that both runs have, on the items that both examined.

    candidates: per name, per ``exam/half``, ``loss_gap`` and ``auc`` a paired difference (``paired.paired``)
    only_a, only_b: candidates that one run alone has; notes: what keeps two figures from being the same question
    ValueError where nothing can be compared.
    """
    shared = [name for name in a.experiment.candidates if name in b.experiment.candidates]
    one, two = RunData(a), RunData(b)
    found = {name: differences(one, name, two, name) for name in shared}
    found = {name: rows for name, rows in found.items() if rows}
    if not found:
        raise ValueError(
            f"{a.path} and {b.path} have no candidate, exam and item in common that both have finished; candidates "
            f"are matched by name ({', '.join(a.experiment.candidates)} and {', '.join(b.experiment.candidates)})"
        )
    adjust([row for rows in found.values() for row in rows.values()])
    return {
        "schema": SCHEMA,
        "a": str(a.path),
        "b": str(b.path),
        "candidates": found,
        "only_a": [name for name in a.experiment.candidates if name not in b.experiment.candidates],
        "only_b": [name for name in b.experiment.candidates if name not in a.experiment.candidates],
        "notes": notes(a, b),
    }


def notes(a: RunFolder, b: RunFolder) -> list[str]:
    """What differs between the runs, in sentences: seeds, modes, exams' settings, items, packages, missing stages."""
    found = []
    one, two = a.experiment, b.experiment
    for key in ("seed", "mode", "leak_format"):
        if getattr(one, key) != getattr(two, key):
            found.append(f"{key}: {getattr(one, key)} in A, {getattr(two, key)} in B")
    for exam in one.exams.keys() | two.exams.keys():
        if exam not in one.exams or exam not in two.exams:
            found.append(f"exam {exam} is in {'A' if exam in one.exams else 'B'} only")
            continue
        if (one.exams[exam].protocol, one.exams[exam].options) != (two.exams[exam].protocol, two.exams[exam].options):
            found.append(f"exam {exam} has another protocol or other options in B")
        files = [run.items_folder(exam) / "items.jsonl" for run in (a, b)]
        if all(file.is_file() for file in files) and files[0].read_bytes() != files[1].read_bytes():
            found.append(f"exam {exam} has other items in B; only those in both are compared")
            texts = [{row["id"]: row for row in read_jsonl(file)} for file in files]
            other = sum(texts[1].get(key, row) != row for key, row in texts[0].items())
            if other:
                found.append(f"exam {exam}: {other} items have one id and other content in A and B, yet are compared")
    for group in one.groups.keys() | two.groups.keys():
        if group not in one.groups or group not in two.groups:
            found.append(f"group {group} is in {'A' if group in one.groups else 'B'} only")
        elif one.groups[group] != two.groups[group]:
            found.append(f"group {group} has other settings in B")
    for run, name in ((a, "A"), (b, "B")):
        stages = [f"{exam}.{c}" for exam in run.experiment.exams for c in run.experiment.candidates]
        stages += [f"group.{group}" for group in run.experiment.groups]
        missing = [stage for stage in stages if contains(run.experiment, stage) and not finished(run, stage)]
        if missing:
            found.append(f"not finished in {name}: {', '.join(missing)}")
    packages = [read_json(run.path / "environment.json").get("packages", {}) for run in (a, b)]
    for package in sorted(packages[0].keys() & packages[1].keys()):
        if packages[0][package] != packages[1][package]:
            found.append(f"{package} {packages[0][package]} in A, {packages[1][package]} in B")
    return sorted(found)


def comparison_table(comparison: dict[str, Any]) -> Table:
    """One row per candidate and figure."""
    header = ("candidate", "figure", "A", "B", "A - B", "p", "p adjusted", "n", "only A better", "only B better")
    body = []
    for name, rows in comparison["candidates"].items():
        for key, row in rows.items():
            sides = [Cell("-") if row.get(s) is None else Cell(f"{row[s]:.3f}", row[s], digits=3) for s in ("a", "b")]
            better = [Cell("-") if k not in row else Cell(str(row[k]), row[k]) for k in ("only_a", "only_b")]
            difference, *others = difference_cells(row)
            shown = replace(difference, text=("+" if row["difference"] > 0 else "") + difference.text)
            body.append([Cell(name), Cell(key), *sides, shown, *others, *better])
    caption = (
        "A - B, paired by item, with 95% intervals; p adjusted: Benjamini-Hochberg over this table. "
        "*: differs at 5%. A difference of candidates whose names are equal says what changed between the runs."
    )
    return Table("comparison", caption, header, body)
