"""Does it matter how an exam is cut into shards? A real model in bfloat16 through vLLM, KIEval, all roles one model.

lockstep   the same waves in 1, 2 and 3 shards: records.jsonl must be the same byte for byte
waves      lockstep in other waves: shows whether batches change answers at all here, so that the first line means
           something
fast       the same items in 1, 2 and 3 shards, and in reverse order: what differs is said, nothing is promised

Every shard is a ``proctor stage RUN STAGE --shard I/N`` of its own, as SLURM's array tasks are.

    python -m tests.performance.shards [--items 12] [--wave 2] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proctor.offline import go_offline

go_offline()

from evaluation import protocols  # noqa: E402
from proctor.examining import examine  # noqa: E402
from proctor.experiment import Experiment, resolve  # noqa: E402
from proctor.runfolder import RunFolder, create  # noqa: E402
from proctor.stages import freeze  # noqa: E402
from proctor.work import do_stage  # noqa: E402
from tests.proctor.command import proctor  # noqa: E402

STAGE = "kieval.one"
OPTIONS = {"rounds": 2, "comment_length": 24, "interactor_tokens": 48, "candidate_tokens": 64, "retries": 0}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=12)
    parser.add_argument("--wave", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = arguments.out or Path(place)
        whole = sat(folder, arguments.items, "lockstep", arguments.wave, 1)
        for shards in (2, 3):
            part = sat(folder, arguments.items, "lockstep", arguments.wave, shards)
            print(f"lockstep, {shards} shards: {said(whole, part)}", flush=True)
        for wave in (1, arguments.items):
            other = sat(folder, arguments.items, "lockstep", wave, 1)
            print(f"lockstep, waves of {wave} instead of {arguments.wave}: {said(whole, other)}", flush=True)
        free = sat(folder, arguments.items, "fast", arguments.wave, 1)
        print(f"fast beside lockstep: {said(whole, free)}", flush=True)
        for shards in (2, 3):
            print(f"fast, {shards} shards: {said(free, sat(folder, arguments.items, 'fast', arguments.wave, shards))}")
        print(f"fast, items in reverse order: {said(free, reverse(folder, arguments.items, arguments.wave))}")


def experiment(items: int, mode: str, wave: int) -> Experiment:
    model = {"path": "embedded", "engine": "vllm", "dtype": "bfloat16", "max_length": 2048, "max_num_seqs": 16}
    return resolve(
        Experiment.model_validate(
            {
                "name": "shards",
                "mode": mode,
                "models": {"m": model},
                "base": "m",
                "roles": {"interactor": "m", "evaluator": "m"},
                "benchmark": {"format": "embedded", "limit": items},
                "candidates": {"one": {"model": "m"}},
                "exams": {"kieval": {"protocol": "kieval", "limit": items, "wave": wave, "options": OPTIONS}},
                "max_failure_rate": 1.0,
            }
        )
    )


def sat(folder: Path, items: int, mode: str, wave: int, shards: int) -> Path:
    """records.jsonl of the exam in that many shards, each in a process of its own, in a fresh run folder."""
    run = create(folder / f"{mode}-{wave}-{shards}", experiment(items, mode, wave))
    do_stage(run, "exam")
    start = time.monotonic()
    for index in range(shards):
        call("stage", run.path, STAGE, *(["--shard", f"{index}/{shards}"] if shards > 1 else []))
    if shards > 1:
        call("stage", run.path, STAGE, "--merge", shards)
    path = run.stage(STAGE).path / "records.jsonl"
    print(f"    {mode}, waves of {wave}, {shards} shard(s): {time.monotonic() - start:.0f} s", flush=True)
    return path


def reverse(folder: Path, items: int, wave: int) -> Path:
    """The same exam in mode fast, its items asked in reverse order; the records in the usual one."""
    run = create(folder / "fast-reverse", experiment(items, "fast", wave))
    do_stage(run, "exam")
    return _reversed(run, wave)


def _reversed(run: RunFolder, wave: int) -> Path:
    chosen = list(freeze.read_items(run, "kieval").part("all", None))[::-1]
    spec = run.experiment.models["m"]
    examine(
        protocols.build("kieval", OPTIONS, seed=run.experiment.seed),
        chosen,
        models=dict.fromkeys(("candidate", "interactor", "evaluator"), spec),
        mode="fast",
        folder=run.path,
        ledger_folder=run.path / "ledger" / "reverse",
        wave=wave,
        report=lambda *_: None,
    )
    path = run.path / "records.jsonl"
    path.write_text("".join(line + "\n" for line in path.read_text(encoding="utf-8").splitlines()[::-1]), "utf-8")
    return path


def call(*arguments: object) -> None:
    done = proctor(*arguments)
    if done.returncode:
        raise SystemExit(f"proctor {' '.join(map(str, arguments))}: {(done.stdout + done.stderr)[-2000:]}")


def said(first: Path, second: Path) -> str:
    """How two runs' records compare: bytes, and by dialogue the model's texts."""
    if first.read_bytes() == second.read_bytes():
        return f"identical, byte for byte ({first.stat().st_size} bytes)"
    mine, theirs = (list(dialogues(path)) for path in (first, second))
    changed = sum(a != b for a, b in zip(mine, theirs, strict=True))
    texts = [(a, b) for one, two in zip(mine, theirs, strict=True) for a, b in zip(one, two, strict=False)]
    return (
        f"{changed} of {len(mine)} dialogues differ; of {len(texts)} texts at the same place "
        f"{sum(a != b for a, b in texts)} differ"
    )


def dialogues(path: Path) -> Iterator[Sequence[str]]:
    """Per record all that models said in it, in order."""
    for line in path.read_text(encoding="utf-8").splitlines():
        yield tuple(texts(json.loads(line)))


def texts(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from texts(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part, key)
    elif isinstance(value, str) and key in ("text", "content", "reply", "question", "answer", "raw"):
        yield value


if __name__ == "__main__":
    main()
