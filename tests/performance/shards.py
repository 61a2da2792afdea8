"""Does it matter how an exam is cut? A real model in bfloat16 through vLLM answers questions.

shards     lockstep, the same waves in 1, 2 and 3 shards, each a ``proctor stage RUN STAGE --shard I/N`` of its own as
           SLURM's array tasks are: records.jsonl must be the same byte for byte
free       lockstep in other waves, then fast: whole, in parts, and in reverse order, on one engine. What differs is
           said, nothing is promised; that other waves change answers shows that the first result means something

    python -m tests.performance.shards [--part shards|free] [--items 12] [--wave 2]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor.offline import go_offline

go_offline()

from evaluation import registry as protocols  # noqa: E402
from evaluation.items import Item  # noqa: E402
from proctor.experiment.experiment import Experiment  # noqa: E402
from proctor.experiment.load import resolve  # noqa: E402
from proctor.run_folder.run import create  # noqa: E402
from proctor.runner.one_stage import do_stage  # noqa: E402
from proctor.stages import freeze  # noqa: E402
from serving.engines.process import ProcessEngine  # noqa: E402
from serving.ledger import Ledger  # noqa: E402
from serving.role_engines import Cast, Mode  # noqa: E402
from serving.scheduler import run_dialogues  # noqa: E402
from tests.proctor.command import proctor  # noqa: E402

STAGE = "static.one"
OPTIONS = {"mode": "generate", "text_format": "chat", "max_tokens": 32}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=("shards", "free"), action="append")
    parser.add_argument("--items", type=int, default=12)
    parser.add_argument("--wave", type=int, default=2)
    arguments = parser.parse_args()
    parts = arguments.part or ["shards", "free"]
    with tempfile.TemporaryDirectory() as folder:
        if "shards" in parts:
            in_shards(Path(folder), arguments.items, arguments.wave)
        if "free" in parts:
            freely(Path(folder), arguments.items, arguments.wave)


def in_shards(folder: Path, items: int, wave: int) -> None:
    whole = sat(folder, items, wave, 1)
    for shards in (2, 3):
        part = sat(folder, items, wave, shards)
        same = whole.read_bytes() == part.read_bytes()
        said = f"identical, byte for byte ({whole.stat().st_size} bytes)" if same else "NOT identical"
        print(f"lockstep, {shards} shards beside 1: {said}", flush=True)


def freely(folder: Path, items: int, wave: int) -> None:
    run = create(folder / "free", experiment(items, wave))
    do_stage(run, "exam")
    chosen = list(freeze.read_items(run, "static").part("all", None))
    spec = run.experiment.models["m"]
    open_engines: dict[Mode, ProcessEngine] = {}

    def records(mode: Mode, chosen: Sequence[Item], wave: int) -> list[dict[str, Any]]:
        protocol = protocols.build("static", OPTIONS, seed=0)
        if mode not in open_engines:
            for other in open_engines.values():
                other.close()
            open_engines.clear()
            open_engines[mode] = ProcessEngine(spec, fingerprint=mode, mode=mode)
        engine = open_engines[mode]
        with tempfile.TemporaryDirectory() as place:
            ledger = Ledger(Path(place))
            with Cast({"candidate": spec}, ledger=ledger, mode=mode, make_engine=lambda *_, **__: Kept(engine)) as cast:
                found = run_dialogues(protocol.dialogues(chosen), cast, wave=wave)
            ledger.close()
        return json.loads(json.dumps(found))  # type: ignore[no-any-return]

    try:
        first = records("lockstep", chosen, wave)
        print(f"lockstep, again: {compared(first, records('lockstep', chosen, wave))}", flush=True)
        for other in (1, items):
            text = compared(first, records("lockstep", chosen, other))
            print(f"lockstep, waves of {other} instead of {wave}: {text}", flush=True)
        free = records("fast", chosen, wave)
        print(f"fast beside lockstep: {compared(first, free)}", flush=True)
        print(f"fast, again: {compared(free, records('fast', chosen, wave))}", flush=True)
        half = len(chosen) // 2
        parts = records("fast", chosen[:half], wave) + records("fast", chosen[half:], wave)
        print(f"fast, in two parts: {compared(free, parts)}", flush=True)
        turned = records("fast", chosen[::-1], wave)[::-1]
        print(f"fast, items in reverse order: {compared(free, turned)}", flush=True)
    finally:
        for engine in open_engines.values():
            engine.close()


class Kept:
    """An engine that stays open from run to run."""

    def __init__(self, engine: ProcessEngine) -> None:
        self.fingerprint = engine.fingerprint
        self.generate, self.score = engine.generate, engine.score

    def close(self) -> None:
        pass


def experiment(items: int, wave: int) -> Experiment:
    model = {"path": "embedded", "engine": "vllm", "dtype": "bfloat16", "max_length": 2048, "max_num_seqs": 16}
    return resolve(
        Experiment.model_validate(
            {
                "name": "shards",
                "mode": "lockstep",
                "models": {"m": model},
                "base": "m",
                "benchmark": {"format": "embedded", "limit": items},
                "candidates": {"one": {"model": "m"}},
                "exams": {"static": {"protocol": "static", "limit": items, "wave": wave, "options": OPTIONS}},
                "max_failure_rate": 1.0,
            }
        )
    )


def sat(folder: Path, items: int, wave: int, shards: int) -> Path:
    """records.jsonl of the exam in that many shards, each in a process of its own, in a fresh run folder."""
    run = create(folder / f"shards-{shards}", experiment(items, wave))
    do_stage(run, "exam")
    start = time.monotonic()
    for index in range(shards):
        call("stage", run.path, STAGE, *(["--shard", f"{index}/{shards}"] if shards > 1 else []))
    if shards > 1:
        call("stage", run.path, STAGE, "--merge", shards)
    print(f"    {shards} shard(s): {time.monotonic() - start:.0f} s", flush=True)
    return run.stage(STAGE).path / "records.jsonl"


def call(*arguments: object) -> None:
    done = proctor(*arguments)
    if done.returncode:
        raise SystemExit(f"proctor {' '.join(map(str, arguments))}: {(done.stdout + done.stderr)[-2000:]}")


def compared(first: Sequence[dict[str, Any]], second: Sequence[dict[str, Any]]) -> str:
    """How two runs' records compare."""
    changed = sum(a != b for a, b in zip(first, second, strict=True))
    return f"{changed} of {len(first)} records differ" if changed else f"all {len(first)} records identical"


if __name__ == "__main__":
    main()
