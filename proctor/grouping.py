"""One protocol of a group of models: named on the command line, examined together, done once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.items import Item
from evaluation.protocols.base import GroupProtocol
from proctor.experiment import NAME
from serving.models import ModelSpec


def named_models(given: Sequence[str]) -> dict[str, str]:
    """``NAME=DIR`` as a mapping, order kept. ValueError for another form or a name that stands twice."""
    found: dict[str, str] = {}
    for value in given:
        name, sign, path = value.partition("=")
        if not sign or not path or not re.fullmatch(NAME, name):
            raise ValueError(f"--candidate {value}: give NAME=DIR; a name has letters, digits, '_', '-' and '.' only")
        if name in found:
            raise ValueError(f"--candidate {value}: the name {name!r} is taken by {found[name]}")
        found[name] = path
    return found


def specs_of(paths: Mapping[str, str], *, engine: str, dtype: str, max_length: int | None) -> dict[str, ModelSpec]:
    """The models, each checked. Models that share a GPU share its memory, too."""
    from proctor.commands.options import model_spec
    from proctor.preflight import check_model

    specs = {}
    for name, path in paths.items():
        specs[name] = model_spec(path, engine=engine, dtype=dtype, score_dtype=dtype, max_length=max_length)
        check_model(specs[name], f"{name}={path}")
    return specs


def examine_once(
    exam: GroupProtocol,
    items: Sequence[Item],
    models: Mapping[str, ModelSpec],
    *,
    options: Mapping[str, Any],
    seed: int,
    schedule: str,
    out: Path,
) -> dict[str, Any]:
    """Records, metrics and figures in ``out``, as ``proctor evaluate`` does; the metrics, also of an earlier call."""
    from proctor.adhoc import once
    from proctor.atomic import read_json, write_jsonl
    from proctor.commands.options import checked_schedule
    from proctor.examining import examine
    from proctor.report.examiner_figures import draw_figures
    from serving.fingerprint import model_identity

    mode = checked_schedule(schedule)
    inputs: dict[str, Any] = {
        "protocol": exam.name,
        "version": exam.version,
        "options": dict(options),
        "items": [item.id for item in items],
        "models": {role: model_identity(spec) for role, spec in models.items()},
        "seed": seed,
        "schedule": schedule,
        "prompts": exam.prompt_hashes(),
    }

    def body(folder: Path, report: Any) -> list[str]:
        metrics = examine(
            exam,
            items,
            models=models,
            mode=mode,
            folder=folder,
            ledger_folder=folder / "ledger",
            wave=None,
            report=report,
        )
        write_jsonl(folder / "items.jsonl", [item.to_json() for item in items])
        drawn = draw_figures(exam.name, metrics, folder / "figures")
        return ["records.jsonl", "metrics.json", "items.jsonl", *(f"figures/{name}" for name in drawn)]

    if not once(out, inputs, body):
        print("nothing to do: done already")
    found: dict[str, Any] = read_json(out / "metrics.json")
    return found
